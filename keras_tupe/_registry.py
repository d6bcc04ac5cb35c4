"""Registries: records by name, one Python file each, of the package or loaded from elsewhere."""

import importlib.util
import pathlib
import pkgutil
import sys
from collections.abc import Mapping

from keras_tupe._carried_file import CarriedFile
from keras_tupe._keywords import did_you_mean


def records_in(package, path, constant):
    """Returns the records of the modules of a package, which they call `constant`, by name."""
    return {
        module.name: getattr(importlib.import_module(f"{package}.{module.name}"), constant)
        for module in pkgutil.iter_modules(path)
        if not module.ispkg and not module.name.startswith("_")
    }


def look_up(name, records, noun, argument, other=""):
    """Returns a record by its name, or raises a `ValueError` that suggests the nearest."""
    if isinstance(name, str) and name in records:
        return records[name]
    raise ValueError(
        f"Unknown {noun}.{did_you_mean(name, records)} Expected one of {sorted(records)}{other}. "
        f"Received: {argument}={name!r}"
    )


class Registry:
    """Records of one kind by name: a Python file each, of the package or loaded from elsewhere.

    Args:
        package: name of the package whose files are records.
        path: its `__path__`.
        kind: class of the records.
        noun: what a record is, in two words; a file calls its record as the second, in capitals.
        argument: the argument of an encoder that takes a name.
        word: what the option of the command line and the mention in a preset begin with.
    """

    def __init__(self, package, path, kind, noun, argument, word):
        self.noun, self.argument = noun, argument
        self._kind, self._package = kind, package
        self._short = noun.split()[-1]
        self._a_noun = f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"
        self.records = records_in(package, path, self._short.upper())
        loader = f"{package}.load_file"
        self.carried = CarriedFile(noun, f"{word}_file.json", loader, f"--{word}-file")
        self._files = {}  # by name: the path, and the content that was run

    def get(self, name):
        """Returns a record.

        Args:
            name: that of a file in the folder of the registry, or of one that `load_file` loaded.

        Raises:
            ValueError: if there is none of that name; the nearest name is suggested.

        Example:
            >>> from keras_tupe import attention_patterns, positions
            >>> positions.get("tupe_r").source
            'Ke et al. 2021, eq. 11 (TUPE-R)'
            >>> attention_patterns.get("causal").visible(0, {}).is_causal
            True
        """
        other = f", or one whose file was loaded with `{self.carried.loader}(path)`"
        return look_up(name, self.records, self.noun, self.argument, other)

    def load_file(self, path):
        """Adds the record of a Python file, under the file's name.

        The file defines a `PositionMethod` called `METHOD`, an `AttentionPattern` called
        `PATTERN`, or an `Objective` called `OBJECTIVE`. A saved model records the name only: load
        the file again before the model. A preset also carries the file, and never runs it by
        itself.

        Args:
            path: path of a `.py` file, whose name without the suffix becomes the record's name; or
                the folder of a preset that carries such a file.

        Returns:
            The name of the record.

        Raises:
            ValueError: if the file is missing or no Python file, its name is taken or not an
                identifier, it defines no record, or it lies in a preset and was changed since that
                was saved. Errors raised by the file itself are passed on, named.
        """
        path = pathlib.Path(path).resolve()
        if path.is_dir():
            path = self.carried.of(path)[0] or path
        name, received = path.stem, f"Received: path={str(path)!r}"
        is_name = name.isidentifier() and not name.startswith("_")
        if path.suffix != ".py" or not path.is_file() or not is_name:
            raise ValueError(
                f"{self._a_noun.capitalize()} is loaded from an existing Python file, whose name "
                f"becomes the {self._short}'s: an identifier that does not start with an "
                f"underscore. Rename the file, or give another path. {received}"
            )
        source = path.read_bytes()
        self.carried.check_unchanged(path, source)
        known, content = self._files.get(name, (None, None))
        if name in self.records and content == source:
            return name
        if name in self.records and known != path:
            raise ValueError(
                f"There is {self._a_noun} called {name!r} already. Rename the file. {received}"
            )
        constant, kind = self._short.upper(), self._kind.__name__
        record = getattr(self._run(path, source), constant, None)
        if not isinstance(record, self._kind):
            raise ValueError(
                f"The file of {self._a_noun} must define {constant}, of the class "
                f"`{self._package}.{kind}`. {received} with {constant}={record!r}"
            )
        self.records[name] = record
        self._files[name] = path, source
        return name

    def _run(self, path, source):
        """Returns the module of a file."""
        name = f"keras_tupe_{self.argument}_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            exec(compile(source, path, "exec", dont_inherit=True), vars(module))
        except Exception as error:
            del sys.modules[name]
            hint = (
                " The file that a preset carries must stay as it is: change a copy of it in "
                "another folder, and load that before the preset."
                if self.carried.of(path.parent)[0] == path
                else ""
            )
            raise ValueError(
                f"The file of {self._a_noun} could not be run: {type(error).__name__}: {error}."
                f"{hint} Received: path={str(path)!r}"
            ) from error
        return module

    def source_of(self, name):
        """Returns the content of the file that a record was loaded from.

        Args:
            name: name of a record.

        Returns:
            Bytes; `None` for a record of the package.
        """
        return self._files.get(name, (None, None))[1]

    def path_of(self, name):
        """Returns the path of the file that a record was loaded from; `None` for others."""
        return self._files.get(name, (None, None))[0]

    def loaded(self):
        """Returns the names of the records that were loaded from files, a list."""
        return list(self._files)

    def forget(self, name):
        """Removes a record that was loaded from a file."""
        self.records.pop(name, None)
        self._files.pop(name, None)


def resolve_options(given, defaults, noun, argument):
    """Returns options over their defaults, a dictionary.

    Args:
        given: dictionary, or `None` for none.
        defaults: the options that there are, with their defaults.
        noun: whose options they are.
        argument: the argument that takes them.
    """
    if not isinstance(given, Mapping | None):
        raise TypeError(
            f"`{argument}` must be a dictionary of options of the {noun.split()[-1]}, a subset of "
            f"{sorted(defaults)}. Received: {argument}={given!r}"
        )
    given = dict(given or {})
    unknown = [name for name in given if name not in defaults]
    if unknown:
        expected = f"a subset of {sorted(defaults)}" if defaults else "none, it has none"
        nearest = "".join(did_you_mean(name, defaults) for name in unknown)
        raise ValueError(
            f"The {noun} has no option {', '.join(map(repr, unknown))}.{nearest} Expected "
            f"{expected}. Received: {argument}={given!r}"
        )
    return {**defaults, **given}
