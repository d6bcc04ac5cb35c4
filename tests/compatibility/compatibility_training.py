"""Trainings of 20 steps, each a function of its name alone: their losses are compared."""

import keras
import numpy as np
from compatibility_cases import CAUSAL, LENGTH, MASK, PAD, SIZES, START, TWO, VOCABULARY, window

import keras_tupe
from keras_tupe import objectives, trainer

STEPS, BATCH, SLOTS = 20, 4, 3
RANGE = 0.2  # of first weights: terms of positions are as large as those of words
LEARNING_RATE = 2e-3
CONTINUED = "masked_lm/full/tupe_r"  # of which there is also the state after half of the steps
PATTERNS = {
    "masked_lm": {"full": {}, "window": window(num_global=1)},
    "causal_lm": {"causal": CAUSAL, "window": window(causal=True)},
    "replaced_token": {"full": {}, "window": window(num_global=1)},
}
# Of other trunks and objectives: objective, arguments of a backbone of two layers and of a trainer.
OTHERS = {
    "other/next_sentence": ("next_sentence", {"position": "absolute"}, {}),
    "other/seq2seq-tupe_r": ("seq2seq", {"position": "tupe_r"}, {}),
    "other/seq2seq-rope": ("seq2seq", {"position": "rope", "normalize_first": True}, {}),
    "other/seq2seq-shaw": ("seq2seq", {"position": "shaw"}, {}),
    "other/albert": (
        "masked_lm",
        {"position": "tupe_r", "embedding_dim": 4, "num_groups": 1},
        {},
    ),
    "other/normalize_first": ("masked_lm", {"position": "t5", "normalize_first": True}, {}),
    "other/micro_batches": ("masked_lm", {"position": "tupe_r"}, {"micro_batches": 2}),
    "other/remat": ("masked_lm", {"position": "deberta"}, {"remat": True}),
    "other/memory-xlnet": (
        "causal_lm",
        {"position": "xlnet", **CAUSAL, "memory_length": 6, "segment_length": 5},
        {},
    ),
    "other/memory-rope": ("causal_lm", {"position": "rope", **CAUSAL, "memory_length": 8}, {}),
    "other/separate": (
        "masked_lm",
        {"position": "tupe_r", **window(num_global=1, separate_global=True)},
        {},
    ),
    "other/every": ("causal_lm", {"position": "xlnet", **window(causal=True, every=2)}, {}),
    "other/share_layers": (
        "masked_lm",
        {"position": "qkr_3", "position_options": {"share_layers": True, "cls": "untied"}},
        {},
    ),
    "other/learned": (
        "masked_lm",
        {"position": "alibi", "position_options": {"learned": True, "sides": 2}},
        {},
    ),
}


def names(methods):
    """Returns the names of all trainings with some position methods."""
    found = [
        f"{x}/{pattern}/{y}" for x, many in PATTERNS.items() for pattern in many for y in methods
    ]
    return [*found, *OTHERS]


def parts_of(name):
    """Returns the objective, the backbone's arguments and the trainer's of a training."""
    if name in OTHERS:
        objective, arguments, of_trainer = OTHERS[name]
        return objective, {**TWO, **arguments}, of_trainer
    objective, pattern, method = name.split("/")
    return objective, {"position": method, **PATTERNS[objective][pattern]}, {}


def make_model(name):
    """Returns the new model of a training.

    Raises:
        ValueError: if the method refuses the pattern.
    """
    objective, arguments, _ = parts_of(name)
    keras.utils.set_random_seed(5)
    record = objectives.get(objective)
    segments = {"num_segments"} & record.task.backbone_arguments.keys()
    arguments = {**arguments, **{name: record.task.backbone_arguments[name] for name in segments}}
    backbone = record.backbone_cls(**{**SIZES, **arguments}, initializer_range=RANGE)
    options = dict(record.defaults)
    if "generator_share" in options:
        options["generator_share"] = 0.5
    return record.make_model(backbone, options)


def make_trainer(name):
    """Returns the trainer of a new model."""
    model = make_model(name)
    made = trainer.Trainer(model, xla=False, **parts_of(name)[2])
    made.compile(trainer.adamw(LEARNING_RATE))
    return made


def data_of(model, steps=STEPS):
    """Returns inputs, labels and weights of a number of batches for a model."""
    random = np.random.RandomState(1)  # its numbers never change
    count = steps * BATCH
    ids = random.randint(5, VOCABULARY, (count, LENGTH)).astype("int32")
    lengths = random.randint(8, LENGTH + 1, (count, 1))
    mask = (np.arange(LENGTH) < lengths).astype("int32")
    ids = np.where(mask, ids, PAD)
    ids[:, 0] = START
    slots = np.argsort(random.random_sample((count, 7)), axis=1)[:, :SLOTS].astype("int32") + 1
    used = (np.arange(SLOTS) < random.randint(1, SLOTS + 1, (count, 1))).astype("float32")
    noise = random.random_sample((count, SLOTS)).astype("float32")
    hidden = ids.copy()
    np.put_along_axis(hidden, slots, MASK, axis=1)
    labels = np.take_along_axis(ids, slots, axis=1)
    after = np.roll(ids, -1, axis=1)
    follows = np.roll(mask, -1, axis=1).astype("float32")
    follows[:, -1] = 0
    masked = {"token_ids": hidden, "padding_mask": mask, "mask_positions": slots}
    if isinstance(model, keras_tupe.TupeMaskedLM):
        return masked, labels, used
    if isinstance(model, keras_tupe.TupeCausalLM):
        return {"token_ids": ids, "padding_mask": mask}, after, follows
    if isinstance(model, keras_tupe.models.TupeReplacedTokenDetector):
        labels = {"masked_lm": labels, "replaced_token": ids}
        weights = {"masked_lm": used, "replaced_token": mask.astype("float32")}
        return {**masked, "sampling_noise": noise}, labels, weights
    if isinstance(model, keras_tupe.models.TupeMaskedPairLM):
        masked["segment_ids"] = ((np.arange(LENGTH) >= 6) & (mask == 1)).astype("int32")
        labels = {"masked_lm": labels, "pair": ids[:, 1] % 2}
        return masked, labels, {"masked_lm": used, "pair": np.ones(count, "float32")}
    inputs = {"encoder_token_ids": hidden, "encoder_padding_mask": mask}
    short = {"decoder_token_ids": ids[:, :12], "decoder_padding_mask": mask[:, :12]}
    return {**inputs, **short}, after[:, :12], follows[:, :12]


class Losses(keras.callbacks.Callback):
    """Keeps the loss of each batch."""

    def __init__(self):
        super().__init__()
        self.losses = []

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(float(f"{self.model.last_step['batch_loss']:.9g}"))


def losses_of(made, first=0, last=STEPS):
    """Trains on some of the batches, and returns the loss of each."""
    data = [_part(x, first, last) for x in data_of(made.model)]
    kept = Losses()
    made.fit(
        *data[:2],
        sample_weight=data[2],
        batch_size=BATCH,
        shuffle=False,
        verbose=0,
        callbacks=[kept],
    )
    return kept.losses


def _part(data, first, last):
    if isinstance(data, dict):
        return {name: _part(value, first, last) for name, value in data.items()}
    return data[first * BATCH : last * BATCH]
