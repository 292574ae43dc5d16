"""Triton: two kernels of its own, on PyTorch's tensors."""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import moments


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = at < n
    tl.store(out + at, tl.load(x + at, mask=here) + tl.load(y + at, mask=here), mask=here)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + at, values / tl.sum(values, 0), mask=at < columns)


def main():
    torch.zeros(1, device="cuda")
    moments.at("start", torch.cuda.synchronize)
    kept = []
    for index in range(1, 13):
        n = index * 70_000
        x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
        out = torch.empty_like(x)
        add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
        rows = torch.randn(64 * index, 500, device="cuda")
        soft = torch.empty_like(rows)
        softmax[(rows.shape[0],)](rows, soft, 500, BLOCK=512)
        kept += [out, soft]
        assert torch.allclose(out, x + y)
        assert torch.allclose(soft, rows.softmax(1), atol=1e-6)
    kept.append(triton.testing.do_bench(lambda: add[(69,)](x, y, out, 70_000, BLOCK=1024), rep=20))
    moments.at("peak", torch.cuda.synchronize)
    del kept, x, y, out, rows, soft
    torch.cuda.empty_cache()
    moments.at("end", torch.cuda.synchronize)
    moments.write()


main()
