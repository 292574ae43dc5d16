"""numba-cuda: arrays on the device, pinned, mapped and managed, copies, sets by kernels, streams."""

import sys
from pathlib import Path

import numpy as np

# numba-cuda asks for a name that NumPy 2.5 no longer has.
if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack
from numba import cuda

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import moments


@cuda.jit
def scale(values, factor):
    at = cuda.grid(1)
    if at < values.size:
        values[at] *= factor


def main():
    cuda.current_context()
    moments.at("start", cuda.synchronize)
    kept = []
    for index in range(1, 11):
        rows = np.arange(index * 100_000, dtype=np.float32)
        on_device = cuda.to_device(rows)
        scale[on_device.size // 256 + 1, 256](on_device, 2.0)
        on_device.copy_to_host()
        kept.append(cuda.device_array_like(on_device))
        kept[-1].copy_to_device(on_device)
    stream = cuda.stream()
    pinned = cuda.pinned_array(50_000, dtype=np.float32)
    pinned[:] = 1
    on_stream = cuda.to_device(pinned, stream=stream)
    scale[200, 256, stream](on_stream, 3.0)
    on_stream.copy_to_host(pinned, stream=stream)
    stream.synchronize()
    managed = cuda.managed_array(100_000, dtype=np.float32)
    managed[:] = 1
    scale[400, 256](managed, 4.0)
    rows = np.ones(30_000, dtype=np.float32)
    with cuda.pinned(rows):
        kept.append(cuda.to_device(rows))
    moments.at("peak", cuda.synchronize)
    kept.clear()
    del on_device, on_stream, managed, pinned
    cuda.current_context().deallocations.clear()
    moments.at("end", cuda.synchronize)
    moments.write()


main()
