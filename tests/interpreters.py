"""Python in a process of its own, for what only that shows."""

import os
import subprocess
import sys


def python(*words, environment=None, **settings):
    """Runs Python to a good end.

    Args:
        *words: its command line, such as `"-c"` and a program, or the path of one.
        environment: variables to set beside those of this process.
        **settings: of `subprocess.run`.

    Returns:
        What it printed.
    """
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(environment or {})},
        **{"timeout": 900, **settings},
    )
    assert ended.returncode == 0, ended.stdout[-300:] + ended.stderr[-4000:]
    return ended.stdout
