"""Hugging Face's BERT on torch. Runs in the peer's environment, without Keras."""

import contextlib
import importlib.metadata
import os

import torch
import transformers

from benchmarks.harness.process import serve
from benchmarks.training import batch as batches


def prepare(job):
    """Returns the train step of a new model, and the versions.

    Args:
        job: dictionary with `sizes`, `vocabulary_size`, `batch_size`, `length`, `precision`, and
            `head`: `"masked"` computes vocabulary logits at masked tokens only, with the parts of
            `BertForMaskedLM`, `"all"` at all tokens, as that class does by itself; and `compile`:
            whether `torch.compile` compiles forward and backward pass, which takes a C++ compiler.
            `device` is where it is trained, by default `"cpu"`.
    """
    torch.manual_seed(1)
    device = job.get("device", "cpu")
    model = _model(job).to(device)
    optimizer = torch.optim.AdamW(  # fused: the default of transformers' own trainer
        model.parameters(), lr=batches.LEARNING_RATE, weight_decay=0.01, fused=True
    )
    _make_state(model, optimizer)
    loss_of = _loss(model, job)
    if job["compile"]:
        loss_of = torch.compile(loss_of)

    def step():
        half = job["precision"] == "bfloat16"
        with torch.autocast(device, torch.bfloat16) if half else contextlib.nullcontext():
            loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return {"loss": loss.item()}

    names = ("torch", "transformers", "numpy")
    return step, {
        "versions": {name: importlib.metadata.version(name) for name in names},
        "attention": model.config._attn_implementation,
        "torch_compile": job["compile"],
        "threads": torch.get_num_threads(),
        "omp_wait_policy": os.environ.get("OMP_WAIT_POLICY", "default"),
    }


def _model(job):
    sizes = job["sizes"]
    return transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=job["vocabulary_size"],
            hidden_size=sizes["hidden_dim"],
            num_hidden_layers=sizes["num_layers"],
            num_attention_heads=sizes["num_heads"],
            intermediate_size=sizes["intermediate_dim"],
            max_position_embeddings=job["length"],
            hidden_dropout_prob=batches.DROPOUT,
            attention_probs_dropout_prob=batches.DROPOUT,
        )
    ).train()


def _make_state(model, optimizer):
    """Makes the optimizer's state, which torch would make in the first step; changes no weight."""
    rates = [group["lr"] for group in optimizer.param_groups]
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
    optimizer.zero_grad()


def _loss(model, job):
    """Returns a function without arguments: the mean loss of masked tokens."""
    arrays = batches.batch(job["vocabulary_size"], job["batch_size"], job["length"])
    tensors = (torch.from_numpy(array).to(model.device) for array in arrays)
    token_ids, places, labels, weights = tensors
    token_ids, places, labels = token_ids.long(), places.long(), labels.long()
    mask = torch.ones_like(token_ids)
    if job["head"] == "all":
        ignored = torch.nn.CrossEntropyLoss().ignore_index
        all_labels = torch.full_like(token_ids, ignored).scatter_(1, places, labels)
        return lambda: model(input_ids=token_ids, attention_mask=mask, labels=all_labels).loss
    index = places[:, :, None].expand(-1, -1, job["sizes"]["hidden_dim"])
    losses_of = torch.nn.CrossEntropyLoss(reduction="none")

    def loss():
        hidden = model.bert(input_ids=token_ids, attention_mask=mask).last_hidden_state
        logits = model.cls(torch.gather(hidden, 1, index)).flatten(0, 1)
        losses = losses_of(logits.float(), labels.flatten())
        return (losses * weights.flatten()).sum() / weights.sum()

    return loss


if __name__ == "__main__":
    serve(prepare, batches.WARM_UP_STEPS)
