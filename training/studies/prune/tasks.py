"""The tasks that pruned models are scored on: a classifier's and a language model's."""

import abc
import hashlib
import json

import keras
import numpy as np

from keras_tupe import TupeMaskedLM, TupeTextClassifier, TupeTextClassifierPreprocessor
from keras_tupe.data import read_blimp
from keras_tupe.data.rows.padded import Padded
from keras_tupe.models import keep_zeros
from training.evaluate.sentences import Encoder, PseudoLogLikelihood
from training.evaluate.tasks.blimp import pair_counts
from training.finetune.engine import FineTuner, Recipe
from training.finetune.glue.rows import read_tasks, tokenize
from training.finetune.tasks.glue import Settings as GlueSettings
from training.presets.load import Encoder as PresetEncoder
from training.presets.load import load_preset

_FEW = 32  # rows whose gradients are taken at once
_OTHERS = 50  # pairs of a paradigm behind those that are scored, from which training rows come


class Task(abc.ABC):
    """What a pruned model is asked.

    Attributes:
        identity: JSON values that the scores depend on, besides the model.
        chance: score of a blind choice, in [0, 1].
        title: what is scored, for tables.
        skipped: questions that the model cannot take, since they are too long, and are left out.
    """

    skipped = 0

    @abc.abstractmethod
    def losses(self, model):
        """Returns a function: batch -> losses of its rows, for `head_importance`."""

    @abc.abstractmethod
    def batches(self):
        """Yields batches of training rows, of which all rows are as long."""

    @abc.abstractmethod
    def score(self, model):
        """Returns how many questions a model answers rightly, and how many there are."""

    def trained(self, model, seed, folder):
        """Returns the model after the fine-tuning that follows a pruning; here as it is."""
        return model


class Blimp(Task):
    """Minimal pairs by pseudo-log-likelihood; the loss is that of predicting a masked token.

    Args:
        settings: a `Settings`.
        model, text: what `load_preset` returns.

    Raises:
        ValueError: if the preset is no masked language model, or no pairs are left to train on.
    """

    chance = 0.5
    title = "minimal pairs of BLiMP"

    def __init__(self, settings, model, text):
        if not isinstance(model, TupeMaskedLM):
            raise ValueError(
                "The preset must be a masked language model for --task blimp, as `keras-tupe "
                f"pretrain` makes it. Received: {settings.preset!r}, a {type(model).__name__}"
            )
        self._encoder = Encoder(model, text, settings.preset)
        self._batch_tokens = settings.batch_size * 128
        paradigms = read_blimp(settings.data)
        self._pairs, others, skipped = [], [], []
        for paradigm in paradigms:
            _, ids = self._encoder.pairs(paradigm, settings.limit + _OTHERS, skipped)
            self._pairs += ids[: settings.limit]
            others += [good for good, _ in ids[settings.limit :]]
        if not others:
            raise ValueError(
                "--limit must leave pairs of some paradigm that are not scored, for the "
                f"importance of heads. Received: limit={settings.limit}"
            )
        self.skipped = len(skipped)
        self._rows = self._masked(others, settings.rows)
        known = json.dumps([self._pairs, [one.tolist() for one in self._rows[0]]])
        self.identity = {"task": "blimp", "data": hashlib.sha256(known.encode()).hexdigest()}

    def _masked(self, sentences, count):
        """Returns some rows with one token masked: ids, positions and the tokens there."""
        generator = np.random.default_rng(0)
        rows = []
        for number in generator.choice(len(sentences), min(count, len(sentences)), replace=False):
            ids = np.array(sentences[number], "int32")
            position = generator.integers(len(ids))
            target, before = ids[position], self._encoder.before
            ids[position] = self._encoder.mask_id
            row = np.concatenate([before, ids, self._encoder.after]).astype("int32")
            rows.append((row, len(before) + position, target))
        return tuple(zip(*rows, strict=True))

    def batches(self):
        ids, positions, targets = self._rows
        lengths = np.array([len(row) for row in ids])
        for length in np.unique(lengths):
            members = np.flatnonzero(lengths == length)
            for start in range(0, len(members), _FEW):
                some = members[start : start + _FEW]
                token_ids = np.stack([ids[row] for row in some])
                yield {
                    "token_ids": token_ids,
                    "padding_mask": np.ones_like(token_ids),
                    "mask_positions": np.array([[positions[row]] for row in some], "int32"),
                    "targets": np.array([targets[row] for row in some], "int32"),
                }

    def losses(self, model):
        has_segments = bool(model.backbone.num_segments)

        def found(batch):
            given = {name: x for name, x in batch.items() if name != "targets"}
            if has_segments:
                given["segment_ids"] = np.zeros_like(given["token_ids"])
            logits = model(given, training=False)[:, 0]
            return _cross_entropy(batch["targets"], logits)

        return found

    def score(self, model):
        encoder = self._encoder
        scorer = PseudoLogLikelihood(
            model,
            encoder.mask_id,
            encoder.before,
            encoder.after,
            batch_tokens=self._batch_tokens,
        )
        sentences = [ids for pair in self._pairs for ids in pair]
        good, bad = scorer.scores(sentences).reshape(-1, 2).T
        lengths = [[len(pair[side]) for pair in self._pairs] for side in (0, 1)]
        counts = pair_counts(good, bad, *lengths)["all"]
        return counts["right"], counts["pairs"]


class Sst2(Task):
    """The dev set of SST-2 by a classifier; the loss is cross-entropy on training rows.

    Args:
        settings: a `Settings`.
        model, text: what `load_preset` returns.

    Raises:
        ValueError: if the data cannot be read, or the preset is a classifier of other classes.
    """

    chance = 0.5
    title = "SST-2, dev"

    def __init__(self, settings, model, text):
        self._settings = settings
        self._encoder = PresetEncoder(settings.preset, 0.1, settings.position_file)
        self.length = min(settings.length, self._encoder.limit or settings.length)
        glue = GlueSettings(
            preset=settings.preset,
            data=settings.data,
            tasks=("sst2",),
            limit=settings.train_rows,
            check_counts=False,
        )
        self._rows = read_tasks(glue, ["sst2"])["sst2"]
        (self._dev,) = self._rows.labeled.values()
        self._tokens, self._tuner = {}, None
        self.classifier = None
        if isinstance(model, TupeTextClassifier):
            if model.num_classes != 2:
                raise ValueError(
                    "A classifier to prune on sst2 must have its two classes. Received: "
                    f"{settings.preset!r} with num_classes={model.num_classes}"
                )
            self.classifier = model
        names = ("batch_size", "learning_rate", "finetune_epochs")
        self.identity = {
            "task": "sst2",
            "data": self._rows.digest(),
            "length": self.length,
            **{name: getattr(settings, name) for name in names},
        }

    @property
    def preprocessor(self):
        """The preprocessor of a classifier that is kept."""
        return TupeTextClassifierPreprocessor(
            self._encoder.tokenizer,
            sequence_length=self.length,
            segments=self._encoder.has_segments,
        )

    def new_classifier(self, folder):
        """Returns a classifier that was fine-tuned from the preset.

        Args:
            folder: where the log is written.
        """
        return self._fit(lambda: self._encoder.classifier(2), self._settings.epochs, 0, folder)

    def trained(self, model, seed, folder):
        epochs = self._settings.finetune_epochs
        if not epochs:
            return model
        keep_zeros(model)
        self._tuner = None  # each pruned model is a step of its own to compile
        return self._fit(lambda: model, epochs, seed, folder)

    def _fit(self, make, epochs, seed, folder):
        self._tuner = self._tuner or FineTuner("one")
        recipe = Recipe(self._settings.learning_rate, epochs, self._settings.batch_size, seed=seed)
        return self._tuner.fit(make, self._batches("train", seed), recipe, folder)

    def _batches(self, split, seed=0, size=None):
        rows = self._rows.train if split == "train" else self._dev
        if split not in self._tokens:
            tokenizer = self._encoder.tokenizer
            segments = self._encoder.has_segments
            self._tokens[split] = tokenize(tokenizer, rows.texts, self.length, segments)
        tokens = self._tokens[split]
        return Padded(
            {"token_ids": tokens.token_ids, "segment_ids": tokens.segment_ids},
            np.asarray(rows.labels, "int32"),
            pad_id=self._encoder.tokenizer.pad_token_id,
            batch_size=size or self._settings.batch_size,
            seed=seed,
        )

    def batches(self):
        rows = self._batches("train", size=_FEW)
        wanted = min(self._settings.rows, len(rows))
        for step in range(-(-wanted // _FEW)):
            inputs, labels, weights = rows.batch(step)
            real = np.flatnonzero(weights)[: wanted - step * _FEW]
            yield {**{name: x[real] for name, x in inputs.items()}, "labels": labels[real]}

    def losses(self, model):
        def found(batch):
            given = {name: x for name, x in batch.items() if name != "labels"}
            return _cross_entropy(batch["labels"], model(given, training=False))

        return found

    def score(self, model):
        tuner = FineTuner("one")
        outputs = np.stack(tuner.predict(model, self._batches("dev")))
        right = np.argmax(outputs, axis=-1) == np.asarray(self._dev.labels)
        return int(right.sum()), len(right)


def _cross_entropy(labels, logits):
    return keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)


def make_task(settings):
    """Returns the task of a command, the model of its preset, and what makes its inputs of text.

    Args:
        settings: a `Settings` without problems.

    Raises:
        ValueError: if preset or data cannot be used.
    """
    model, text = load_preset(settings.preset)
    kind = {"blimp": Blimp, "sst2": Sst2}[settings.task]
    return kind(settings, model, text), model, text
