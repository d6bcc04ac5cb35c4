"""The tables of the file of an experiment: their keys, and what the values must be."""

from training.command.kinds import nearest

SCALES = ("paper", "gpu-day", "gpu-hour", "laptop")
REQUIRED = object()
_NUMBER = (int, float)

# Kind of a value -> (what is expected, whether a value is that).
_KINDS = {
    "text": ("a text", lambda value: isinstance(value, str)),
    "texts": (
        "a list of texts",
        lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    ),
    "count": ("an integer >= 1", lambda value: type(value) is int and value >= 1),
    "counts": (
        "a list of integers >= 1",
        lambda value: (
            isinstance(value, list)
            and bool(value)
            and all(type(item) is int and item >= 1 for item in value)
        ),
    ),
    "rate": ("a number above 0", lambda value: type(value) in _NUMBER and value > 0),
    "rates": (
        "a list of numbers above 0",
        lambda value: (
            isinstance(value, list)
            and bool(value)
            and all(type(item) in _NUMBER and item > 0 for item in value)
        ),
    ),
    "numbers": (
        "a list of numbers",
        lambda value: isinstance(value, list) and all(type(item) in _NUMBER for item in value),
    ),
    "table": ("a table", lambda value: isinstance(value, dict)),
    "tables": (
        "a list of tables",
        lambda value: (
            isinstance(value, list)
            and bool(value)
            and all(isinstance(item, dict) for item in value)
        ),
    ),
}
# Key -> (kind, default).
EXPERIMENT = {
    "question": ("text", REQUIRED),
    "source": ("table", REQUIRED),
    "protocol": ("texts", REQUIRED),
    "unknown": ("texts", REQUIRED),
    "variants": ("tables", REQUIRED),
    "paper": ("tables", REQUIRED),
    "disagreement": ("table", None),
    "scales": ("table", REQUIRED),
}
SOURCE = dict.fromkeys(("paper", "url", "place"), ("text", REQUIRED))
VARIANT = dict.fromkeys(("name", "position"), ("text", REQUIRED))
TABLE = {
    **dict.fromkeys(("title", "source", "headline", "baseline"), ("text", REQUIRED)),
    "columns": ("tables", REQUIRED),
    "rows": ("tables", REQUIRED),
}
COLUMN = dict.fromkeys(("name", "metric"), ("text", REQUIRED))
ROW = {"name": ("text", REQUIRED), "position": ("text", ""), "values": ("numbers", REQUIRED)}
DISAGREEMENT = {
    "text": ("text", REQUIRED),
    "claims": ("tables", REQUIRED),
    "contrasts": ("tables", REQUIRED),
}
CLAIM = dict.fromkeys(("who", "against", "table", "row", "baseline", "column"), ("text", REQUIRED))
CONTRAST = dict.fromkeys(("against", "position", "baseline"), ("text", REQUIRED))
SCALE = {
    "precision": ("text", REQUIRED),
    "differs": ("texts", REQUIRED),
    "variants": ("tables", None),
    "pretrain": ("table", None),
    "preset": ("table", None),
    "glue": ("table", None),
    "squad": ("table", None),
}
PRETRAIN = dict.fromkeys(("seeds", "length", "vocabulary_size"), ("count", REQUIRED))
PRESET = {
    "size": ("text", REQUIRED),
    "length": ("count", REQUIRED),
    "vocabulary_size": ("count", REQUIRED),
}
GLUE = {
    "tasks": ("texts", REQUIRED),
    "protocol": ("text", REQUIRED),
    "learning_rates": ("rates", REQUIRED),
    "seeds": ("count", REQUIRED),
    "epochs": ("count", None),
    "batch_size": ("count", 32),
    "length": ("count", None),
    "max_train_rows": ("count", None),
}
SQUAD = {
    "lengths": ("counts", REQUIRED),
    "doc_stride": ("count", REQUIRED),
    "epochs": ("count", REQUIRED),
    "learning_rate": ("rate", REQUIRED),
    "seeds": ("count", REQUIRED),
    "batch_size": ("count", REQUIRED),
    "max_question_length": ("count", 64),
    "max_train_questions": ("count", None),
    "max_dev_questions": ("count", None),
}


def mistakes(entries, spec, place):
    """Returns a sentence for each key that is missing, unknown or of another kind.

    Args:
        entries: a table, as TOML gives it.
        spec: dictionary key -> (kind, default).
        place: how the table is called in sentences.
    """
    if not isinstance(entries, dict):
        return [f"{place} must be a table. Received: {entries!r}"]
    found = unknown_keys(entries, spec, place)
    for key, (kind, default) in spec.items():
        expected, is_right = _KINDS[kind]
        if key not in entries:
            if default is REQUIRED:
                found.append(f"{place} must have {key}, {expected}. Received: none")
        elif not is_right(entries[key]):
            found.append(f"{key} in {place} must be {expected}. Received: {entries[key]!r}")
    return found


def unknown_keys(keys, known, place):
    """Returns a sentence for each key that is not known."""
    return [
        f"{place} has an unknown key, {key!r}; the nearest known key is {nearest(key, known)!r}. "
        f"Received: {key}"
        for key in keys
        if key not in known
    ]


def defaults(spec):
    """Returns the values of what may be left out."""
    return {key: default for key, (_, default) in spec.items() if default is not REQUIRED}
