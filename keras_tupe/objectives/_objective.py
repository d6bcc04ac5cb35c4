"""The record that every objective fills."""

import dataclasses
from collections.abc import Callable, Mapping


def _no_numbers(loss, characters):
    return {}


@dataclasses.dataclass(frozen=True)
class Objective:
    """What a model is pre-trained to predict: one record, one file, one row of a table.

    A batch is a pure function of the rows and their example numbers, so that a run goes on from any
    step. The loss of a batch is

        sum_v weight_v loss_v / sum_v weight_v

    over the predictions v of all replicas, workers and micro-batches: the trainer divides by the
    count of the whole batch.

    Attributes:
        summary: one line, for help texts and tables.
        source: paper and section.
        task: class of the model, `(backbone, preprocessor=None) -> model`: its default loss, of
            its outputs, is the objective's, and its `preprocessor_cls` takes raw text. Required.
        rule: how rows become inputs, labels and weights, see `keras_tupe.data.Rows`: (rows,
            options) -> rule, of `PreparedRows` and all options of the record. Required.
        num_predictions: how many of a row there are at most: (length, options) -> integer.
            Required.
        predictions: what is counted, such as "masked token".
        accuracy: what the share of right predictions is called in tables.
        attention_pattern: the pattern of a new model that names none.
        is_causal: whether the pattern must be one in which nothing sees what comes after it; or
            `None` if any will do.
        options: what may be set of the rows' rule, with the defaults.
        numbers: what a run reports beside loss and accuracy: (loss, characters) -> dictionary from
            names to numbers, of the mean loss in nats and the mean number of characters that a
            prediction stands for.
    """

    summary: str
    source: str
    task: type
    rule: Callable
    num_predictions: Callable
    predictions: str
    accuracy: str
    attention_pattern: str = "full"
    is_causal: bool | None = None
    options: Mapping = dataclasses.field(default_factory=dict)
    numbers: Callable = _no_numbers
