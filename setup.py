"""Packages of the wheel; all else that an installer asks is in `pyproject.toml`.

The programs stand in `training/`. The wheel puts that folder into `keras_tupe_programs`, where it
does not take the name `training` from its users.
"""

from setuptools import find_packages, setup

PROGRAMS = "keras_tupe_programs"

setup(
    packages=find_packages(include=["keras_tupe*"])
    + [f"{PROGRAMS}.{name}" for name in find_packages(include=["training*"])],
    package_dir={f"{PROGRAMS}.training": "training"},
    package_data={f"{PROGRAMS}.training": ["configs/*.toml", "configs/*/*.toml"]},
)
