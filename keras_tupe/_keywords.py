"""Keywords of constructors: what a class does not know is refused, with the nearest name."""

import difflib
import inspect

import keras

_KERAS = ("keras", "keras_hub")
_IGNORED_BY_MODELS = {"activity_regularizer", "autocast", "dtype"}


def did_you_mean(name, known):
    """Returns `" Did you mean 'x'?"` with the name nearest to a wrong one, or `""`."""
    near = difflib.get_close_matches(str(name), [str(one) for one in known], n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


def check_keywords(cls, given):
    """Refuses keywords that the constructor of a class does not know, with the nearest names.

    Keras's models and KerasHub's preprocessors take any and ignore them, so that a typing error
    would train another model.
    """
    known = known_keywords(cls)
    unknown = [name for name in given if name not in known]
    if unknown:
        start = f"`{cls.__name__}` has no argument"
        sentences = [f"{start} {name!r}.{did_you_mean(name, known)}" for name in unknown]
        received = ", ".join(f"{name}={given[name]!r:.200}" for name in unknown)
        raise ValueError(
            f"{' '.join(sentences)} Expected a subset of {sorted(known)}. Received: {received}"
        )


def known_keywords(owner):
    """Returns the names that the constructor of a class takes, a set.

    These are its own arguments, and where it takes any others, those of the classes above it up to
    Keras's, and what those use.
    """
    known = set()
    for ancestor in owner.__mro__:
        if ancestor.__module__.partition(".")[0] in _KERAS:
            return known | _keywords_of_keras(owner)
        constructor, said = vars(ancestor).get("__init__"), vars(ancestor).get("__signature__")
        if (constructor is None and said is None) or ancestor is object:
            continue
        parameters = said or inspect.signature(constructor)
        parameters = list(parameters.parameters.values())[0 if said else 1 :]
        by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        known |= {parameter.name for parameter in parameters if parameter.kind in by_name}
        if all(parameter.kind != inspect.Parameter.VAR_KEYWORD for parameter in parameters):
            break
    return known


def _keywords_of_keras(owner):
    found = set()
    for ancestor in owner.__mro__:
        if ancestor.__module__.partition(".")[0] in _KERAS and "__init__" in vars(ancestor):
            parameters = inspect.signature(ancestor.__init__).parameters.values()
            found |= {p.name for p in parameters if p.kind == inspect.Parameter.KEYWORD_ONLY}
    if issubclass(owner, keras.Model):
        return found - _IGNORED_BY_MODELS
    return found | ({"config_file"} if hasattr(owner, "from_preset") else set())  # of KerasHub
