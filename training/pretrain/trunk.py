"""The fields of a trunk as settings of a command: names, defaults, help, ranges."""

import dataclasses
import re
from collections.abc import Mapping

from training.command.settings import option, setting
from training.command.without_keras import without_keras

with without_keras():
    from keras_tupe.trunk.config import TrunkConfig

FIELDS = {field.name: field for field in dataclasses.fields(TrunkConfig)}
# Those that `pretrain` asks for; its rows, its objective and its size say what the others are.
ASKED = tuple(name for name, field in FIELDS.items() if field.metadata["ask"])
_JSON = {name for name, field in FIELDS.items() if field.type == Mapping | None}


def with_trunk(names, after):
    """Returns a decorator that makes a frozen dataclass of settings, with fields of a trunk.

    They are put behind the field `after`; what the class itself says of one of them holds.
    """

    def made(owner):
        own = list(owner.__annotations__.items())
        first = [name for name, _ in own].index(after) + 1
        kinds = [(name, str if name in _JSON else FIELDS[name].type) for name in names]
        owner.__annotations__ = dict([*own[:first], *kinds, *own])
        for name in {*names} - {*dict(own)}:
            setattr(owner, name, _setting(name))
        return dataclasses.dataclass(frozen=True)(owner)

    return made


def _setting(name):
    text = re.sub(r"`(\w+)`", lambda found: option(found[1]), FIELDS[name].metadata["help"])
    if name in _JSON:
        return setting("{}", f"{text[:-1]}, as JSON.")
    rule = FIELDS[name].metadata["rule"].of_option
    if rule is not None:
        text = re.sub(r", (>=? ?\d+|0 to below 1)", "", text)
    # dropout has no weights, so that a run may go on with another rate
    return setting(FIELDS[name].default, text, rule=rule, may_change=name == "dropout")
