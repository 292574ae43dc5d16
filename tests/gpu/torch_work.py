"""PyTorch at work, and what its allocator says of itself.

    torch_work.py infer|train|compile|graphs FACTS

Two Python threads work on the same device, each with a stream of its own; `compile` is inference
through torch.compile, `graphs` replays inference captured in private pools. At three moments, with
both threads waiting, a mark is set and the allocated blocks are written down; at the end the
figures of memory_stats. tests/torch/compare.py reads FACTS.
"""

import ctypes
import functools
import json
import sys
import threading

import torch

ROUNDS = 30
STATS = [
    *(
        f"{name}.all.{figure}"
        for name in ("allocation", "allocated_bytes", "reserved_bytes")
        for figure in ("allocated", "freed", "current", "peak")
    ),
    "num_ooms",
]
try:
    mark = ctypes.CDLL(None).gmmtrace_mark
    mark.argtypes = [ctypes.c_char_p]
except AttributeError:
    sys.exit("torch_work.py: gmmtrace is not preloaded")


def blocks():
    """Device, address and size of every allocated block. One that waits for another stream is
    reported as taken back, and no longer allocated."""
    found = []
    for segment in torch.cuda.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                found.append([segment["device"], address, block["size"]])
            address += block["size"]
    return found


def model():
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda()


def infer(net, index):
    with torch.inference_mode():
        return net(torch.randn(1 + index % 7, 64 + 16 * (index % 5), 256, device="cuda"))


def train(net, optimizer, index):
    optimizer.zero_grad(set_to_none=True)
    out = net(torch.randn(1 + index % 5, 64 + 16 * (index % 3), 256, device="cuda"))
    out.square().mean().backward()
    optimizer.step()
    return out.detach()


# Compiling and capturing are done by one thread at a time, before either works.
ALONE = threading.Lock()
READY = threading.Barrier(2)


class Compiled:
    """Inference of a few shapes, compiled."""

    def __init__(self, net):
        self.run = torch.compile(net, dynamic=False)
        with ALONE:
            for rows in (1, 2, 3):
                self(rows - 1)

    @torch.inference_mode()
    def __call__(self, index):
        return self.run(torch.randn(1 + index % 3, 64, 256, device="cuda"))


class Captured:
    """Inference of a few shapes, captured."""

    def __init__(self, net):
        self.graphs = []
        with ALONE, torch.inference_mode():
            for rows in (1, 2, 5):
                rows_in = torch.randn(rows, 64, 256, device="cuda")
                for _ in range(3):
                    net(rows_in)
                torch.cuda.current_stream().synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                    out = net(rows_in)
                self.graphs.append((graph, rows_in, out))

    @torch.inference_mode()
    def __call__(self, index):
        graph, rows_in, out = self.graphs[index % 3]
        rows_in.copy_(torch.randn_like(rows_in))
        graph.replay()
        return out.clone()


class Worker(threading.Thread):
    """Works until the middle, waits, and works to the end; keeps some of its results."""

    def __init__(self, mode, barrier, start):
        super().__init__()
        self.mode, self.barrier, self.start_at = mode, barrier, start
        self.kept, self.error = [], None

    def run(self):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                self.work()
                torch.cuda.current_stream().synchronize()
        except Exception as error:  # told by the main thread
            self.error = error
            self.barrier.abort()

    def work(self):
        net = model()
        net.train(self.mode == "train")
        optimizer = torch.optim.AdamW(net.parameters()) if self.mode == "train" else None
        ready = {"compile": Compiled, "graphs": Captured}.get(self.mode)
        call = ready(net) if ready else functools.partial(infer, net)
        READY.wait(100)
        for half in range(2):
            for index in range(ROUNDS):
                index += self.start_at + half * ROUNDS
                out = train(net, optimizer, index) if optimizer else call(index)
                if index % 10 == 0:
                    self.kept.append(out)
            # The main thread looks between these two.
            self.barrier.wait()
            self.barrier.wait()


def main():
    mode, path = sys.argv[1:]
    moments = []

    def moment(name):
        torch.cuda.synchronize()
        mark(name.encode())
        moments.append({"mark": name, "blocks": blocks()})

    barrier = threading.Barrier(3)
    workers = [Worker(mode, barrier, start) for start in (0, 3)]
    for worker in workers:
        worker.start()
    try:
        for name in ("middle", "worked"):
            barrier.wait()
            moment(name)
            barrier.wait()
    except threading.BrokenBarrierError:
        pass
    for worker in workers:
        worker.join()
        if worker.error:
            raise worker.error
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError:
        pass
    for worker in workers:
        worker.kept.clear()
    torch.cuda.empty_cache()
    # What is reserved is told with the next block.
    last = torch.ones(1000, device="cuda")
    moment("end")
    stats = torch.cuda.memory_stats()
    facts = {
        "devices": {str(torch.cuda.current_device()): {key: stats[key] for key in STATS}},
        "moments": moments,
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(facts, file)
    del last


main()
