"""The outer part of a command: its own words for the record, errors as sentences, exit codes.

All commands end with the same codes:

    0    done, or stopped by SIGTERM with all work saved (pretrain)
    1    the work failed: the reason is told, and what is done stays
    2    wrong options or settings: all that is wrong is told, nothing was begun
    130  stopped by Ctrl-C
    143  stopped by SIGTERM
"""

import contextlib
import errno
import shlex
import signal
import sys

FAILED, WRONG = 1, 2
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def command_of(name, arguments, package="training"):
    """Returns the command line, for the record.

    Args:
        name: name of the command, such as `pretrain`.
        arguments: list of words, or `None` for those of this process.
        package: where the command is.
    """
    words = sys.argv[1:] if arguments is None else arguments
    return shlex.join(["python", "-m", f"{package}.{name}", *map(str, words)])


def end_cleanly_on_sigterm():
    """Makes SIGTERM an end like any other, so that nothing is left behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


@contextlib.contextmanager
def sentences(name, when_stopped, when_full=None):
    """Ends the process with what an error says, without a traceback.

    Args:
        name: name of the command; every line begins with it.
        when_stopped: what to say after Ctrl-C.
        when_full: what to say where the disk is full, if not what the system says.

    Raises:
        SystemExit: from `with`, with the codes of this module.
    """
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError) as error:
        text = str(error)
        if when_full is not None and getattr(error, "errno", None) in _FULL_DISK:
            text = f"{when_full} Received: {error.strerror}"
        lines = text.splitlines() or [type(error).__name__]
        sys.exit("\n".join(f"{name}: {line}" for line in lines))
    except KeyboardInterrupt as error:
        print(f"{name}: stopped. {when_stopped}", file=sys.stderr, flush=True)
        sys.exit(128 + getattr(error, "signal", signal.SIGINT))
