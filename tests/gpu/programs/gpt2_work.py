"""A GPT-2-shaped transformer in PyTorch, random weights.

    gpt2_work.py train|infer|graphs [ROUNDS]

`graphs` captures inference of two shapes with a private pool each and replays them.
"""

import sys
from pathlib import Path

import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import moments

CONFIG = transformers.GPT2Config(n_layer=6, n_embd=512, n_head=8, n_positions=512)


def tokens(batch, length):
    return torch.randint(0, CONFIG.vocab_size, (batch, length), device="cuda")


def train(model, rounds):
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for index in range(rounds):
        batch = tokens(1 + index % 4, 128 + 32 * (index % 5))
        optimizer.zero_grad(set_to_none=True)
        model(batch, labels=batch).loss.backward()
        optimizer.step()


@torch.inference_mode()
def infer(model, rounds):
    for index in range(rounds):
        model.generate(
            tokens(1 + index % 8, 64 + index), max_new_tokens=8, do_sample=False, pad_token_id=0
        )
        model(tokens(8, 256)).logits.argmax(-1).cpu()


@torch.inference_mode()
def graphs(model, rounds):
    kept = []
    for length in (64, 200):
        batch = tokens(4, length)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                model(batch, use_cache=False)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            logits = model(batch, use_cache=False).logits
        kept.append((graph, batch, logits))
    for index in range(rounds):
        graph, batch, logits = kept[index % 2]
        batch.copy_(tokens(*batch.shape))
        graph.replay()
        logits.argmax(-1).cpu()
    return kept


def main():
    mode, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    moments.at("start", torch.cuda.synchronize)
    model = transformers.GPT2LMHeadModel(CONFIG).cuda().eval()
    kept = {"train": train, "infer": infer, "graphs": graphs}[mode](model, rounds)
    moments.at("peak", torch.cuda.synchronize)
    del kept, model
    torch.cuda.empty_cache()
    moments.at("end", torch.cuda.synchronize)
    if torch.cuda.get_allocator_backend() == "cudaMallocAsync":
        moments.unknown("ledgers.torch")  # its blocks are in async_pool
    moments.write()


main()
