"""Hold gmmtrace's torch ledger against PyTorch's own count and its list of blocks.

    compare.py TITLE --facts FILE --report FILE --dump FILE [--markdown FILE]

FACTS is what the process wrote about itself: for each device the figures of memory_stats, and at
each marked moment the blocks that were allocated. REPORT is `gmmtrace report --format json`, DUMP
is `gmmtrace dump`. `gmmtrace summary --json` will do as well. Prints a table, and appends it to the markdown file. Exits 1 when anything
differs, 2 when an input cannot be read.
"""

import argparse
import json
import re
import sys

BLOCK = re.compile(
    r"\btorch_(?P<what>alloc|free) pointer=(?P<address>0x[0-9a-f]+) bytes=(?P<bytes>\d+)"
    r".* device=(?P<device>\d+)"
)
MARK = re.compile(r'\bmark text="(?P<text>[^"]*)"')

# Ours beside PyTorch's. `torch` is a device of the section `torch`, `ledger` a device of the ledger.
FIGURES = (
    ("ledger", "allocs", "allocation.all.allocated"),
    ("ledger", "frees", "allocation.all.freed"),
    ("ledger", "live_count", "allocation.all.current"),
    ("ledger", "alloc_bytes", "allocated_bytes.all.allocated"),
    ("ledger", "free_bytes", "allocated_bytes.all.freed"),
    ("ledger", "live_bytes", "allocated_bytes.all.current"),
    ("ledger", "peak_bytes", "allocated_bytes.all.peak"),
    ("torch", "reserved_bytes", "reserved_bytes.all.current"),
    ("torch", "peak_reserved_bytes", "reserved_bytes.all.peak"),
    ("torch", "out_of_memory", "num_ooms"),
)


def live_at_marks(path):
    """The blocks that are live at each mark, by its text: address to bytes and device."""
    live, moments = {}, {}
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if mark := MARK.search(line):
                moments[mark["text"]] = dict(live)
            elif block := BLOCK.search(line):
                address = int(block["address"], 16)
                if block["what"] == "alloc":
                    live[address] = (int(block["bytes"]), int(block["device"]))
                else:
                    live.pop(address, None)
    return moments


def rows(facts, report, moments):
    """Name, ours, PyTorch's."""
    ledger = {row["gpu"]: row for row in (report["ledgers"]["torch"] or {}).get("by_gpu", [])}
    torch = {row["gpu"]: row for row in report["torch"]["devices"]}
    for gpu, stats in sorted(facts["devices"].items()):
        ours = {"ledger": ledger.get(int(gpu), {}), "torch": torch.get(int(gpu), {})}
        for place, key, theirs in FIGURES:
            yield f"GPU {gpu}: {theirs}", ours[place].get(key, 0), stats[theirs]
        yield f"GPU {gpu}: totals that differ", ours["torch"].get("mismatches", 0), 0
    for moment in facts["moments"]:
        name = moment["mark"]
        theirs = {block[1]: (block[2], block[0]) for block in moment["blocks"]}
        ours = moments.get(name, {})
        yield f"blocks at `{name}`", len(ours), len(theirs)
        different = sum(ours.get(at) != theirs.get(at) for at in ours.keys() | theirs.keys())
        yield f"blocks at `{name}` that differ", different, 0
    for key in ("overlaps", "unknown_frees"):
        yield key, report[key], 0
    yield "blocks in no segment", report["torch"]["outside"]["count"], 0
    yield "losses", len(report["coverage"]["losses"]), 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("title")
    for name in ("facts", "report", "dump"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--markdown")
    arguments = parser.parse_args()
    try:
        with open(arguments.facts, encoding="utf-8") as file:
            facts = json.load(file)
        with open(arguments.report, encoding="utf-8") as file:
            report = json.load(file)
        report = report[0] if isinstance(report, list) else report
        moments = live_at_marks(arguments.dump)
    except (OSError, ValueError) as error:
        print(f"compare.py: {error}", file=sys.stderr)
        return 2
    found = list(rows(facts, report, moments))
    wrong = [row for row in found if row[1] != row[2]]
    lines = [f"### {arguments.title}", "", "| figure | gmmtrace | PyTorch | |", "| --- | ---: | ---: | --- |"]
    for name, ours, theirs in found:
        lines.append(f"| {name} | {ours:,} | {theirs:,} | {'equal' if ours == theirs else '**differs**'} |")
    text = "\n".join(lines) + "\n\n"
    print(text)
    if arguments.markdown:
        with open(arguments.markdown, "a", encoding="utf-8") as file:
            file.write(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
