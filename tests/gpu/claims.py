"""Hold what programs say of themselves (programs/claims.h, moments.py) against their logs.

    claims.py TITLE --gmmtrace FILE --claims PREFIX --trace TEMPLATE [--markdown FILE]

Every file PREFIX.* is one process; its log is TEMPLATE with its id for `%p`. Lines of a file:

    pid N               the process
    equal PATH<TAB>N    the number at PATH in `gmmtrace report --format json`. `a.b` is a key in a
                        key; `a[key=text]` the element of the list `a` whose key has that value
    moment NAME<TAB>N   at the mark NAME, NVML shows N bytes for the process. `gmmtrace gap --at`
                        must show the same figure, and what it leaves unexplained must be below 2 %
                        of it or 64 MiB, whichever is more
    unknown PATH        the report knows nothing at PATH: null
    note TEXT           goes into the results
    complete            the program came to its end

Exits 1 when anything differs, 2 when an input cannot be read.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys

MIB = 1 << 20
UNEXPLAINED_BYTES = 64 * MIB
UNEXPLAINED_SHARE = 0.02
STEP = re.compile(r"([^.\[]+)(?:\[([^=\]]+)=([^\]]*)\])?(?:\.|$)")


def find(value, path):
    """The number at a path; None where there is none."""
    for key, by, text in STEP.findall(path):
        value = value.get(key) if isinstance(value, dict) else None
        if by:
            rows = value if isinstance(value, list) else []
            value = next((row for row in rows if str(row.get(by)) == text), None)
    return value


class Process:
    """One file of claims."""

    def __init__(self, path):
        self.equal, self.moments, self.notes = [], [], []
        self.pid, self.complete = None, False
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                word, _, rest = line.rstrip("\n").partition(" ")
                if word == "pid":
                    self.pid = int(rest)
                elif word == "note":
                    self.notes.append(rest)
                elif word == "unknown":
                    self.equal.append((rest, None))
                elif word == "complete":
                    self.complete = True
                else:
                    name, value = rest.split("\t")
                    list_of = self.equal if word == "equal" else self.moments
                    list_of.append((name, int(value)))


def ask(gmmtrace, *arguments):
    ran = subprocess.run([gmmtrace, *arguments], check=True, capture_output=True, text=True)
    return json.loads(ran.stdout)


def mebibytes(value):
    return "–" if value is None else f"{value / MIB:,.1f}"


def gap_rows(options, trace, process):
    """Table rows, and what is wrong with them."""
    rows, wrong = [], []
    for name, shown in process.moments:
        gap = ask(options.gmmtrace, "gap", trace, "--json", "--at", f"@{name}")["gap"]["last"]
        if gap is None:
            wrong.append(f"{name}: gap has no reading, NVML shows {shown:,}")
            continue
        pool = max(gap["async_pool_bytes"], gap["async_kept_bytes"])
        left = gap["unexplained_bytes"]
        allowed = max(UNEXPLAINED_BYTES, UNEXPLAINED_SHARE * gap["process_bytes"])
        fine = gap["process_bytes"] == shown and abs(left) < allowed
        objects = ", ".join(
            f"{mebibytes(one['bytes'])} {'+'.join(one['of'])}" for one in gap["objects"]
        )
        figures = (shown, gap["process_bytes"], gap["device_blocks_bytes"], pool,
                   gap["vmm_physical_bytes"], gap["array_bytes"], gap["graph_bytes"],
                   gap["objects_bytes"], left)
        rows.append(f"| {name} | {' | '.join(map(mebibytes, figures))} | {objects} | "
                    f"{'yes' if fine else '**no**'} |")
        if gap["process_bytes"] != shown:
            wrong.append(f"{name}: gap reads {gap['process_bytes']:,}, the program {shown:,}")
        if abs(left) >= allowed:
            wrong.append(f"{name}: {left:,} bytes of {shown:,} unexplained")
    return rows, wrong


def one(options, path):
    """Lines of text and faults of one process."""
    process = Process(path)
    trace = options.trace.replace("%p", str(process.pid))
    wrong = [] if process.complete else ["the program did not come to its end"]
    report = ask(options.gmmtrace, "report", trace, "--format", "json")
    report = report[0] if isinstance(report, list) else report
    with open(f"{path}.json", "w", encoding="utf-8") as file:
        json.dump(report, file)
    lines = [f"- {note}" for note in process.notes]
    if process.equal:
        lines += ["", "| figure | gmmtrace | the program | equal |", "| --- | ---: | ---: | --- |"]
    for name, expected in process.equal:
        found = find(report, name)
        same = found == expected
        said = "unknown" if found is None else f"{found:,}" if isinstance(found, int) else found
        claimed = "unknown" if expected is None else f"{expected:,}"
        lines.append(f"| {name} | {said} | {claimed} | {'yes' if same else '**no**'} |")
        if not same:
            wrong.append(f"{name}: gmmtrace {said}, the program {claimed}")
    losses = (report.get("coverage") or {}).get("losses") or {}
    if losses:
        wrong.append(f"losses: {losses}")
    if process.moments:
        lines += ["", "| MiB at | NVML | gap's reading | device blocks | pools | VMM | arrays | "
                  "graphs | objects | unexplained | of the objects | holds |",
                  "| --- " + "| ---: " * 9 + "| --- | --- |"]
        rows, faults = gap_rows(options, trace, process)
        lines += rows
        wrong += faults
    return lines, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("title")
    for name in ("gmmtrace", "claims", "trace"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--markdown", default=os.devnull)
    options = parser.parse_args()
    paths = [path for path in sorted(glob.glob(f"{options.claims}.*")) if not path.endswith(".json")]
    faults, text = [], []
    for number, path in enumerate(paths):
        title = options.title + (f", process {number + 1}" if len(paths) > 1 else "")
        lines, wrong = one(options, path)
        text += [f"### {title}", "", *lines, "", *(f"- **{fault}**" for fault in wrong)]
        text += [""] if wrong else []
        faults += wrong
    if not paths:
        faults.append("no process left a file of claims")
    with open(options.markdown, "a", encoding="utf-8") as out:
        print(*text, sep="\n", file=out)
    for fault in faults:
        print(f"{options.title}: {fault}")
    print(*text, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, KeyError, TypeError, subprocess.CalledProcessError) as error:
        print(f"claims.py: {error!r} {getattr(error, 'stderr', '')}", file=sys.stderr)
        sys.exit(2)
