"""Refuses a saved configuration that names what does not belong into a model of this package.

Keras makes whatever registered class a configuration names, where it names it. A class may do
anything when it is made (`SavedEncoder` runs a graph from a path), so the names come first.
"""

import keras

_KEYS = {"module", "class_name", "config", "registered_name"}
_DTYPE_MODULES = ("keras", "keras.dtype_policies")


def check_config(cls, config):
    """Refuses the config of a class that names classes or files other than those it has.

    Args:
        cls: the class that will be made of it; `_config_parts()` says which of its arguments are
            objects, and of which class.
        config: dictionary, of a file or as a loader completed it: parts may be made already.

    Raises:
        ValueError: if it is refused.
    """
    parts = cls._config_parts() if hasattr(cls, "_config_parts") else {}
    for name, value in config.items():
        where = f"{cls.__name__}'s {name}"
        if name == "dtype":
            _check_dtype(value, where)
        elif name == "activation":
            check_plain(value, where, is_allowed=_is_registered_function)
        elif name == "config_file":
            _check_file_name(value, where)
        elif name not in parts:
            check_plain(value, where)
        elif isinstance(value, dict):
            check_object(value, parts[name], where)
        elif value is not None and not isinstance(value, parts[name]):
            raise ValueError(
                f"{where} must be saved as a {_names(parts[name])}. Received: {_short(value)}"
            )


def check_object(value, base, where, only_keys=False):
    """Refuses a saved object unless it is of a class, made of what belongs to it.

    Args:
        value: what stands in a file for an object.
        base: the class that it must be, or have as its parent; or a tuple of such.
        where: what it is, for the message.
        only_keys: whether its class and config must be all that is said of it, as in a preset.

    Returns:
        Its class.

    Raises:
        ValueError: if it is refused.
    """
    name = value.get("registered_name") if isinstance(value, dict) else None
    cls = keras.saving.get_registered_object(name) if isinstance(name, str) else None
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise ValueError(
            f"{where} must be a {_names(base)}. A class of your own must be imported before; any "
            "other does not belong here, and making it could run code of whoever wrote the file. "
            f"Received: {_short(name if isinstance(value, dict) else value)}"
        )
    if not isinstance(value.get("class_name"), str) or not isinstance(value.get("config"), dict):
        raise ValueError(
            f"{where} must have a `class_name` and, in `config`, its settings. "
            f"Received: {_short(value)}"
        )
    if only_keys and set(value) - _KEYS:
        raise ValueError(
            f"{where} must have nothing but {sorted(_KEYS)}. "
            f"Received: {_short(sorted(set(value) - _KEYS))}"
        )
    check_config(cls, value["config"])
    return cls


def check_plain(value, where, is_allowed=lambda value: False):
    """Refuses an object inside a setting, unless it belongs there.

    Args:
        value: what stands in a file.
        where: what it is, for the message.
        is_allowed: function of a dictionary with a `class_name`.

    Raises:
        ValueError: if it is refused.
    """
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            if "class_name" in value and not is_allowed(value):
                raise ValueError(
                    f"{where} must be a plain value. An object does not belong there, and making "
                    f"it could run code of whoever wrote the file. Received: {_short(value)}"
                )
            todo += value.values()
        elif isinstance(value, list | tuple):
            todo += value


def _check_dtype(value, where):
    """Refuses what is no precision: a name, or what stands in a file for a policy."""
    check_plain(value, where, is_allowed=is_dtype_policy)
    is_policy = isinstance(value, keras.DTypePolicy | keras.dtype_policies.DTypePolicyMap)
    if not (value is None or isinstance(value, str) or is_policy) and not (
        isinstance(value, dict) and is_dtype_policy(value)
    ):
        raise ValueError(f"{where} must be a Keras dtype policy. Received: {_short(value)}")


def is_dtype_policy(value):
    """Returns whether a dictionary stands in a file for a dtype policy of Keras."""
    name, config = value.get("class_name"), value.get("config")
    return (
        value.get("module") in _DTYPE_MODULES
        and isinstance(name, str)
        and name.endswith(("DTypePolicy", "DTypePolicyMap"))
        and isinstance(config, dict)
        and isinstance(config.get("name", ""), str)
        and value.get("registered_name") in (None, name)
    )


def _is_registered_function(value):
    name = value.get("registered_name")
    found = keras.saving.get_registered_object(name) if isinstance(name, str) else None
    return callable(found) and not isinstance(found, type)


def _check_file_name(value, where):
    is_name = isinstance(value, str) and value.isascii() and value.endswith(".json")
    if not is_name or not value.removesuffix(".json").replace("_", "").isalnum():
        raise ValueError(
            f"{where} must be the name of a JSON file, without a folder. Received: {_short(value)}"
        )


def _names(base):
    return " or ".join(kind.__name__ for kind in (base if isinstance(base, tuple) else (base,)))


def _short(value):
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
