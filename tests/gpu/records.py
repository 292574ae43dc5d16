"""Memory records of a process one by one: gmmtrace's dump against CUPTI's records.

A record is what happened (taken or given back), in which kind of memory, at which address, and of
how many bytes. All of CUPTI's must be in the dump, as often. What the dump has beyond must be what
CUPTI is known not to see (README.md): a thread has no record until it first copies, sets or
launches.
"""

import re
from collections import Counter

LINE = re.compile(r"\d+ (\d+) (\w+) (.*)")
TAKES = {
    "device_alloc": "device", "map": "device", "managed_alloc": "managed",
    "pinned_alloc": "pinned", "host_register": "pinned", "pool_alloc": "async_pool",
}
GIVES = ("free", "unmap", "pinned_free", "host_unregister", "pool_free")
POINTER, BYTES = re.compile(r"pointer=(0x[0-9a-f]+)"), re.compile(r"bytes=(\d+)")
CUPTI = re.compile(r"record (alloc|free) (\w+) (0x[0-9a-f]+) (\d+)")


def of_cupti(path):
    found = Counter()
    with open(path, encoding="utf-8") as lines:
        for match in map(CUPTI.match, lines):
            if match and not match[2].endswith("_static") and match[2] != "array":
                found[match[1], match[2], int(match[3], 16), int(match[4])] += 1
    return found


def of_dump(path):
    """All records, and of them those of threads that had not copied or set anything yet."""
    found, early, live, busy = Counter(), Counter(), {}, set()
    with open(path, encoding="utf-8", errors="replace") as lines:
        for match in map(LINE.match, lines):
            if not match or " status=" in match[3] or " captured" in match[3]:
                continue
            thread, kind, rest = match.groups()
            if kind in ("copy", "set"):
                busy.add(thread)
                continue
            pointer = POINTER.search(rest) if kind in TAKES or kind in GIVES else None
            address = int(pointer[1], 16) if pointer else 0
            if address == 0:
                continue
            if kind in TAKES:
                ledger, size = TAKES[kind], int(BYTES.search(rest)[1])
                live[address] = (ledger, size)
                record = ("alloc", ledger, address, size)
            elif address in live:
                record = ("free", live[address][0], address, live.pop(address)[1])
            else:
                continue
            found[record] += 1
            if thread not in busy:
                early[record] += 1
    return found, early


def compare(dump, cupti):
    """What CUPTI alone has, what the dump alone has without an excuse, and what with one."""
    ours, early = of_dump(dump)
    theirs = of_cupti(cupti)
    beyond = ours - theirs
    return theirs - ours, beyond - early, beyond & early
