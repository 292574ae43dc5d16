"""Ends while a daemon thread is inside a library that takes and gives back memory without end."""

import ctypes
import sys
import threading
import time

cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
library = ctypes.CDLL(sys.argv[1])
library.calls_so_far.restype = ctypes.c_uint64


class Slow:
    """Makes the interpreter's end take long: what `sys` holds falls after the threads' states."""

    def __del__(self, sleep=time.sleep):
        sleep(0.1)


sys.slow = Slow()


def deep(depth):
    if depth:
        deep(depth - 1)
    else:
        cuda.cuCtxSetCurrent(context)
        library.forever()


threads = [threading.Thread(target=deep, args=(100,), daemon=True) for _ in range(2)]
for thread in threads:
    thread.start()
while library.calls_so_far() < 100:
    time.sleep(0.001)
