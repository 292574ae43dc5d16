"""Hold gmmtrace's report of one process against CUPTI's records of the same process.

    compare.py NAME [--cupti FILE] [--report FILE] [--tally FILE] [--dump FILE] --markdown FILE

With the dump the memory records are compared one by one as well (records.py).
Appends one table to the markdown file: figure, gmmtrace, CUPTI, the program's own count where it
keeps one, and whether they are equal. Exits 1 when two of them differ, when CUPTI dropped a record
or when an observer did not finish; 2 when an input cannot be read.
"""

import argparse
import json
import sys

import records

# What CUPTI has no record for; the program's own count stands in (README.md says how we know).
UNSEEN_BY_CUPTI = (
    "registered.", "vmm_address.", "vmm_mapped.", "vmm_physical.", "vmm_host.", "imported.", "graph.",
)
# What CUPTI puts into one kind and gmmtrace keeps apart: a mapping of virtual memory is device
# memory to it, a registered range is pinned memory.
MERGED_BY_CUPTI = {"device": "vmm_mapped", "pinned": "registered"}
# What gmmtrace does not count by design: globals of modules, and what launches of graphs do.
UNSEEN_BY_GMMTRACE = ("device_static.", "managed_static.", "graph_copy.", "graph_set.")
# The programs do not count arrays.
UNSEEN_BY_PROGRAM = (*UNSEEN_BY_GMMTRACE, "array.")
# What the collector says of itself.
COLLECTOR = ("complete", "dropped", "errors", "records", "other_records")
FIGURES = ("allocs", "alloc_bytes", "frees", "free_bytes")
ALWAYS_SHOWN = tuple(
    f"{ledger}.{figure}" for ledger in ("device", "managed", "pinned") for figure in FIGURES
)


def read_sums(path):
    """`key value` lines; lines about single records are passed over."""
    with open(path, encoding="utf-8") as lines:
        pairs = [line.split() for line in lines if not line.startswith("record ")]
    return {key: int(value) for key, value in pairs}


def from_report(report):
    """The report's figures under the collector's keys; an unknown one is None."""
    sums = {}
    for name, ledger in report["ledgers"].items():
        if name == "torch":  # blocks of PyTorch's, which nobody here can see
            continue
        for figure in (*FIGURES, "failed"):
            sums[f"{name}.{figure}"] = ledger and ledger.get(figure)
    for copy in report["copies"]:
        for figure in ("count", "bytes"):
            key = f"copy.{copy['direction']}.{figure}"
            sums[key] = sums.get(key, 0) + copy[figure]
        # CUPTI has no record of a copy of 0 bytes.
        sums[f"copy.{copy['direction']}.count"] -= copy["empty"]
    for figure in ("count", "bytes"):
        sums[f"set.{figure}"] = report["sets"][figure]
    sums["set.count"] -= report["sets"]["empty"]
    return sums


class Observer:
    """One source of figures; what it never saw counts as zero, unless it is blind there."""

    def __init__(self, sums, blind=()):
        self.sums = sums
        self.blind = blind

    def figure(self, key):
        """A number, None for unknown, or False where this observer cannot tell."""
        if self.sums is None or key.startswith(self.blind):
            return False
        return self.sums.get(key, 0)


def merge(observers, cupti):
    """Adds rows for what CUPTI sees as one kind, where there is more than the first ledger in it,
    and leaves those ledgers' own rows to the others. Returns the keys CUPTI is blind to."""
    blind = UNSEEN_BY_CUPTI
    for first, second in MERGED_BY_CUPTI.items():
        if not any((sums or {}).get(f"{second}.allocs") for sums in observers):
            continue
        blind += (f"{first}.",)
        for figure in FIGURES:
            merged = f"{first} + {second}.{figure}"
            if cupti is not None:
                cupti[merged] = cupti.pop(f"{first}.{figure}", 0)
            for sums in observers:
                if sums is not None:
                    parts = (sums.get(f"{name}.{figure}", 0) for name in (first, second))
                    sums[merged] = sum(part or 0 for part in parts)
    return blind


def rows(gmmtrace, cupti, tally):
    """Key and the three figures, for every key that anyone counted."""
    keys = set(ALWAYS_SHOWN)
    for observer in (gmmtrace, cupti, tally):
        keys.update(key for key, value in (observer.sums or {}).items() if value != 0)
    for key in sorted(keys - set(COLLECTOR)):
        by_cupti = False if key.endswith(".failed") else cupti.figure(key)
        counted = tally.figure(key)
        # A program's count says nothing about calls that it did not mean to count.
        if key.endswith(".failed") and key not in (tally.sums or {}):
            counted = False
        # What only gmmtrace can see is no comparison.
        if by_cupti is False and counted is False:
            continue
        yield key, gmmtrace.figure(key), by_cupti, counted


def equal(figures):
    """Whether the observers that can tell agree; None when fewer than two can."""
    known = [figure for figure in figures if figure is not False]
    if len(known) < 2:
        return None
    return None not in known and len(set(known)) == 1


def cell(figure):
    if figure is False:
        return ""
    return "unknown" if figure is None else f"{figure:,}"


def table(name, compared):
    lines = [
        f"### {name}",
        "",
        "| figure | gmmtrace | CUPTI | the program's count | equal |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    words = {True: "yes", False: "**no**", None: "–"}
    for key, *figures in compared:
        lines.append(f"| {key} | {' | '.join(map(cell, figures))} | {words[equal(figures)]} |")
    return lines


def faults(compared, cupti, tally, report):
    """Everything that must not be, in words."""
    found = [
        f"{key} differs: gmmtrace {cell(gmmtrace)}, CUPTI {cell(by_cupti)}, program {cell(counted)}"
        for key, gmmtrace, by_cupti, counted in compared
        if equal((gmmtrace, by_cupti, counted)) is False
    ]
    for word in ("dropped", "errors", "other_records"):
        if cupti is not None and cupti.get(word, 0) != 0:
            found.append(f"CUPTI: {word} {cupti[word]}")
    if cupti is not None and "complete" not in cupti:
        found.append("the CUPTI collector did not finish")
    if tally is not None and "complete" not in tally:
        found.append("the program did not finish its count")
    if report is not None and any(losses(report).values()):
        found.append(f"gmmtrace lost events: {losses(report)}")
    return found


def losses(report):
    """The report's loss counters, by cause."""
    counted = (report.get("coverage") or {}).get("losses") or {}
    return {cause: count for cause, count in counted.items() if isinstance(count, int) and count}


def record_by_record(options, cupti):
    """Lines to print, and faults. Adds to CUPTI's sums what it is known not to see."""
    theirs, ours, unseen = records.compare(options.dump, options.cupti)
    for (what, ledger, _, size), count in unseen.items():
        for figure, amount in ((f"{what}s", count), (f"{what}_bytes", count * size)):
            cupti[f"{ledger}.{figure}"] = cupti.get(f"{ledger}.{figure}", 0) + amount
    total = sum(records.of_cupti(options.cupti).values())
    lines = [f"One by one, with addresses: {total - sum(theirs.values()):,} of {total:,} memory "
             "records of CUPTI are in the log."]
    if unseen:
        lines.append(f"Counted as CUPTI's as well: {sum(unseen.values())} records of threads that "
                     "had not copied or set anything yet, which CUPTI does not see (README.md).")
    found = [f"{name} alone has {count} × {record}" for name, many in (("CUPTI", theirs),
             ("gmmtrace", ours)) for record, count in list(many.items())[:5]]
    return lines, found


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--cupti", help="what the collector wrote")
    parser.add_argument("--report", help="what `gmmtrace report --format json` printed")
    parser.add_argument("--tally", help="the program's own count")
    parser.add_argument("--dump", help="what `gmmtrace dump` printed")
    parser.add_argument("--markdown", required=True)
    return parser.parse_args()


def main():
    options = parsed()
    cupti = read_sums(options.cupti) if options.cupti else None
    tally = read_sums(options.tally) if options.tally else None
    report = None
    if options.report:
        with open(options.report, encoding="utf-8") as source:
            report = json.load(source)
    ours = from_report(report) if report else None
    one_by_one, odd = [], []
    if cupti is not None and options.dump:
        one_by_one, odd = record_by_record(options, cupti)
    blind = merge([ours, tally], cupti)
    compared = list(rows(
        Observer(ours, UNSEEN_BY_GMMTRACE),
        Observer(cupti, blind),
        Observer(tally, UNSEEN_BY_PROGRAM),
    ))
    wrong = faults(compared, cupti, tally, report) + odd
    with open(options.markdown, "a", encoding="utf-8") as out:
        print(*table(options.name, compared), "", sep="\n", file=out)
        if cupti is not None:
            seen, lost = cupti.get("records", 0), cupti.get("dropped", 0)
            print(f"CUPTI: {seen:,} records, {lost} dropped.", *one_by_one, "", sep="\n", file=out)
        for fault in wrong:
            print(f"- **{fault}**", file=out)
        if wrong:
            print(file=out)
    for fault in wrong:
        print(f"{options.name}: {fault}")
    print(f"{options.name}: {len(compared)} figures, {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"compare.py: {error!r}", file=sys.stderr)
        sys.exit(2)
