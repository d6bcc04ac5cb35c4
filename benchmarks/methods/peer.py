"""Times and memory of Hugging Face's BERT. Runs in the peer's environment, without Keras.

`benchmarks.methods` starts it with the Python of that environment.
"""

import functools
import importlib.metadata
import os

import numpy as np
import torch
import transformers

from benchmarks.harness import memory
from benchmarks.harness.process import answer
from benchmarks.methods import times


def build(job, kind):
    """Returns train and inference of a new model, and its number of parameters.

    The two functions take token ids, mask and targets and return when the result is there.
    """
    torch.manual_seed(1)
    sizes = job["sizes"]
    model = transformers.BertModel(
        transformers.BertConfig(
            vocab_size=job["vocabulary_size"],
            hidden_size=sizes["hidden_dim"],
            num_hidden_layers=sizes["num_layers"],
            num_attention_heads=sizes["num_heads"],
            intermediate_size=sizes["intermediate_dim"],
            max_position_embeddings=job["length"],
            position_embedding_type=kind,
            attn_implementation="eager",
        ),
        add_pooling_layer=False,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=job["learning_rate"])

    def train(token_ids, mask, targets):
        model.train()
        optimizer.zero_grad()
        hidden = model(input_ids=token_ids, attention_mask=mask).last_hidden_state
        loss = torch.nn.functional.mse_loss(hidden, targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    def inference(token_ids, mask, targets):
        model.eval()
        with torch.inference_mode():
            return model(input_ids=token_ids, attention_mask=mask).last_hidden_state.numpy()

    return train, inference, sum(weight.numel() for weight in model.parameters())


def batch(job, batch_size, length):
    """Returns token ids, mask and targets, always the same."""
    generator = np.random.default_rng(0)
    token_ids = generator.integers(5, job["vocabulary_size"], (batch_size, length))
    shape = (batch_size, length, job["sizes"]["hidden_dim"])
    targets = generator.standard_normal(shape, "float32")
    token_ids = torch.from_numpy(token_ids)
    return token_ids, torch.ones_like(token_ids), torch.from_numpy(targets)


def work(job, tick):
    """Times all kinds in interleaved rounds, or measures the memory of one if `memory` is set.

    Args:
        job: dictionary with `kinds`, `sizes`, `vocabulary_size`, `length`, `batch_size`,
            `learning_rate`, `rounds` and `memory`.
        tick: called after each model that is ready and after each of a round.

    Returns:
        The peak memory in MiB, or a dictionary of `rows` and `versions`.
    """
    arguments = batch(job, job["batch_size"], job["length"])
    if job["memory"]:
        train, _, _ = build(job, job["kinds"][0])
        small = batch(job, *memory.SMALL)
        return memory.peak_mib(lambda: train(*small), lambda: train(*arguments))
    steps, parameters = {}, {}
    for kind in job["kinds"]:
        train, inference, parameters[kind] = build(job, kind)
        steps[kind] = tuple(functools.partial(step, *arguments) for step in (train, inference))
        for step in steps[kind]:
            step()
        tick()
    rows = times.measure(steps, job["rounds"], tick)
    names = ("torch", "transformers", "numpy")
    return {
        "rows": [{**row, "parameters": parameters[kind]} for kind, row in rows.items()],
        "versions": {name: importlib.metadata.version(name) for name in names},
        "threads": torch.get_num_threads(),
        # with the default, threads that wait spin, and whatever else runs costs several times more
        "omp_wait_policy": os.environ.get("OMP_WAIT_POLICY", "default"),
    }


if __name__ == "__main__":
    answer(work)
