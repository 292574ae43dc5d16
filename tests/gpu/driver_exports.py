"""Every export of the machine's libcuda.so.1 held against the table of hooks, and every name that
a runtime may ask for.

    driver_exports.py read FILE          without the preload: addresses of exports, answers of
                                         cuGetProcAddress to base names, versions and stream variants
    driver_exports.py compare FILE [--markdown FILE]
                                         with the preload: which of them lead to a hook

A hook is found by the address that the driver gives. So two exports at one address must both have
a hook or neither, and of the same function; and cuGetProcAddress must answer with an export.
Exits 1 when that is not so.
"""

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HOOKED = re.compile(r"^\| `(cu\w+)` \|", re.MULTILINE)
ROW = re.compile(r"^ROW\((\w+), (\d+), (\w+), (\w+)\)", re.MULTILINE)


def driver():
    cuda = ctypes.CDLL("libcuda.so.1")
    if cuda.cuInit(0) != 0:
        sys.exit("driver_exports.py: no driver")
    return cuda


def library_of(name):
    """The file of a loaded object."""
    with open("/proc/self/maps", encoding="utf-8") as lines:
        return next(line.split()[-1] for line in lines if f"/{name}" in line)


def exports(path):
    ran = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True,
                         text=True)
    words = (line.split() for line in ran.stdout.splitlines())
    return sorted({row[-1].split("@")[0] for row in words if len(row) == 3 and row[1] in "TtiW"})


def address(cuda, name):
    try:
        return ctypes.cast(getattr(cuda, name), ctypes.c_void_p).value
    except AttributeError:
        return None


def questions():
    """Base name, version, flags and symbol, from the table of the simulated driver."""
    text = (ROOT / "tests/fake-cuda/driver/table.inc").read_text(encoding="utf-8")
    for base, version, variant, symbol in ROW.findall(text):
        yield base, int(version), 2 if variant == "THREAD" else 0, symbol


def asked(cuda, base, version, flags):
    cuda.cuGetProcAddress_v2.argtypes = [
        ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_int),
    ]
    found, status = ctypes.c_void_p(), ctypes.c_int()
    result = cuda.cuGetProcAddress_v2(base.encode(), ctypes.byref(found), version, flags,
                                      ctypes.byref(status))
    return found.value if result == 0 else None


def hooked_names():
    text = (ROOT / "docs/hooks.md").read_text(encoding="utf-8")
    return set(HOOKED.findall(text.split("## Runtime")[0]))


def read(path):
    cuda = driver()
    names = exports(os.path.realpath(library_of("libcuda.so")))
    facts = {
        "exports": {name: address(cuda, name) for name in names},
        "asked": [
            [base, version, flags, symbol, asked(cuda, base, version, flags)]
            for base, version, flags, symbol in questions()
        ],
    }
    Path(path).write_text(json.dumps(facts), encoding="utf-8")
    print(f"{len(names)} exports")
    return 0


def ours():
    """Where gmmtrace's library lies."""
    ranges = []
    with open("/proc/self/maps", encoding="utf-8") as lines:
        for line in lines:
            if "libgmmtrace" in line:
                start, end = line.split()[0].split("-")
                ranges.append((int(start, 16), int(end, 16)))
    return ranges


def compare(path, markdown):
    facts = json.loads(Path(path).read_text(encoding="utf-8"))
    cuda, hooked, ranges = driver(), hooked_names(), ours()
    in_ours = lambda at: at is not None and any(start <= at < end for start, end in ranges)
    wrong = [] if ranges else ["gmmtrace is not preloaded"]
    by_address = {}
    for name, at in facts["exports"].items():
        by_address.setdefault(at, []).append(name)
    shared = [names for at, names in by_address.items() if at and len(names) > 1]
    for names in shared:
        rows = [name in hooked for name in names]
        if any(rows) and not all(rows):
            wrong.append(f"one address, and not all hooked: {names}")
        elif any(rows):
            wrong.append(f"one address, several rows: {names}")
    missing = sorted(hooked - facts["exports"].keys())
    # Names of newer or other drivers than this one may be missing, and are named.
    lookups = {"cuGetProcAddress", "cuGetProcAddress_v2"}
    for name in facts["exports"]:
        expected = name in hooked or name in lookups
        if name.startswith("cu") and in_ours(address(cuda, name)) != expected:
            wrong.append(f"dlsym of {name}: {'not ' if expected else ''}hooked")
    other, unknown, questions_asked = [], [], 0
    for base, version, flags, symbol, at in facts["asked"]:
        questions_asked += 1
        if at is None:
            unknown.append(f"{base} {version} {flags}")
            continue
        if at != facts["exports"].get(symbol):
            names = by_address.get(at, ["no export"])
            other.append(f"{base} {version} {flags}: {'/'.join(names)}, the table says {symbol}")
        answered = by_address.get(at, [])
        expected = any(name in hooked or name in lookups for name in answered)
        if in_ours(asked(cuda, base, version, flags)) != expected:
            wrong.append(f"cuGetProcAddress of {base} {version} {flags}: "
                         f"{'not ' if expected else ''}hooked")
    wrong += other
    lines = [
        "### Exports of the driver",
        "",
        f"- {len(facts['exports'])} exports at {len(by_address)} addresses",
        f"- exports at one address: {'; '.join(', '.join(n) for n in shared) or 'none'}",
        f"- hooked names that this driver does not export: {', '.join(missing) or 'none'}",
        f"- {questions_asked} questions to cuGetProcAddress; not answered: "
        f"{', '.join(unknown) or 'none'}",
        "",
        *(f"- **{fault}**" for fault in wrong),
        "",
    ]
    print(*lines, sep="\n")
    with open(markdown, "a", encoding="utf-8") as out:
        print(*lines, sep="\n", file=out)
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["read", "compare"])
    parser.add_argument("file")
    parser.add_argument("--markdown", default=os.devnull)
    options = parser.parse_args()
    return read(options.file) if options.what == "read" else compare(options.file, options.markdown)


if __name__ == "__main__":
    sys.exit(main())
