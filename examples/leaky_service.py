"""A service whose memory grows with every request: it keeps each answer, on the GPU.

    gmmtrace run -- python examples/leaky_service.py
    gmmtrace run -- python examples/leaky_service.py --fixed

The list looks harmless: "the last answers, for the status page". It holds GPU tensors and is never
cut. `--fixed` keeps the answers on the host and only the last 100 of them.
"""

import argparse
import collections

import torch
import torchvision


class Embedder:
    """Turns images into feature maps."""

    def __init__(self, device):
        self.device = device
        network = torchvision.models.resnet18(weights=None)
        self.body = torch.nn.Sequential(*list(network.children())[:-2]).eval().to(device)

    @torch.no_grad()
    def embed(self, images):
        return self.body(images.to(self.device))


class Service:
    def __init__(self, embedder):
        self.embedder = embedder
        self.recent_answers = []

    def handle(self, request):
        answer = self.embedder.embed(request)
        self.recent_answers.append(answer)
        return answer.mean().item()


class FixedService(Service):
    def __init__(self, embedder):
        super().__init__(embedder)
        self.recent_answers = collections.deque(maxlen=100)

    def handle(self, request):
        answer = self.embedder.embed(request)
        self.recent_answers.append(answer.cpu())
        return answer.mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--fixed", action="store_true", help="do not keep answers on the GPU")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()

    embedder = Embedder(options.device)
    service = FixedService(embedder) if options.fixed else Service(embedder)
    images = torch.rand(8, 3, 224, 224)
    for number in range(1, options.requests + 1):
        service.handle(images[: 1 + number % 8])
        if number % 50 == 0:
            used = torch.cuda.memory_allocated() / 2**20
            print(f"request {number}: {used:.0f} MiB of tensors on the GPU")


if __name__ == "__main__":
    main()
