"""The cases: every method of the registry, clipped too where it can be."""

import dataclasses

import keras
import numpy as np

from keras_tupe import TupeBackbone, positions

BASELINE = "absolute"
CLIP = 64
VOCABULARY_SIZE = 8192
LEARNING_RATE = 1e-4


@dataclasses.dataclass(frozen=True)
class Case:
    """A row of the table.

    Attributes:
        position: name of the method.
        options: its `position_options`.
    """

    position: str
    options: dict

    @property
    def label(self):
        """What the table calls it."""
        return " ".join([self.position, *(f"{key}={self.options[key]}" for key in self.options)])


def cases_for(names, length):
    """Returns the cases at one length: the baseline first, then each method in turn.

    A method with a clipping distance `k` has a second case with k = 64, where that clips.
    """
    found = []
    for name in dict.fromkeys([BASELINE, *names]):
        found.append(Case(name, {}))
        if "k" in positions.get(name).options and length - 1 > CLIP:
            found.append(Case(name, {"k": CLIP}))
    return found


def build(case, job):
    """Returns a new compiled model, token ids -> hidden states.

    Args:
        case: a `Case`.
        job: dictionary with `sizes` (arguments of `TupeBackbone`) and `length`.
    """
    keras.utils.set_random_seed(1)
    backbone = TupeBackbone(
        VOCABULARY_SIZE,
        **job["sizes"],
        position=case.position,
        position_options=case.options,
        max_sequence_length=job["length"],
    )
    model = keras.Model(backbone.inputs, backbone.output["sequence_output"])
    model.compile(keras.optimizers.AdamW(LEARNING_RATE), loss="mse")
    return model


def batch(job, batch_size=None, length=None):
    """Returns inputs and targets, always the same: no padding, random tokens and numbers.

    Returns:
        `({"token_ids", "padding_mask"}, targets)`: `(batch_size, length)`, int32, and
        `(batch_size, length, hidden_dim)`, float32.
    """
    shape = (batch_size or job["batch_size"], length or job["length"])
    generator = np.random.default_rng(0)
    token_ids = generator.integers(5, VOCABULARY_SIZE, shape, "int32")
    targets = generator.standard_normal((*shape, job["sizes"]["hidden_dim"]), "float32")
    return {"token_ids": token_ids, "padding_mask": np.ones_like(token_ids)}, targets
