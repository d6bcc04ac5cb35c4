"""A task in a file of its own: a label for each word of a text, as in named entity recognition.

keras-tupe check examples/token_classifier.py

name = keras_tupe.tasks.load_file("examples/token_classifier.py")
model = keras_tupe.tasks.get(name)(backbone, num_classes=5, preprocessor=preprocessor)
"""

import dataclasses

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_tupe.layers import Dropout
from keras_tupe.tasks import COUNT, SHARE, TupeTask, normal, setting, token_crossentropy


@keras.saving.register_keras_serializable(package="examples")
class TokenClassifier(TupeTask, keras_hub.models.Task):
    """The encoder and a linear layer over every hidden state; a word is what its first piece is.

    Equation (Devlin et al. 2019, section 5.3), with x_i the hidden state of token i:

        logits_i = dropout(x_i) W + b

    Args:
        backbone: a `TupeBackbone`.
        num_classes: number of classes.
        preprocessor: optional `TupeTextClassifierPreprocessor`.
        dropout: dropout rate before the linear layer. Defaults to 0.1.
        **kwargs: `name` and `trainable`.

    Returns:
        Logits `(batch, length, num_classes)`.
    """

    options = {
        "num_classes": setting(COUNT, "Number of classes.", dataclasses.MISSING),
        "dropout": setting(SHARE, "Dropout rate before the last layer.", 0.1),
    }
    signature = "tag"
    scores = ("accuracy", "matthews")
    examples = (
        {"text": "the cat sat on a mat", "label": [0, 1, 2, 0, 0, 1]},
        {"text": "a dog ran", "label": [0, 1, 2]},
        {"text": "cats sleep", "label": [1, 2]},
    )
    example_options = {"num_classes": 3}

    def head_layers(self, backbone, num_classes, dropout):
        dtype = {"dtype": backbone.dtype_policy}
        dense = {"kernel_initializer": normal(backbone), "name": "logits", **dtype}
        dropped = Dropout(dropout, name="tag_dropout", **dtype)
        return {"dropout": dropped, "dense": keras.layers.Dense(num_classes, **dense)}

    def answer(self, head, encoded, inputs):
        return head["dense"](head["dropout"](encoded["sequence_output"]))

    def default_loss(self):
        return token_crossentropy()

    def default_metrics(self):
        return [keras.metrics.SparseCategoricalAccuracy()]

    def num_labels(self, length):
        return self.num_classes

    def served(self, answer):
        return {"tag_probabilities": ops.softmax(ops.cast(answer, "float32"))}

    def labelled(self, texts, labels):
        """Returns inputs, the labels of words at their first pieces, and weights: 1 there."""
        x, _, _ = super().labelled(texts, [None] * len(texts))
        y, weights = np.zeros_like(x["token_ids"]), np.zeros(x["token_ids"].shape, "float32")
        for row, (places, label) in enumerate(zip(self._places(texts), labels, strict=True)):
            if label is not None:
                kept = places < y.shape[1]
                y[row, places[kept]] = np.asarray(label)[kept]
                weights[row, places[kept]] = 1
        return x, y, weights

    def ask(self, texts):
        """Returns the classes of the words of each text that are read: `tags`, a list of lists."""
        shares = super().ask(texts)["tag_probabilities"]
        best, places = shares.argmax(axis=-1), self._places(texts)
        return {"tags": [best[i, at[at < best.shape[1]]].tolist() for i, at in enumerate(places)]}

    def predictions(self, answers):
        return answers["tags"]

    @classmethod
    def scored(cls, labels, predictions):
        """Returns scores over the words of all rows; words that were cut count as class -1."""
        wanted = [tag for label in labels for tag in label]
        found = []
        for own, label in zip(predictions, labels, strict=True):
            found += [*own, *[-1] * len(label)][: len(label)]
        return super().scored(wanted, found)

    @classmethod
    def say(cls, texts, answers):
        rows = zip(texts, answers["tags"], strict=True)
        pairs = (zip(text.split(), tags, strict=False) for (text,), tags in rows)
        return [[" ".join(f"{word}/{tag}" for word, tag in row)] for row in pairs]

    def _places(self, texts):
        """Returns where in its row the first piece of each word stands, an array for each text."""
        tokenizer, first = self.preprocessor.tokenizer.op, int(self.preprocessor.add_start_token)
        found = []
        for (text,) in texts:
            _, starts, _ = (x.to_list()[0] for x in tokenizer.tokenize_with_offsets([text]))
            words = np.cumsum([0, *(len(word.encode()) + 1 for word in text.split(" "))])[:-1]
            found.append(np.searchsorted(starts, words) + first)
        return found


TASK = TokenClassifier
