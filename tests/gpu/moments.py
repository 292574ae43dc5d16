"""What a Python program says of itself, in the form of programs/claims.h.

    moments.at("start")     wait until gmmtrace has read NVML in this state, read it too, set a mark
    moments.claim(PATH, N)  the report's number at this path is N
    moments.unknown(PATH)   the report knows nothing there
    moments.note(TEXT)      text that goes into the results
    moments.write()         at the end

Written to GMM_CLAIMS_OUT with the process's id behind it; without it everything here does nothing,
so that the same program also runs under CUPTI, where it need not wait.
"""

import ctypes
import os
import time

_out = os.environ.get("GMM_CLAIMS_OUT")
_lines = []
try:
    _mark = ctypes.CDLL(None).gmmtrace_mark
    _mark.argtypes = [ctypes.c_char_p]
except AttributeError:
    _mark = None


def process_bytes():
    """NVML's figure for this process, added over devices."""
    import pynvml

    pynvml.nvmlInit()
    total = 0
    for index in range(pynvml.nvmlDeviceGetCount()):
        device = pynvml.nvmlDeviceGetHandleByIndex(index)
        for process in pynvml.nvmlDeviceGetComputeRunningProcesses(device):
            if process.pid == os.getpid():
                total += process.usedGpuMemory or 0
    return total


def at(name, wait=lambda: None):
    """`wait` lets the device come to rest."""
    wait()
    if _out is None:
        return
    time.sleep(1.3)
    _lines.append(f"moment {name}\t{process_bytes()}")
    if _mark:
        _mark(name.encode())


def claim(path, value):
    _lines.append(f"equal {path}\t{value}")


def unknown(path):
    """The report knows nothing at this path."""
    _lines.append(f"unknown {path}")


def note(text):
    _lines.append(f"note {text}")


def write():
    if _out is None:
        return
    with open(f"{_out}.{os.getpid()}", "w", encoding="utf-8") as file:
        print(f"pid {os.getpid()}", *_lines, "complete", sep="\n", file=file)
