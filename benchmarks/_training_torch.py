"""Hugging Face's BERT on torch, CPU. Runs in the peer's environment, without Keras."""

import contextlib
import importlib.metadata

import torch
import transformers

from benchmarks import _training_batch, _training_worker


def prepare(job):
    """Returns the train step of a new model, and the versions.

    Args:
        job: dictionary with `sizes`, `vocabulary_size`, `batch_size`, `length`, `precision`, and
            `head`: `"masked"` computes vocabulary logits at masked tokens only, which
            `BertForMaskedLM` can but does not do by itself, `"all"` at all tokens, as it does.
    """
    torch.manual_seed(1)
    sizes = job["sizes"]
    model = transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=job["vocabulary_size"],
            hidden_size=sizes["hidden_dim"],
            num_hidden_layers=sizes["num_layers"],
            num_attention_heads=sizes["num_heads"],
            intermediate_size=sizes["intermediate_dim"],
            max_position_embeddings=job["length"],
            hidden_dropout_prob=_training_batch.DROPOUT,
            attention_probs_dropout_prob=_training_batch.DROPOUT,
        )
    )
    model.train()
    optimizer = torch.optim.AdamW(  # fused: the default of transformers' own trainer
        model.parameters(), lr=_training_batch.LEARNING_RATE, weight_decay=0.01, fused=True
    )
    arrays = _training_batch.batch(job["vocabulary_size"], job["batch_size"], job["length"])
    token_ids, places, labels, weights = map(torch.from_numpy, arrays)
    token_ids, places, labels = token_ids.long(), places.long(), labels.long()
    mask = torch.ones_like(token_ids)
    all_labels = torch.full_like(token_ids, -100).scatter_(1, places, labels)
    index = places[:, :, None].expand(-1, -1, sizes["hidden_dim"])
    loss_function = torch.nn.CrossEntropyLoss(reduction="none")

    def loss_of_masked():
        hidden = model.bert(input_ids=token_ids, attention_mask=mask).last_hidden_state
        logits = model.cls(torch.gather(hidden, 1, index))
        losses = loss_function(logits.flatten(0, 1).float(), labels.flatten())
        return (losses * weights.flatten()).sum() / weights.sum()

    def loss_of_all():
        return model(input_ids=token_ids, attention_mask=mask, labels=all_labels).loss

    loss_of = loss_of_masked if job["head"] == "masked" else loss_of_all

    def step():
        half = job["precision"] == "bfloat16"
        with torch.autocast("cpu", torch.bfloat16) if half else contextlib.nullcontext():
            loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    names = ("torch", "transformers", "numpy")
    return step, {
        "versions": {name: importlib.metadata.version(name) for name in names},
        "attention": model.config._attn_implementation,
        "threads": torch.get_num_threads(),
    }


if __name__ == "__main__":
    _training_worker.serve(prepare)
