"""What the preload costs: inference as a whole, and single calls.

    overhead.py --hook-cost BINARY [--preload LIB] [--pairs 12] [--seconds 240]
                --traces FOLDER --markdown FILE --json FILE

Single calls, without stacks: `hook_cost` takes turns, within one process, between calls through the hook and calls
straight to the driver. The added time of a call is the median over turns of the difference.

Inference, with GMMTRACE_STACKS as it is given: a pair is four fresh warm processes (steady_loop.py) on an idle GPU, two with the preload
and two without, that take turns, one round of batches each. README.md says why. A pair gives each
figure as the logarithm of the ratio of seconds with to seconds without:

- paired: each batch's ratio within a round, its median over the rounds, and the mean of those over
  the batches, weighted by their seconds. This one is held against the budget;
- undisturbed: each batch's lowest quarter over the rounds, summed over the batches. What a busy
  neighbour on the host adds is left out, and so is a stall that meets few batches;
- whole: the sum of all batches in all rounds. Everything is in it, the neighbour's noise too.

The slowdown is the Hodges-Lehmann estimate over pairs, its upper bound that of the signed-rank
test. The same from one process of each kind against the other of each is the noise: the preload is
on both sides of it.

Tables and JSON are written anew after each pair, so a killed run leaves what it knew.

Exits 1 when the paired figure's upper bound is over the budget, with fewer than ten pairs, or when
the single calls failed; 2 when an inference process failed.
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

STARTED = time.monotonic()
BUDGET = 0.01
CONFIDENCE = 0.95
FEWEST_PAIRS = 10
ROUNDS = 12
HOOK_COST_RUNS = 5
# Not the first, which takes most interrupts.
CORE = 2
SIDES = ("without", "with")
HERE = pathlib.Path(__file__).resolve().parent


def environment(preload, traces, seed="random", stacks=None):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GMMTRACE_")}
    # How Python lays out its dictionaries would otherwise differ within a pair.
    clean["PYTHONHASHSEED"] = str(seed)
    if preload:
        clean["LD_PRELOAD"] = preload
        clean["GMMTRACE_OUT"] = f"{traces}/overhead.%p.gmmt"
        # That of who runs this, by default the library's own.
        stacks = stacks or os.environ.get("GMMTRACE_STACKS")
        if stacks:
            clean["GMMTRACE_STACKS"] = stacks
    return clean


# --- inference: measuring ----------------------------------------------------------------------


class Worker:
    """A warm inference process."""

    def __init__(self, variables):
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "steady_loop.py"), str(CORE)],
            env=variables,
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

    def leave(self):
        self.process.stdin.close()

    def wait(self):
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def order(number, chooser):
    """Who takes the turns of a round: one side around the other, so that what changes steadily in
    the course of a round weighs on both sides alike."""
    outer, inner = SIDES if number % 2 else SIDES[::-1]
    first, second = chooser.sample((0, 1), 2), chooser.sample((0, 1), 2)
    return [(outer, first[0]), (inner, second[0]), (inner, second[1]), (outer, first[1])]


def one_pair(preload, traces, seed, chooser):
    """Seconds by side, process, round and batch, from processes of this pair's own."""
    names = chooser.sample(order(0, chooser), 4)
    workers = {}
    seconds = {side: [[], []] for side in SIDES}
    try:
        for side, which in names:
            variables = environment(preload if side == "with" else None, traces, seed)
            workers[side, which] = Worker(variables)
        for worker in workers.values():
            if worker.line() != "ready":
                raise RuntimeError("an inference process did not get ready")
        for number in range(ROUNDS):
            for side, which in order(number, chooser):
                seconds[side][which].append(workers[side, which].round())
    finally:
        for worker in workers.values():
            worker.leave()
        for worker in workers.values():
            worker.wait()
    return seconds


def measure_pairs(options):
    """Yields pairs, while there is time for one as long as the longest."""
    chooser = random.Random(0)
    longest = 0.0
    for number in range(options.pairs):
        began = time.monotonic()
        if began - STARTED + longest > options.seconds:
            return
        yield one_pair(options.preload, options.traces, number + 1, chooser)
        longest = max(longest, time.monotonic() - began)


# --- inference: figures ------------------------------------------------------------------------


def paired(measured, reference):
    """Both are lists of processes; a process is a list of rounds, a round a list of batches."""
    logs, weights = [], []
    for batch in range(len(reference[0][0])):
        ratios = [
            sum(math.log(process[number][batch]) for process in measured) / len(measured)
            - sum(math.log(process[number][batch]) for process in reference) / len(reference)
            for number in range(len(reference[0]))
        ]
        logs.append(statistics.median(ratios))
        weights.append(statistics.median(r[batch] for process in reference for r in process))
    return sum(map(math.prod, zip(logs, weights))) / sum(weights)


def log_ratio(seconds):
    """A figure from what one process took."""

    def figure(measured, reference):
        return (sum(math.log(seconds(rounds)) for rounds in measured) / len(measured)
                - sum(math.log(seconds(rounds)) for rounds in reference) / len(reference))

    return figure


FIGURES = {
    "paired": paired,
    "undisturbed": log_ratio(
        lambda rounds: sum(sorted(batch)[len(batch) // 4] for batch in zip(*rounds))
    ),
    "whole": log_ratio(lambda rounds: sum(map(sum, rounds))),
}


def arms(pair):
    """What is compared with what; the second comparison has both sides on both sides."""
    without, with_it = pair["without"], pair["with"]
    return {
        "preload": (with_it, without),
        "noise": ([without[0], with_it[0]], [without[1], with_it[1]]),
    }


def rank_margin(count):
    """How many of the Walsh averages of so many values may lie above the upper bound: the most
    that the signed-rank test leaves there at this confidence. None when there are too few values.
    """
    ways = [1]  # ways[sum of ranks], over all choices of signs
    for rank in range(1, count + 1):
        longer = ways + [0] * rank
        for total, number in enumerate(ways):
            longer[total + rank] += number
        ways = longer
    allowed = (1 - CONFIDENCE) * 2**count
    margin, seen = None, 0
    for total, number in enumerate(ways):
        seen += number
        if seen > allowed:
            break
        margin = total
    return margin


def summary(logs):
    """Of one figure's logarithms, one for each pair, as slowdowns (0.01 is 1 %)."""
    walsh = sorted(
        (first + second) / 2 for first, second in itertools.combinations_with_replacement(logs, 2)
    )
    margin = rank_margin(len(logs))
    return {
        "slowdown": math.expm1(statistics.median(walsh)),
        "upper_95": None if margin is None else math.expm1(walsh[-1 - margin]),
        "median": math.expm1(statistics.median(logs)),
        "mean": math.expm1(statistics.mean(logs)),
        "pairs": [math.expm1(value) for value in logs],
    }


def slowdowns(pairs):
    """By arm and figure."""
    if not pairs:
        return {}
    compared = [arms(pair) for pair in pairs]
    return {
        arm: {
            name: summary([figure(*pair[arm]) for pair in compared])
            for name, figure in FIGURES.items()
        }
        for arm in compared[0]
    }


# --- single calls ------------------------------------------------------------------------------


def hook_cost_run(options):
    """Turns of one process by call: nanoseconds through the hook, straight, and straight again."""
    out = subprocess.run(
        [options.hook_cost, str(CORE)],
        env=environment(options.preload, options.traces, stacks="off"),
        check=True, timeout=60, stdout=subprocess.PIPE, text=True,
    ).stdout
    (_, hooked), *lines = (line.split() for line in out.splitlines())
    if hooked != "1" and options.preload:
        raise RuntimeError("the preload does not stand before the driver's functions")
    found = {}
    for call, *nanoseconds in lines:
        found.setdefault(call, []).append([float(value) for value in nanoseconds])
    return found


def spread(differences):
    """Of one difference over the turns of several processes: the median of all, the middle half
    of the turns, and the lowest and highest median of a process."""
    every = list(itertools.chain(*differences))
    low, _, high = statistics.quantiles(every, n=4)
    medians = [statistics.median(process) for process in differences]
    return {
        "median": statistics.median(every),
        "middle_half": [low, high],
        "by_process": [min(medians), max(medians)],
    }


def hook_costs(options):
    """By call."""
    runs = [hook_cost_run(options) for _ in range(HOOK_COST_RUNS)]
    costs = {}
    for call in runs[0]:
        turns = [run[call] for run in runs]
        costs[call] = {
            "turns": sum(map(len, turns)),
            "through": statistics.median(turn[0] for run in turns for turn in run),
            "straight": statistics.median(turn[1] for run in turns for turn in run),
            "added": spread([[turn[0] - turn[1] for turn in run] for run in turns]),
            "noise": spread([[turn[2] - turn[1] for turn in run] for run in turns]),
        }
    return costs


# --- results -----------------------------------------------------------------------------------


def hook_table(costs, preloaded):
    if isinstance(costs, str):
        return [f"**Single calls were not measured: {costs}**"]
    lines = [
        "| ns of one call, in one process | straight to the driver | through the hook"
        " | difference | middle half of the turns | medians of the processes |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]

    def cells(figure):
        low, high = figure["middle_half"]
        least, most = figure["by_process"]
        return (f"{figure['median']:+,.0f} | {low:+,.0f} to {high:+,.0f} |"
                f" {least:+,.0f} to {most:+,.0f} |")

    for call, cost in costs.items():
        straight, through = (f"{cost[way]:,.0f}" for way in ("straight", "through"))
        if preloaded:
            lines.append(f"| `{call}` | {straight} | {through} | {cells(cost['added'])}")
        lines.append(f"| `{call}`, straight twice (noise) | {straight} | | {cells(cost['noise'])}")
    turns = next(iter(costs.values()))["turns"]
    return [*lines, "", f"{turns:,} turns of each call, in {HOOK_COST_RUNS} processes."]


def inference_table(results, preloaded):
    lines = [
        "| inference, ResNet-50, batches of 1 to 32 | figure | pairs | slowdown"
        " | upper 95 % bound | median of pairs | mean of pairs |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    stacks = os.environ.get("GMMTRACE_STACKS")
    named = f" and `GMMTRACE_STACKS={stacks}`" if stacks else ""
    titles = {"preload": f"with the preload{named}, against without", "noise": "one of each (noise)"}
    for arm, figures in results.items():
        for name, figure in figures.items() if preloaded or arm == "noise" else ():
            bound = "none" if figure["upper_95"] is None else f"{figure['upper_95']:+.2%}"
            lines.append(
                f"| {titles[arm]} | {name} | {len(figure['pairs'])} | {figure['slowdown']:+.2%} |"
                f" {bound} | {figure['median']:+.2%} | {figure['mean']:+.2%} |"
            )
    return lines


def verdict(results, pairs, preloaded):
    """What is wrong with the inference figure, or nothing."""
    if not preloaded:
        return None
    if len(pairs) < FEWEST_PAIRS:
        return f"only {len(pairs)} pairs were measured, {FEWEST_PAIRS} are needed"
    if results["preload"]["paired"]["upper_95"] > BUDGET:
        return f"the paired slowdown's upper bound is over the budget of {BUDGET:.0%}"
    return None


def write_whole(path, text):
    """A reader finds the old text or the new one, whenever this process is killed."""
    unfinished = pathlib.Path(f"{path}.part")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)


def publish(options, costs, pairs, ended):
    """Writes what is known; returns the table and what is wrong."""
    preloaded = bool(options.preload)
    results = slowdowns(pairs)
    wrong = verdict(results, pairs, preloaded)
    made = f"{len(pairs)} of {options.pairs} pairs"
    if not ended:
        made = f"**Cut short after {made}.**"
    elif len(pairs) < options.pairs:
        made = f"{made}: no time for more."
    else:
        made = f"{made}."
    lines = [*hook_table(costs, preloaded), "", *inference_table(results, preloaded), "", made, ""]
    if wrong:
        lines += [f"**{wrong}**", ""]
    rounded = [
        {side: [[[round(batch, 6) for batch in r] for r in process] for process in processes]
         for side, processes in pair.items()}
        for pair in pairs
    ]
    write_whole(options.json, json.dumps({
        "complete": ended, "pairs_wanted": options.pairs, "hook_cost_ns": costs,
        "inference": results, "pairs": rounded,
    }))
    table = "\n".join(lines)
    write_whole(options.markdown, table)
    return table, wrong


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hook-cost", required=True, help="the program hook_cost, built")
    parser.add_argument("--preload", help="libgmmtrace.so; without it only the noise is measured")
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=240,
                        help="when the last pair must have ended, from the start of this program")
    parser.add_argument("--traces", required=True, help="folder for the traces, which nobody reads")
    parser.add_argument("--markdown", required=True)
    parser.add_argument("--json", required=True)
    options = parser.parse_args()
    options.preload = options.preload and os.path.abspath(options.preload)
    return options


def main():
    options = parsed()
    # The long part is measured whatever becomes of the short one.
    try:
        costs = hook_costs(options)
    except (RuntimeError, subprocess.SubprocessError, OSError, ValueError) as error:
        costs = str(error)
    pairs = []
    publish(options, costs, pairs, ended=False)
    for pair in measure_pairs(options):
        pairs.append(pair)
        publish(options, costs, pairs, ended=False)
    table, wrong = publish(options, costs, pairs, ended=True)
    print(table)
    return 1 if wrong or isinstance(costs, str) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, subprocess.SubprocessError, OSError) as error:
        print(f"overhead.py: {error}", file=sys.stderr)
        sys.exit(2)
