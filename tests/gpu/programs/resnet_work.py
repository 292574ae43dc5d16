"""ResNet-50 in PyTorch, random weights.

    resnet_work.py train|infer [ROUNDS]
"""

import sys
from pathlib import Path

import torch
import torchvision

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import moments


def images(rows):
    return torch.rand(rows, 3, 224, 224).pin_memory().cuda(non_blocking=True)


def train(model, rounds):
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for index in range(rounds):
        rows = 8 * (1 + index % 4)
        labels = torch.randint(0, 1000, (rows,), device="cuda")
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(images(rows)), labels).backward()
        optimizer.step()


@torch.inference_mode()
def infer(model, rounds):
    model.eval()
    for index in range(rounds):
        model(images(1 + index % 32)).argmax(1).cpu()


def main():
    mode, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 16
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    moments.at("start", torch.cuda.synchronize)
    model = torchvision.models.resnet50(weights=None).cuda()
    {"train": train, "infer": infer}[mode](model, rounds)
    moments.at("peak", torch.cuda.synchronize)
    del model
    torch.cuda.empty_cache()
    moments.at("end", torch.cuda.synchronize)
    moments.write()


main()
