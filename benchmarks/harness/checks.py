"""Checks of settings of more than one benchmark, without Keras."""

from training.command.settings import nearest, option
from training.command.without_keras import without_keras

with without_keras():
    from keras_tupe.models import sizes

SIZES = tuple(sizes.SIZES)
PRECISIONS = ("float32", "bfloat16")


class Lists:
    """Settings that hold each item of a list once.

    `NUMBERS` has the names of the lists of integers; what is none stays a text, for
    `wrong_numbers` to tell.
    """

    NUMBERS = ()

    @classmethod
    def fitted(cls, values, from_file, given):
        """Returns the values once more; see `training.command.settings`."""
        found = dict(values)
        for name, value in values.items():
            if isinstance(value, tuple):
                items = map(_number, value) if name in cls.NUMBERS else value
                found[name] = tuple(dict.fromkeys(items))
        return found


def wrong_items(settings, known):
    """Returns a sentence for each item of a list that is not known.

    Args:
        settings: has a tuple of texts for each name.
        known: dictionary: name -> what may be in the list.
    """
    return [
        f"{option(name)} must be of {sorted(allowed)}; the nearest is {nearest(item, allowed)!r}. "
        f"Received: {item!r}"
        for name, allowed in known.items()
        for item in getattr(settings, name)
        if item not in allowed
    ]


def wrong_numbers(settings, *names):
    """Returns a sentence for each item of these lists that is not an integer >= 1."""
    return [
        f"{option(name)} must be integers >= 1. Received: {item!r}"
        for name in names
        for item in getattr(settings, name)
        if not isinstance(item, int) or item < 1
    ]


def _number(text):
    return int(text) if text.isascii() and text.isdigit() else text
