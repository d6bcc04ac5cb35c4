"""What follows the number of steps: the warm-up, and the checkpoints that are kept."""

from training.command.settings import COMMAND_LINE


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
    the file for what the file says, else of the default's.

    Args:
        values: dictionary of the settings that are not left at their defaults.
        from_file: those that a file of named settings says.
        defaults: dictionary with the defaults of `steps`, `warmup_steps`.
        given: dictionary: name -> where it was given.
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
    if given.get("keep_steps") not in (None, COMMAND_LINE) and steps != usual > 0:
        values["keep_steps"] = _scaled_list(
            from_file["keep_steps"], steps / usual, max(values.get("steps_per_call", 1), 1)
        )
    return values


def _scaled_list(text, factor, call):
    """Returns steps by commas, each a multiple of `call`; another text stays as it is."""
    try:
        numbers = [int(word) for word in text.split(",") if word.strip()]
    except ValueError:
        return text
    kept = {round(number * factor / call) * call for number in numbers}
    return ",".join(str(number) for number in sorted(kept) if number >= 1)
