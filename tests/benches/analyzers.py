#!/usr/bin/env python3
"""What it costs to read a log: `gmmtrace summary` beside `heaptrack_print` and `memray stats`.

    analyzers.py [--events 1000000,10000000] [--live 1000,100000] [--own 100000000] [--runs 3]

Each tool reads a log of its own kind with as many events: gmmtrace's comes from the generator of
`cargo bench -p gmmtrace --bench throughput`, the others' from a C loop that keeps `live` blocks and
frees one for each that it allocates, recorded by the tool itself. The others' events carry stacks,
gmmtrace's carry copies: the table compares what a person waits for, not equal work. `--own` are
sizes that only gmmtrace reads. Time is the least of the runs, memory the greatest.

Needs `heaptrack` (Debian package) and `memray` (PyPI); a tool that is missing has no row.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

CHURN = r"""
#include <stdlib.h>
void churn(long events, long live) {
    void **kept = calloc(live, sizeof *kept);
    for (long pair = 0; pair < events / 2; pair++) {
        long place = pair * 7919 % live;
        free(kept[place]);
        kept[place] = malloc(16 + place % 4096);
    }
    for (long place = 0; place < live; place++) free(kept[place]);
    free(kept);
}
int main(int count, char **words) {
    if (count == 3) churn(atol(words[1]), atol(words[2]));
}
"""

MEMRAY = """
import ctypes, sys
import memray
churn = ctypes.CDLL(sys.argv[1]).churn
with memray.Tracker(sys.argv[2]):
    churn(ctypes.c_long(int(sys.argv[3])), ctypes.c_long(int(sys.argv[4])))
"""


def timed(command, runs):
    """Least seconds and greatest resident memory in MiB of the runs; their output is dropped."""
    seconds, memory = [], []
    for _ in range(runs):
        began = time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise SystemExit(f"{command}: exit {child.returncode}")
        seconds.append(time.monotonic() - began)
        memory.append(usage.ru_maxrss / 1024)
    return min(seconds), max(memory)


def quiet(command, **more):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


class Gmmtrace:
    name = "gmmtrace summary"

    def __init__(self, folder):
        self.folder = folder
        quiet(["cargo", "build", "--release", "-p", "gmmtrace"], cwd=ROOT)
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        self.binary = target / "release" / "gmmtrace"

    def record(self, events, live):
        log = self.folder / f"{events}-{live}.gmmt"
        bench = ["cargo", "bench", "-q", "-p", "gmmtrace", "--bench", "throughput", "--"]
        quiet([*bench, str(events), str(live), "4", str(log)], cwd=ROOT)
        return log, [str(self.binary), "summary", str(log)]


class Heaptrack:
    name = "heaptrack_print"

    def __init__(self, folder):
        self.folder = folder
        source = folder / "churn.c"
        source.write_text(CHURN)
        self.program = folder / "churn"
        quiet(["cc", "-O1", "-fno-builtin", "-o", str(self.program), str(source)])

    def record(self, events, live):
        log = self.folder / f"heaptrack-{events}-{live}"
        quiet(["heaptrack", "-o", str(log), str(self.program), str(events), str(live)])
        written = next(self.folder.glob(log.name + ".*"))
        return written, ["heaptrack_print", str(written)]


class Memray:
    name = "memray stats"

    def __init__(self, folder):
        self.folder = folder
        source = folder / "churn.c"
        source.write_text(CHURN)
        self.library = folder / "libchurn.so"
        quiet(["cc", "-O1", "-fno-builtin", "-shared", "-fPIC", "-o", str(self.library), str(source)])

    def record(self, events, live):
        log = self.folder / f"memray-{events}-{live}.bin"
        arguments = [str(self.library), str(log), str(events), str(live)]
        quiet([sys.executable, "-c", MEMRAY, *arguments])
        return log, [sys.executable, "-m", "memray", "stats", str(log)]


def tools(folder):
    found = [Gmmtrace(folder)]
    if shutil.which("heaptrack") and shutil.which("heaptrack_print"):
        found.append(Heaptrack(folder))
    if subprocess.run([sys.executable, "-c", "import memray"], stderr=subprocess.DEVNULL).returncode == 0:
        found.append(Memray(folder))
    return found


def row(tool, events, live, runs):
    log, command = tool.record(events, live)
    size = log.stat().st_size
    seconds, memory = timed(command, runs)
    log.unlink()
    print(
        f"| {tool.name} | {events:,} | {live:,} | {size / events:.2f} | {seconds:.2f} "
        f"| {events / seconds / 1e6:.2f} | {memory:.0f} |",
        flush=True,
    )


def numbers(text):
    return [int(number) for number in text.split(",") if number]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=numbers, default=[1_000_000, 10_000_000])
    parser.add_argument("--live", type=numbers, default=[1_000, 100_000])
    parser.add_argument("--own", type=numbers, default=[100_000_000])
    parser.add_argument("--runs", type=int, default=3)
    wanted = parser.parse_args()
    print("| tool | events | live | bytes per event | seconds | M events/s | memory, MiB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory(prefix="gmmtrace-analyzers-") as folder:
        for tool in tools(pathlib.Path(folder)):
            own = wanted.own if isinstance(tool, Gmmtrace) else []
            for events in [*wanted.events, *own]:
                for live in wanted.live:
                    row(tool, events, live, wanted.runs)


if __name__ == "__main__":
    main()
