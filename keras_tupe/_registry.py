"""Registries: records by name, one Python file each, of the package or loaded from elsewhere."""

import importlib.util
import inspect
import pathlib
import pkgutil
import sys
from collections.abc import Mapping

from keras_tupe._carried_file import CarriedFile
from keras_tupe._keywords import did_you_mean


def records_in(package, path, constant):
    """Returns the records of the modules of a package, by the modules' names.

    Args:
        package: its name.
        path: its `__path__`.
        constant: what each module calls its record; those that begin with `_` have none.
    """
    names = [module.name for module in pkgutil.iter_modules(path) if not module.ispkg]
    return {
        name: getattr(importlib.import_module(f"{package}.{name}"), constant)
        for name in names
        if not name.startswith("_")
    }


def look_up(name, records, noun, argument, other=""):
    """Returns a record.

    Args:
        name: its name.
        records: dictionary from name to record.
        noun: what a record is, in words.
        argument: the argument that takes a name.
        other: what else may be named, for the message.

    Raises:
        ValueError: if there is none of that name; the nearest name is suggested.
    """
    if isinstance(name, str) and name in records:
        return records[name]
    raise ValueError(
        f"Unknown {noun}.{did_you_mean(name, records)} Expected one of {sorted(records)}{other}. "
        f"Received: {argument}={name!r}"
    )


class Registry:
    """Records of one kind by name.

    Args:
        records: dictionary from name to record; `load_file` adds more.
        kind: the class of the records.
        noun: what a record is, in words.
        argument: the argument of an encoder that takes a name.
        constant: what the file of a record calls it.
        loader: the public function that loads a file.
        carried_as: name of the file in which a preset says that it carries one.
        option: the option of the command line that names a file.
    """

    def __init__(self, records, kind, noun, argument, constant, loader, carried_as, option):
        self.records = records
        self.noun = noun
        self.argument = argument
        self.carried = CarriedFile(noun, carried_as, loader, option)
        self._kind, self._constant, self._loader = kind, constant, loader
        self._article = "an" if noun[0] in "aeio" else "a"
        self._files = {}  # by name: the path, and the content that was run

    def get(self, name):
        """Returns a record.

        Raises:
            ValueError: if there is none of that name; the nearest name is suggested.
        """
        other = (
            f", or {self._article} {self.noun.split()[-1]} whose file was loaded with "
            f"`{self._loader}(path)`"
        )
        return look_up(name, self.records, self.noun, self.argument, other)

    def load_file(self, path):
        """Adds the record of a Python file, under the file's name, which is returned.

        Args:
            path: path of a `.py` file, or the folder of a preset that carries one.

        Raises:
            ValueError: if there is no such file, its name is taken or not an identifier, it holds
                no record, cannot be run, or lies in a preset and was changed.
        """
        path = pathlib.Path(path).resolve()
        if path.is_dir():
            path = self.carried.of(path)[0] or path
        name = path.stem
        title = f"{self._article.capitalize()} {self.noun}"
        if path.suffix != ".py" or not path.is_file():
            raise ValueError(
                f"{title} is loaded from an existing Python file. Received: path={str(path)!r}"
            )
        if not name.isidentifier() or name.startswith("_"):
            raise ValueError(
                f"The file name becomes the {self.noun.split()[-1]}'s name and must be a Python "
                "identifier that does not start with an underscore. Rename the file. "
                f"Received: path={str(path)!r}"
            )
        source = path.read_bytes()
        self.carried.check_unchanged(path, source)
        if name in self.records and self._files.get(name, (path, None))[1] == source:
            return name
        if name in self.records and self._files.get(name, (None, None))[0] != path:
            raise ValueError(
                f"There is {self._article} {self.noun} called {name!r} already. Rename the file. "
                f"Received: path={str(path)!r}"
            )
        record = getattr(self._run(path, source), self._constant, None)
        if not isinstance(record, self._kind):
            raise ValueError(
                f"The file of {self._article} {self.noun} must define {self._constant}, "
                f"{'an' if self._kind.__name__[0] in 'AEIO' else 'a'} "
                f"`{self._loader.rpartition('.')[0]}.{self._kind.__name__}`. "
                f"Received: path={str(path)!r} with {self._constant}={record!r}"
            )
        self.records[name] = record
        self._files[name] = path, source
        return name

    def _run(self, path, source):
        kind = self.argument
        spec = importlib.util.spec_from_file_location(f"keras_tupe_{kind}_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        try:
            exec(compile(source, path, "exec", dont_inherit=True), vars(module))
        except Exception as error:
            del sys.modules[spec.name]
            hint = (
                " The file that a preset carries must stay as it is: change a copy of it in "
                "another folder, and load that before the preset."
                if self.carried.of(path.parent)[0] == path
                else ""
            )
            raise ValueError(
                f"The file of {self._article} {self.noun} could not be run: "
                f"{type(error).__name__}: {error}.{hint} Received: path={str(path)!r}"
            ) from error
        return module

    def source_of(self, name):
        """Returns the content of the file that a record was loaded from; `None` for others."""
        return self._files.get(name, (None, None))[1]

    def path_of(self, name):
        """Returns the path of the file that a record was loaded from; `None` for others."""
        return self._files.get(name, (None, None))[0]

    def forget(self, name):
        """Removes a record that was loaded from a file.

        Args:
            name: its name.
        """
        self.records.pop(name, None)
        self._files.pop(name, None)

    def loaded(self):
        """Returns the names of the records that were loaded from files, a list."""
        return list(self._files)


def check_function(name, function, arguments, owner, may_be_none=False):
    """Refuses what is no function of some arguments.

    Args:
        name: the field.
        function: what stands there.
        arguments: names of the arguments, in order.
        owner: whose field it is, with its article.
        may_be_none: whether `None` may stand there.

    Raises:
        TypeError: if it is none, or does not take them.
    """
    if function is None and may_be_none:
        return
    received = _misfit(function, arguments)
    if received is not None:
        raise TypeError(
            f"`{name}` of {owner} must be a function of ({', '.join(arguments)})"
            f"{', or None' if may_be_none else ''}. Received: {name}={received}"
        )


def _misfit(function, arguments):
    """Returns what stands where a function of `arguments` must, or `None` if it takes them."""
    if not callable(function):
        return repr(function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C do not say what they take
        return None
    try:
        signature.bind(*arguments)
    except TypeError:
        return f"a function of {signature}"
    return None


def resolve_options(given, defaults, noun, argument):
    """Returns options over their defaults, a dictionary.

    Args:
        given: dictionary, or `None` for none.
        defaults: the options that there are, with their defaults.
        noun: whose options they are.
        argument: the argument that takes them.

    Raises:
        TypeError: if `given` is no dictionary.
        ValueError: for an option that there is not.
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
