"""Train steps of transformers' Longformer. Runs in the peer's environment, without Keras."""

import importlib.metadata

import torch
import transformers

from benchmarks.harness.process import serve
from benchmarks.windows import rows


def prepare(job):
    """Returns the train step of a new model, and the versions.

    Args:
        job: dictionary with `sizes`, `vocabulary_size`, `length` and `window`.
    """
    torch.manual_seed(1)
    sizes = job["sizes"]
    model = transformers.LongformerForMaskedLM(
        transformers.LongformerConfig(
            vocab_size=job["vocabulary_size"],
            hidden_size=sizes["hidden_dim"],
            num_hidden_layers=sizes["num_layers"],
            num_attention_heads=sizes["num_heads"],
            intermediate_size=sizes["intermediate_dim"],
            attention_window=2 * job["window"],
            max_position_embeddings=job["length"] + 2,
            type_vocab_size=1,
            hidden_dropout_prob=rows.DROPOUT,
            attention_probs_dropout_prob=rows.DROPOUT,
        )
    ).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=rows.LEARNING_RATE, weight_decay=0.01, fused=True
    )
    text = rows.one_text(job["vocabulary_size"], job["length"])
    token_ids, positions, labels = (torch.from_numpy(x).long() for x in text)
    seen_by_all = torch.zeros_like(token_ids)
    seen_by_all[:, 0] = 1
    losses = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        hidden = model.longformer(
            token_ids, torch.ones_like(token_ids), global_attention_mask=seen_by_all
        ).last_hidden_state
        logits = model.lm_head(hidden[0, positions[0]])  # of the masked tokens, like ours
        loss = losses(logits, labels[0])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return {"loss": loss.item()}

    names = ("torch", "transformers", "numpy")
    return step, {"versions": {name: importlib.metadata.version(name) for name in names}}


if __name__ == "__main__":
    serve(prepare, rows.WARM_UP_STEPS)
