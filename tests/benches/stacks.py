#!/usr/bin/env python3
"""What reading Python frames adds to an event: reports of a stand-in for PyTorch's allocator from so
many Python frames, with GMMTRACE_STACKS=python and =caller in turns. The difference of the medians
is what the frames cost; the same call from two lines in turns is the usual case, the same chain
with another line in every function the worst.

    cargo test --workspace --no-run && cargo build --release
    tests/benches/stacks.py --programs FOLDER [--products target/release] [--python python3.12]

FOLDER holds the built test programs, libc10_cuda.so among them, and the simulated driver lies in
--driver. Other work on the machine makes the figures useless.
"""

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time

DEPTHS = (1, 5, 15, 40, 100)
BATCH = 64
BATCHES = 400


def child(library):
    report = ctypes.CDLL(library).torch_report
    report.argtypes = [ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64]
    driver = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    driver.cuInit(0)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    now = time.perf_counter_ns

    def near(results):
        for _ in range(BATCHES):
            start = now()
            for _ in range(BATCH // 2):
                report(0x7F0000000000, 512, 512, 1 << 21)
                report(0x7F0000000000, 512, 512, 1 << 21)
            results.append((now() - start) / BATCH)

    def below(depth, work):
        if depth > 1:
            below(depth - 1, work)
        else:
            work()

    def walk(depth, other):
        # Every frame stands at one line in one report and at the other in the next.
        if depth <= 1:
            report(0x7F0000000000, 512, 512, 1 << 21)
        elif other:
            walk(depth - 1, other)
        else:
            walk(depth - 1, other)

    def far(depth, results):
        for _ in range(BATCHES):
            start = now()
            for turn in range(BATCH):
                walk(depth, turn & 1)
            results.append((now() - start) / BATCH)

    for depth in DEPTHS:
        # Frames above the one that works: this function's and the module's.
        results = []
        if depth > 3:
            below(depth - 3, lambda: near(results))
        else:
            near(results)
        print("near", depth, statistics.median(results))
        results = []
        far(max(depth - 3, 1), results)
        print("far", depth, statistics.median(results))


def measure(arguments, stacks):
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(
            os.environ,
            LD_PRELOAD=os.path.join(arguments.products, "libgmmtrace.so"),
            LD_LIBRARY_PATH=f"{arguments.driver}:{arguments.programs}",
            GMMTRACE_OUT=os.path.join(folder, "%p.gmmt"),
            GMMTRACE_STACKS=stacks,
        )
        library = os.path.join(arguments.programs, "libc10_cuda.so")
        command = [arguments.python, os.path.abspath(__file__), "--child", library]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        size = sum(entry.stat().st_size for entry in os.scandir(folder))
    rows = (line.split() for line in done.stdout.splitlines())
    return {(kind, int(depth)): float(ns) for kind, depth, ns in rows}, size


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--child")
    parser.add_argument("--programs")
    parser.add_argument("--driver")
    parser.add_argument("--products", default="target/release")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    if arguments.child:
        return child(arguments.child)
    for name in ("programs", "driver", "products"):
        setattr(arguments, name, os.path.abspath(getattr(arguments, name)))
    figures = {"caller": [], "python": []}
    for _ in range(arguments.rounds):
        for stacks, rows in figures.items():
            rows.append(measure(arguments, stacks)[0])
    print("| frames | call | with frames ns | without ns | added ns |")
    print("| --- | --- | --- | --- | --- |")
    for depth in DEPTHS:
        for kind, words in (("near", "two lines in turns"), ("far", "every frame at another line")):
            of = {
                stacks: statistics.median(row[kind, depth] for row in rows)
                for stacks, rows in figures.items()
            }
            added = of["python"] - of["caller"]
            print(f"| {depth} | {words} | {of['python']:.0f} | {of['caller']:.0f} | {added:.0f} |")


main()
