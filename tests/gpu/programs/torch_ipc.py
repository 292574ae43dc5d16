"""A CUDA tensor that a PyTorch process hands to another one, and gets changed."""

import sys
from pathlib import Path

import torch
import torch.multiprocessing as multiprocessing

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import moments

SIZES = (3 << 20, 40 << 20, 1000)


def other(given, done):
    torch.zeros(1, device="cuda")
    moments.at("start", torch.cuda.synchronize)
    tensors = given.get()
    for tensor in tensors:
        tensor.add_(1)
    moments.at("peak", torch.cuda.synchronize)
    # Each lies in a segment of its own kind: small, large, and larger than a shared one.
    moments.claim("ledgers.imported.allocs", 3)
    del tensor, tensors
    torch.cuda.ipc_collect()
    moments.claim("ledgers.imported.frees", 3)
    moments.claim("unknown_frees", 0)
    done.put(True)
    moments.at("end", torch.cuda.synchronize)
    moments.write()


def main():
    context = multiprocessing.get_context("spawn")
    given, done = context.Queue(), context.Queue()
    process = context.Process(target=other, args=(given, done))
    process.start()
    torch.zeros(1, device="cuda")
    moments.at("start", torch.cuda.synchronize)
    tensors = [torch.zeros(size, dtype=torch.uint8, device="cuda") for size in SIZES]
    given.put(tensors)
    done.get()
    moments.at("peak", torch.cuda.synchronize)
    assert all(bool((tensor == 1).all()) for tensor in tensors)
    process.join()
    moments.claim("ledgers.imported.allocs", 0)
    moments.claim("unknown_frees", 0)
    moments.at("end", torch.cuda.synchronize)
    moments.write()
    sys.exit(process.exitcode)


if __name__ == "__main__":
    main()
