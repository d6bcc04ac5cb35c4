"""Entries of a configuration, checked one by one, so that all mistakes are named at once."""

import os

from keras_tupe.layers._checks import is_integer


class ConfigCheck:
    """Collects what a configuration has that a model of ours cannot be.

    Args:
        config: dictionary of a `config.json`.

    Attributes:
        problems: list of what was found, as parts of a sentence.
    """

    def __init__(self, config):
        self.config = config
        self.problems = []

    def expect(self, name, is_right, expected):
        """Notes an entry that is there and for which `is_right(value)` is false."""
        if name in self.config and not is_right(self.config[name]):
            self.problems.append(f"{name} must be {expected}, not {self.config[name]!r}")

    def model_type(self, expected):
        """Notes a configuration of another kind of model."""
        found = self.config.get("model_type")
        if found != expected:
            self.problems.append(f"model_type must be {expected!r}, not {found!r}")

    def architectures(self, known):
        """Notes names of classes that are not among those known."""
        self.expect(
            "architectures",
            lambda names: (
                names is None or (isinstance(names, list) and all(name in known for name in names))
            ),
            f"among {list(known)}",
        )

    def fixed(self, entries):
        """Notes entries that are not as they must be.

        Args:
            entries: dictionary: name -> (value that it must have or be left out, what another
                value would mean).
        """
        for name, (value, what) in entries.items():
            if (self.config.get(name, value) or None) != (value or None):
                self.problems.append(f"{name}={self.config[name]!r}: {what} cannot be converted")

    def integers(self, *names, required=()):
        """Notes entries that are not positive integers, and what of `required` is missing."""
        self.problems += [f"{name} is missing" for name in required if name not in self.config]
        for name in (*required, *names):
            self.expect(name, lambda value: is_integer(value) and value > 0, "an integer > 0")

    def numbers(self, *names):
        """Notes entries that are not positive numbers."""
        for name in names:
            self.expect(name, lambda value: _is_number(value) and value > 0, "a number > 0")

    def shares(self, *names):
        """Notes entries that are not shares in [0, 1)."""
        for name in names:
            self.expect(
                name, lambda value: _is_number(value) and 0 <= value < 1, "a share in [0, 1)"
            )

    def divisible(self, name, by):
        """Notes an integer that another does not divide; to be asked last."""
        if not self.problems and self.config[name] % self.config[by]:
            self.problems.append(
                f"{name}={self.config[name]} must be divisible by {by}={self.config[by]}"
            )

    def end(self, path):
        """Raises `ValueError` naming all that was noted; `path` is that of the file."""
        if self.problems:
            raise ValueError(
                "This Hugging Face model has no counterpart here: "
                f"{'; '.join(self.problems)}. Received: {os.fspath(path)!r}"
            )


def one_rate(config, first, *others):
    """Returns notes about dropout rates that differ from the one that our model has everywhere."""
    other = [f"{name}={config[name]}" for name in others if config[name] != config[first]]
    if not other:
        return []
    verb = "is" if len(other) == 1 else "are"
    return [
        f"dropout is {config[first]} everywhere, from {first}; there is one rate here, and "
        f"{' and '.join(other)} {verb} not used (training only)"
    ]


def not_looked_at(config, *known):
    """Returns a note about entries that are in none of the collections of names `known`."""
    unknown = sorted(set(config).difference(*known))
    return [f"entries of config.json that are not looked at: {', '.join(unknown)}"] * bool(unknown)


# Of every model: they do not change what is computed.
WITHOUT_EFFECT = {
    *("model_type", "torch_dtype", "dtype", "transformers_version", "use_cache", "_name_or_path"),
    *("pad_token_id", "bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id"),
    *("classifier_dropout", "problem_type", "finetuning_task", "num_labels", "id2label"),
    *("label2id", "gradient_checkpointing", "chunk_size_feed_forward", "return_dict"),
    *("output_attentions", "output_hidden_states", "output_past", "attn_implementation"),
    *("architectures", "tokenizer_class", "language", "name", "torchscript"),
    *("_attn_implementation_autoset", "task_specific_params"),
}
# Of every model: what must be as here, or left out, with what it would mean.
FIXED = {
    "add_cross_attention": (False, "cross-attention"),
    "tie_word_embeddings": (True, "an output matrix of its own"),
    "pruned_heads": ({}, "pruned heads"),
    "quantization_config": (None, "quantized weights"),
    "auto_map": (None, "code of its own"),
}


def _is_number(value):
    # the largest number is far beyond any that makes sense; NaN is not below it
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e30
