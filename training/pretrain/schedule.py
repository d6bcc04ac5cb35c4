"""What follows the number of steps: the warm-up, and the steps whose models are kept."""

from training.command.settings import COMMAND_LINE

_LISTS = ("keep_steps", "preset_steps")  # of steps, by commas


def scaled_warmup(warmup_steps, usual_steps, steps):
    """Returns the warm-up of a run of `steps` that is the same share as in a run of `usual_steps`.

    Example:
        >>> scaled_warmup(180, 3000, 50)
        3
    """
    return max(min(round(warmup_steps / usual_steps * steps), steps - 1), 0)


def scaled(values, from_file, defaults, given):
    """Returns settings whose warm-up and kept steps fit to the number of steps.

    What the command line gives stays as it is. The rest keeps its share of the steps: of those of
    the file for what the file says, else of the default's. The arguments are dictionaries by name,
    `given` of where a setting was given; see `training.command.settings.parse`.
    """
    steps = values.get("steps", defaults["steps"])
    if steps < 1:
        return values  # told as a mistake
    values = dict(values)
    if given.get("warmup_steps") != COMMAND_LINE:
        source = from_file if "warmup_steps" in from_file else {}
        usual = source.get("steps", defaults["steps"])
        warmup = source.get("warmup_steps", defaults["warmup_steps"])
        # what is wrong in the file is told as it stands there
        if steps != usual and 0 <= warmup < usual:
            values["warmup_steps"] = scaled_warmup(warmup, usual, steps)
    usual = from_file.get("steps", defaults["steps"])
    for name in _LISTS:
        if given.get(name) not in (None, COMMAND_LINE) and steps != usual > 0:
            values[name] = scaled_list(from_file[name], steps / usual)
    return values


def step_numbers(text):
    """Returns steps by commas as integers, each once, ascending.

    Raises:
        ValueError: if one is no integer.

    Example:
        >>> step_numbers("300_000, 100000")
        (100000, 300000)
    """
    return tuple(sorted({int(word) for word in text.split(",") if word.strip()}))


def scaled_list(text, factor):
    """Returns steps by commas times a factor; another text stays as it is.

    Example:
        >>> scaled_list("100000, 300000", 0.001)
        '100,300'
    """
    try:
        numbers = step_numbers(text)
    except ValueError:
        return text
    kept = {round(number * factor) for number in numbers}
    return ",".join(str(number) for number in sorted(kept) if number >= 1)
