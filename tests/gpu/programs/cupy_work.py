"""CuPy: its own pool, the stream-ordered pool, pinned and managed memory, kernels, cuBLAS, FFT."""

import sys
from pathlib import Path

import cupy
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import moments


def rest():
    cupy.cuda.Device().synchronize()


def work():
    kept = []
    kernel = cupy.RawKernel(
        'extern "C" __global__ void twice(float *x, int n)'
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }",
        "twice",
    )
    for index in range(1, 9):
        a = cupy.asarray(np.arange(index * 50_000, dtype=np.float32))
        kernel((a.size // 256 + 1,), (256,), (a, np.int32(a.size)))
        square = a[: 200 * 200].reshape(200, 200)
        product = square @ square
        kept += [product, cupy.fft.fft(a), cupy.sort(a[::-1])]
        cupy.asnumpy(product)
        a.fill(0)
    return kept


def main():
    cupy.zeros(1)
    moments.at("start", rest)
    kept = work()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream, cupy.cuda.using_allocator(cupy.cuda.MemoryAsyncPool().malloc):
        kept += work()
        stream.synchronize()
    with cupy.cuda.using_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc):
        managed = cupy.ones(300_000, dtype=np.float32)
        managed += 1
    page_locked = cupy.cuda.alloc_pinned_memory(100_000)
    host = np.frombuffer(page_locked, np.float32, 25_000)
    kept.append(cupy.asarray(host))
    moments.at("peak", rest)
    del kept, managed, host, page_locked
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()
    moments.at("end", rest)
    moments.write()


main()
