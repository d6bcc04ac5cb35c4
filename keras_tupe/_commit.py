"""Which source this is."""

import pathlib
import subprocess


def commit():
    """Returns the commit of the source, with `-dirty` after it if files differ, or `None`."""
    root = pathlib.Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return None
    try:
        result = subprocess.run(
            ["git", "describe", "--always", "--abbrev=40", "--dirty"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return result.stdout.strip()
