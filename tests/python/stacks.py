"""Takes device memory from many kinds of Python frames, and prints for each allocation the frames
that the interpreter itself tells, the innermost first:

    BYTES  file:line function  file:line function  …

The sizes are all different, so a block and its line are found by its size.
"""

import ctypes
import sys
import threading
import traceback

cuda = ctypes.CDLL("libcuda.so.1")
size = 4096
lock = threading.Lock()


def check(status):
    if status:
        sys.exit(f"status {status}")


check(cuda.cuInit(0))
context = ctypes.c_void_p()
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))


def told(frame, skip):
    """The frames of this thread from `frame` out, as the interpreter tells them."""
    lines = []
    while frame:
        if not skip:
            code = frame.f_code
            name = getattr(code, "co_qualname", code.co_name)
            lines.append(f"{code.co_filename}:{frame.f_lineno} {name}")
        skip = max(skip - 1, 0)
        frame = frame.f_back
    return "  ".join(lines)


def allocate(deep=0):
    global size
    with lock:
        size += 4096
        mine = size
    pointer = ctypes.c_void_p()
    if deep:
        return allocate(deep - 1)
    status = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(mine)); frames = told(sys._getframe(), 0)  # fmt: skip
    check(status)
    with lock:
        print(mine, frames, sep="  ")
    return pointer


class Service:
    @staticmethod
    def static():
        return allocate()

    @property
    def of_property(self):
        return allocate()

    def __repr__(self):
        allocate()
        return "service"


def generator():
    yield 1
    allocate()
    yield from inner_generator()


def inner_generator():
    allocate(
    )
    yield 2


async def coroutine():
    await awaited()
    return allocate()


async def awaited():
    return [allocate() for _ in range(2)]


def raised():
    try:
        raise ValueError
    except ValueError:
        allocate()
    finally:
        allocate()


def on_a_thread():
    check(cuda.cuCtxSetCurrent(context))
    allocate()
    for _ in range(20):
        allocate(3)


allocate()
Service.static()
_ = Service().of_property
repr(Service())
list(generator())
list(map(allocate, [0, 1, 2]))
sorted([3, 1, 2], key=lambda value: allocate(value) is None)
raised()
(lambda: (
    allocate(),
    allocate(1),
))()
exec("def made():\n\n    allocate()\nmade()", {"allocate": allocate})
exec(compile("allocate()", "naïve – 例.py", "exec"), {"allocate": allocate})
for text in ("def same():\n    allocate()\n", "def same():\n\n\n    allocate()\n"):
    # The second code object is likely to lie where the first one did.
    for _ in range(3):
        space = {"allocate": allocate}
        exec(text, space)
        space["same"]()
        del space
try:
    coroutine().send(None)
except StopIteration:
    pass
ctypes.CFUNCTYPE(None)(lambda: (allocate(), None)[1])()
allocate(100)
allocate(150)
threads = [threading.Thread(target=on_a_thread) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
