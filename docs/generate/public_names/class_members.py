"""The members and parameters of a class or function, and whether it is a layer."""

import functools
import inspect

from docs.generate import docstrings

PACKAGE = "keras_tupe"


def members(value):
    """Returns the public methods and properties of a class: name -> (kind, object, docstring).

    Left out are those that only carry out what a class above promises, such as Keras's `build`.
    """
    found, seen = {}, set()
    for parent in value.__mro__:
        if not parent.__module__.startswith(PACKAGE):
            continue
        for name, one in vars(parent).items():
            if name.startswith("_") or name in {*seen, *getattr(value, "__dataclass_fields__", ())}:
                continue
            kind = {property: "property", classmethod: "class method", staticmethod: "static"}.get(
                type(one), "method" if inspect.isfunction(one) else None
            )
            kind = "property" if isinstance(one, functools.cached_property) else kind
            if kind is None:
                continue
            plain = getattr(one, "__func__", None) or getattr(one, "fget", None)
            plain = plain or getattr(one, "func", one)
            seen.add(name)
            said = docstrings.parse(plain.__doc__ or "")
            if "Args" in said.titles() or not _is_promised(value, parent, name, plain):
                found[name] = kind, plain, said
    return {name: found[name] for name in sorted(found)}


def _is_promised(value, parent, name, plain):
    """Whether a method only carries out what another library's class, or one above, says of it."""
    if not plain.__doc__ and name in docstrings.parse(inspect.getdoc(value)).names("Attributes"):
        return True
    others = [above for above in value.__mro__ if name in vars(above) and above is not parent]
    if plain.__doc__:
        return any(not above.__module__.startswith(PACKAGE) for above in others)
    return bool(others) or f"super().{name}(" in inspect.getsource(plain)


def parameters(value):
    """Returns the parameters of a function or class, `[]` where there is no signature."""
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    return [parameter for parameter in found if parameter.name not in ("self", "cls")]


def is_layer(value):
    """Whether a class is a Keras layer, a model among them."""
    import keras

    return inspect.isclass(value) and issubclass(value, keras.layers.Layer)
