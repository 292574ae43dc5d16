"""Classify images with a ResNet-50, in batches whose size varies from request to request.

    gmmtrace run -- python examples/infer.py
    gmmtrace run -- python examples/infer.py --batches 500 --max-batch 64

The weights are random and the images noise, so nothing is downloaded; memory behaves as in a real
service: weights once, activations by batch size, workspaces of cuBLAS and cuDNN beside them.
"""

import argparse
import random
import time

import torch
import torchvision


def load_model(device):
    torch.manual_seed(0)
    return torchvision.models.resnet50(weights=None).eval().to(device)


def request_sizes(batches, max_batch, seed=0):
    """How many images each request brings."""
    chooser = random.Random(seed)
    return [chooser.randint(1, max_batch) for _ in range(batches)]


def waiting_images(max_batch):
    """Decoded images in pinned memory, as a data loader with pin_memory leaves them."""
    return torch.rand(max_batch, 3, 224, 224).pin_memory()


@torch.no_grad()
def classify(model, images, device):
    scores = model(images.to(device, non_blocking=True))
    return scores.argmax(dim=1).tolist()


def serve(model, sizes, images, device):
    """Answer every request; returns the seconds it took."""
    start = time.perf_counter()
    for size in sizes:
        classify(model, images[:size], device)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--max-batch", type=int, default=32)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()

    model = load_model(options.device)
    sizes = request_sizes(options.batches, options.max_batch)
    images = waiting_images(options.max_batch)
    seconds = serve(model, sizes, images, options.device)
    print(f"{sum(sizes)} images in {len(sizes)} batches: {sum(sizes) / seconds:.1f} images/s")


if __name__ == "__main__":
    main()
