"""The outer part of a command: its own words for the record, and errors as sentences."""

import contextlib
import shlex
import sys


def command_of(name, arguments):
    """Returns the command line, for the record.

    Args:
        name: name of the command, such as `ablate`.
        arguments: list of words, or `None` for those of this process.
    """
    words = sys.argv[1:] if arguments is None else arguments
    return shlex.join(["python", "-m", f"training.{name}", *words])


@contextlib.contextmanager
def sentences(name, when_stopped):
    """Ends the process with what an error says, without a traceback.

    Args:
        name: name of the command; every line begins with it.
        when_stopped: what to say after Ctrl-C.

    Raises:
        SystemExit: from `with`.
    """
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        sys.exit("\n".join(f"{name}: {line}" for line in lines))
    except KeyboardInterrupt:
        sys.exit(f"{name}: stopped. {when_stopped}")
