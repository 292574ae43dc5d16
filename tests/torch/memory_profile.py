"""What torch.profiler says about memory on the CPU, in a form that two runs can be compared by."""

import torch
from torch.profiler import ProfilerActivity, profile


def work():
    tensors = [torch.randn(100 + index, 100) for index in range(50)]
    total = sum(float(tensor.sum()) for tensor in tensors)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.ones(32, 64)).sum().backward()
        optimizer.step()
    return total


torch.set_num_threads(1)
work()
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
    work()
for event in sorted(profiler.key_averages(), key=lambda event: event.key):
    print(event.key, event.count, event.cpu_memory_usage, event.self_cpu_memory_usage)
reports = [
    event.nbytes()
    for event in profiler.profiler.kineto_results.events()
    if event.name() == "[memory]"
]
taken = sum(size for size in reports if size > 0)
print(f"memory: {len(reports)} reports, {taken} bytes taken, {taken - sum(reports)} given back")
