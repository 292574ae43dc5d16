"""One warm inference process: for each line on stdin it serves a round of batches and prints the
seconds of each, on one line. `overhead.py` keeps several of these and lets them take turns, so
start-up and warm-up are in no figure, and no two of them ever work at the same time."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
sys.dont_write_bytecode = True
import infer  # noqa: E402  (the path comes first)

BATCHES = 30
LARGEST = 32


def stay_on(core):
    """Keeps this thread, and only this one, on a core that all processes of a comparison use: cores
    of a virtual machine differ by what their other halves are doing."""
    if core in os.sched_getaffinity(0):
        os.sched_setaffinity(0, {core})


def main():
    model = infer.load_model("cuda")
    images = infer.waiting_images(LARGEST)
    sizes = infer.request_sizes(BATCHES, LARGEST, seed=1)
    # The first pass loads kernels, the second finds the allocator's cache filled.
    for _ in range(2):
        infer.serve(model, sizes, images, "cuda")
    stay_on(int(sys.argv[1]))
    print("ready", flush=True)
    for _ in sys.stdin:
        print(*(infer.serve(model, [size], images, "cuda") for size in sizes), flush=True)


if __name__ == "__main__":
    main()
