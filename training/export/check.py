"""An export, compared with the model it was made from, in another process."""

import os
import pathlib
import subprocess
import sys

import numpy as np
from keras import ops

from keras_tupe.export.served import answers, backbone_of, input_names, known_inputs
from training.command import start

EXAMPLE = "example.npz"
_TEXTS = ("a", "the 1", "b a c")  # each vocabulary has tokens for them, the unknown one at least


def write_example(folder, model, inputs):
    """Writes inputs and the answers of the model that is exported, which `training.query` checks.

    The `inputs` are integers under the names of Keras.
    """
    inputs = {"segment_ids": np.zeros_like(inputs["token_ids"]), **inputs}
    outputs = dict(backbone_of(model)(known_inputs(model, inputs), training=False))
    outputs |= answers(model, outputs, inputs)
    found = {name: ops.convert_to_numpy(ops.cast(x, "float32")) for name, x in outputs.items()}
    given = {hub: inputs[name] for name, hub in input_names(model).items()}
    np.savez_compressed(pathlib.Path(folder, EXAMPLE), **given, **found)


def write_scores(folder, model, length):
    """Writes texts with the log-probabilities that a model of pairs gives each after another."""
    preprocessor = model.preprocessor
    special = 2 + bool(preprocessor.decoder_starts_with_end)
    room = min(preprocessor.encoder_sequence_length - 2, length - special)
    texts = [text for text in _TEXTS if len(preprocessor.tokenizer([text])[0]) <= room]
    targets = [*texts[1:], *texts[:1]]
    scores = model.score({"encoder_text": texts, "decoder_text": targets}) if texts else {}
    found = scores.get("log_probabilities", np.zeros((0, 1))).sum(axis=1).astype("float32")
    given = {"text": np.array(texts, str), "target": np.array(targets, str)}
    np.savez_compressed(pathlib.Path(folder, EXAMPLE), **given, log_probability=found)


def check_in_another_process(folder, say=print):
    """Runs `training.query` on an export, and raises if it does not answer as the model does."""
    ended = subprocess.run(
        start.words_of("training.query", str(folder)),
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    say(f"\n=== the export, loaded by another process ===\n{ended.stdout.rstrip()}")
    sys.stdout.flush()
    if ended.returncode:
        raise RuntimeError(
            "The exported SavedModel does not answer as the model that was exported, so nothing "
            f"was written. Received: exit status {ended.returncode} of training.query"
        )
