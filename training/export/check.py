"""An export, compared with the model it was made from, in another process."""

import os
import pathlib
import subprocess
import sys

import numpy as np
from keras import ops

from keras_tupe import TupeTextEmbedder
from training.command import start

EXAMPLE = "example.npz"
_HUB = {"token_ids": "input_word_ids", "padding_mask": "input_mask"}


def random_inputs(backbone, length, predictions=4, seed=0):
    """Returns four rows of random tokens with paddings, and places to predict.

    Args:
        backbone: a `TupeBackbone`.
        length: tokens per row.
        predictions: number of `mask_positions` per row.
        seed: an integer.
    """
    generator = np.random.default_rng(seed)
    token_ids = generator.integers(0, backbone.vocabulary_size, (4, length))
    lengths = np.array([length, max(1, length // 2), 1, max(1, length - 1)])
    padding_mask = np.arange(length) < lengths[:, None]
    inputs = {"token_ids": token_ids * padding_mask, "padding_mask": padding_mask}
    if backbone.num_segments:
        inputs["segment_ids"] = generator.integers(0, backbone.num_segments, (4, length))
    inputs["mask_positions"] = generator.integers(0, lengths[:, None], (4, predictions))
    return {name: value.astype("int32") for name, value in inputs.items()}


def write_example(folder, model, inputs):
    """Writes inputs and the answers of the model that is exported, which `training.query` checks.

    Args:
        folder: `pathlib.Path` of the export.
        model: a `TupeBackbone`, or a task with one.
        inputs: the model's inputs, and `mask_positions`.
    """
    backbone = getattr(model, "backbone", model)
    outputs = dict(backbone({tensor.name: inputs[tensor.name] for tensor in backbone.inputs}))
    if hasattr(model, "head"):
        outputs["mlm_logits"] = model.head(
            outputs["sequence_output"], mask_positions=inputs["mask_positions"]
        )
    if isinstance(model, TupeTextEmbedder):
        outputs["embedding"] = model({tensor.name: inputs[tensor.name] for tensor in model.inputs})
    segment_ids = inputs.get("segment_ids", np.zeros_like(inputs["token_ids"]))
    np.savez_compressed(
        pathlib.Path(folder, EXAMPLE),
        **{hub: inputs[name] for name, hub in _HUB.items()},
        input_type_ids=segment_ids,
        masked_lm_positions=inputs["mask_positions"],
        **{
            name: ops.convert_to_numpy(ops.cast(value, "float32"))
            for name, value in outputs.items()
        },
    )


def check_in_another_process(folder, say=print):
    """Runs `training.query` on an export.

    Args:
        folder: `pathlib.Path` of the export.
        say: function that writes a text: what it answers.

    Raises:
        RuntimeError: if the export does not answer as the model does.
    """
    ended = subprocess.run(
        start.words_of("training.query", str(folder)),
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    heading = "=== the export, loaded by another process ==="
    say(f"\n{heading}\n{ended.stdout.rstrip()}")
    sys.stdout.flush()
    status = ended.returncode
    if status:
        raise RuntimeError(
            "The exported SavedModel does not answer as the model that was exported, so nothing "
            f"was written. Received: exit status {status} of training.query"
        )
