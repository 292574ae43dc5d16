"""What the preload costs: inference as a whole, and single calls.

    overhead.py --hook-cost BINARY [--preload LIB] [--pairs 12] [--seconds 240]
                --traces FOLDER --markdown FILE --json FILE

Inference: for each pair, fresh warm processes (steady_loop.py) take turns on an idle GPU, one round
of batches each, in an order that is drawn anew every time. Two figures for each pair, both as the
ratio of seconds with the preload to seconds without, less one:

- undisturbed: each batch's lowest quarter over the rounds, summed over the batches. What a busy
  neighbour on the host adds is left out, and so is a stall that meets few batches;
- whole: the sum of all batches in all rounds. Everything is in it, the neighbour's noise too.

The result is the median over pairs, with an upper bound from resampling the pairs. A third process,
without the preload, is compared in the same way: below that noise nothing can be seen.

Exits 1 when the undisturbed figure's upper bound is over the budget, or with fewer than ten pairs;
2 when a process failed.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

BUDGET = 0.01
FEWEST_PAIRS = 10
ROUNDS = 20
HOOK_COST_RUNS = 6
# Not the first, which takes most interrupts.
CORE = 2
FIGURES = ("undisturbed", "whole")
HERE = pathlib.Path(__file__).resolve().parent


def environment(preload, traces):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GMMTRACE_")}
    if preload:
        clean["LD_PRELOAD"] = preload
        clean["GMMTRACE_OUT"] = f"{traces}/overhead.%p.gmmt"
    return clean


class Worker:
    """A warm inference process."""

    def __init__(self, preload, traces):
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "steady_loop.py"), str(CORE)],
            env=environment(preload, traces),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def line(self):
        text = self.process.stdout.readline().strip()
        if not text:
            raise RuntimeError("an inference process ended early")
        return text

    def round(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return [float(seconds) for seconds in self.line().split()]

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def one_pair(sides, traces, chooser):
    """Seconds of each batch of each round, by side, from processes of this pair's own."""
    workers = {name: Worker(preload, traces) for name, preload in sides.items()}
    seconds = {name: [] for name in sides}
    try:
        for worker in workers.values():
            if worker.line() != "ready":
                raise RuntimeError("an inference process did not get ready")
        for _ in range(ROUNDS):
            for name in chooser.sample(sorted(workers), len(workers)):
                seconds[name].append(workers[name].round())
    finally:
        for worker in workers.values():
            worker.close()
    return seconds


def measure_pairs(sides, options):
    pairs = []
    chooser = random.Random(0)
    start = time.monotonic()
    slowest = 0.0
    while len(pairs) < options.pairs:
        began = time.monotonic()
        if began - start + slowest > options.seconds:
            break
        pairs.append(one_pair(sides, options.traces, chooser))
        slowest = max(slowest, time.monotonic() - began)
    return pairs


def upper_bound(values, draws=10_000):
    """95 % of the medians of resampled values lie at or below it."""
    chooser = random.Random(0)
    medians = sorted(
        statistics.median(chooser.choices(values, k=len(values))) for _ in range(draws)
    )
    return medians[int(draws * 0.95)]


def whole(rounds):
    return sum(map(sum, rounds))


def undisturbed(rounds):
    return sum(sorted(batch)[len(batch) // 4] for batch in zip(*rounds))


def slowdown(pairs, side, seconds):
    """Ratio to the plain side, less one: median over pairs and its upper bound."""
    ratios = [seconds(pair[side]) / seconds(pair["plain"]) - 1 for pair in pairs]
    return {
        "median": statistics.median(ratios),
        "upper_95": upper_bound(ratios),
        "pairs": ratios,
    }


def slowdowns(pairs, sides):
    """By side and figure."""
    if not pairs:
        return {}
    return {
        side: {
            "undisturbed": slowdown(pairs, side, undisturbed),
            "whole": slowdown(pairs, side, whole),
        }
        for side in sides
        if side != "plain"
    }


def hook_costs(binary, sides, traces):
    """Nanoseconds of each call, by side, as (median, undisturbed); runs of the sides take turns."""
    found = {name: {} for name in sides}
    for _ in range(HOOK_COST_RUNS):
        for name, preload in sides.items():
            out = subprocess.run(
                [binary], env=environment(preload, traces), check=True, timeout=60,
                stdout=subprocess.PIPE, text=True,
            ).stdout
            for line in out.splitlines():
                call, *nanoseconds = line.split()
                found[name].setdefault(call, []).append([float(value) for value in nanoseconds])
    return {
        name: {call: [statistics.median(column) for column in zip(*runs)]
               for call, runs in calls.items()}
        for name, calls in found.items()
    }


def inference_table(results, pairs):
    lines = [
        "| inference, ResNet-50, batches of 1 to 32 | pairs | figure | median slowdown"
        " | upper 95 % bound |",
        "| --- | --- | --- | --- | --- |",
    ]
    for side, words in (("preload", "with the preload"), ("control", "without it again (noise)")):
        for name in FIGURES if side in results else ():
            figure = results[side][name]
            lines.append(
                f"| {words} | {len(pairs)} | {name} | {figure['median']:+.2%} |"
                f" {figure['upper_95']:+.2%} |"
            )
    return lines


def hook_table(costs):
    """Medians, then what the preload adds where nothing disturbs, beside the noise of that."""
    lines = [
        "| call | median without, ns | median with, ns | undisturbed without, ns | added, ns"
        " | noise, ns |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for call, (median, lowest) in costs["plain"].items():
        noise = costs["control"][call][1] - lowest
        with_it, added = "", ""
        if "preload" in costs:
            with_it = f"{costs['preload'][call][0]:,.0f}"
            added = f"{costs['preload'][call][1] - lowest:+,.0f}"
        lines.append(
            f"| `{call}` | {median:,.0f} | {with_it} | {lowest:,.0f} | {added} | {noise:+,.0f} |"
        )
    return lines


def verdict(results, pairs, preloaded):
    """What is wrong with the inference figure, or nothing."""
    if not preloaded:
        return None
    if len(pairs) < FEWEST_PAIRS:
        return f"only {len(pairs)} pairs were measured, {FEWEST_PAIRS} are needed"
    if results["preload"]["undisturbed"]["upper_95"] > BUDGET:
        return f"the undisturbed slowdown's upper bound is over the budget of {BUDGET:.0%}"
    return None


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hook-cost", required=True, help="the program hook_cost, built")
    parser.add_argument("--preload", help="libgmmtrace.so; without it only the noise is measured")
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=240,
                        help="when the last pair must have ended")
    parser.add_argument("--traces", required=True, help="folder for the traces, which nobody reads")
    parser.add_argument("--markdown", required=True)
    parser.add_argument("--json", required=True)
    return parser.parse_args()


def main():
    options = parsed()
    sides = {"plain": None, "control": None}
    if options.preload:
        sides["preload"] = os.path.abspath(options.preload)

    # The short part first: its figures are then kept whatever becomes of the long one.
    costs = hook_costs(options.hook_cost, sides, options.traces)
    with open(options.markdown, "w", encoding="utf-8") as out:
        print(*hook_table(costs), "", sep="\n", file=out)

    pairs = measure_pairs(sides, options)
    results = slowdowns(pairs, sides)
    wrong = verdict(results, pairs, "preload" in sides)
    with open(options.markdown, "a", encoding="utf-8") as out:
        print(*inference_table(results, pairs), "", sep="\n", file=out)
        if wrong:
            print(f"**{wrong}**\n", file=out)
    with open(options.json, "w", encoding="utf-8") as out:
        json.dump({"hook_cost_ns": costs, "inference": results, "pairs": pairs}, out)
    print(pathlib.Path(options.markdown).read_text(encoding="utf-8"))
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, subprocess.SubprocessError, OSError) as error:
        print(f"overhead.py: {error}", file=sys.stderr)
        sys.exit(2)
