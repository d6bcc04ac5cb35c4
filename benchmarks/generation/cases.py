"""The models that write, and how."""

import dataclasses

import keras_hub
import numpy as np
from keras import ops

from keras_tupe import SIZES, TupeBackbone, TupeCausalLM

BASELINE = "absolute"
PEER = "KerasHub's GPT-2"
UNCACHED = "absolute, no cache"
VOCABULARY_SIZE = 8192
UNCACHED_TOKENS = 8  # each costs the same


class WithoutCache(TupeCausalLM):
    """A causal language model that calls itself on all positions for every token."""

    def generate_step(self, inputs, stop_token_ids=None):
        mask = ops.cast(inputs["padding_mask"], "bool")

        def next(prompt, cache, index):
            given = {"token_ids": prompt, "padding_mask": ops.ones_like(prompt)}
            logits = self(given)
            batch, _, words = ops.shape(logits)
            logits = ops.slice(logits, (0, index - 1, 0), (batch, 1, words))
            return logits[:, 0], None, cache

        start = ops.min(ops.sum(ops.cast(mask, "int32"), axis=-1))
        prompt = ops.cast(inputs["token_ids"], "int32")
        written = self.sampler(next=next, prompt=prompt, index=start, mask=mask, model=self)
        return {"token_ids": written, "padding_mask": ops.ones_like(mask)}


def models(settings):
    """Returns the models, dictionary of label -> task of KerasHub, compiled to be greedy.

    Args:
        settings: a `Settings` without problems.
    """
    sizes = SIZES[settings.size]

    def ours(position, task=TupeCausalLM):
        backbone = TupeBackbone(
            VOCABULARY_SIZE,
            **dataclasses.asdict(sizes),
            position=position,
            normalize_first=True,  # as GPT-2
            max_sequence_length=settings.length,
            attention_pattern="causal",
        )
        return task(backbone)

    names = dict.fromkeys([BASELINE, *settings.positions])
    found = {name: ours(name) for name in names}
    found[UNCACHED] = ours(BASELINE, WithoutCache)
    peer = keras_hub.models.GPT2Backbone(
        vocabulary_size=VOCABULARY_SIZE,
        num_layers=sizes.num_layers,
        num_heads=sizes.num_heads,
        hidden_dim=sizes.hidden_dim,
        intermediate_dim=sizes.intermediate_dim,
        max_sequence_length=settings.length,
    )
    found[PEER] = keras_hub.models.GPT2CausalLM(peer)
    for model in found.values():
        model.compile(sampler="greedy", **({"jit_compile": True} if settings.xla else {}))
    return found


def call(label, model, batch, settings):
    """Lets a model write; returns how many tokens each text got.

    Args:
        label: of the model.
        model: the task.
        batch: number of texts.
        settings: a `Settings`.
    """
    token_ids = np.random.default_rng(0).integers(0, VOCABULARY_SIZE, (batch, settings.length))
    count = settings.length - settings.prompt
    if label == UNCACHED:
        count = min(count, UNCACHED_TOKENS)
    mask = np.broadcast_to(np.arange(settings.length) < settings.length - count, token_ids.shape)
    given = {"token_ids": token_ids.astype("int32"), "padding_mask": mask.astype("int32")}
    found = model.generate(given, stop_token_ids=None)
    assert np.asarray(found["token_ids"]).shape == token_ids.shape
    return count
