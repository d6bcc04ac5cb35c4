"""Train steps of transformers' BERT on torch. A process of its own: `benchmarks.gpu` starts it."""

import time

import torch

from benchmarks.gpu.outcome import outcome
from benchmarks.harness.process import answer
from benchmarks.training import batch as batches
from benchmarks.training.torch_steps import prepare


def work(job, tick):
    """Does what `benchmarks.gpu.case` does; `torch.compile` compiles on GPUs."""
    is_gpu = torch.cuda.is_available()
    device = "cuda" if is_gpu else "cpu"
    step, facts = prepare({**job, "head": "masked", "compile": is_gpu, "device": device})
    seconds, losses = [], []
    for _ in range(batches.WARM_UP_STEPS + job["steps"]):
        started = time.perf_counter()
        losses.append(step()["loss"])  # a number, so the step is done
        seconds.append(time.perf_counter() - started)
    tick()
    peak = torch.cuda.max_memory_allocated() if is_gpu else None
    name = torch.cuda.get_device_name() if is_gpu else "cpu"
    return {**outcome(seconds, losses, peak), "device": name, "versions": facts["versions"]}


if __name__ == "__main__":
    answer(work)
