"""Runs the pickle inside a torch file on a stack machine of our own, which can run no code.

Python's `pickle.loads` calls whatever the file names. This machine knows the few instructions that
`torch.save` writes, and of what they may name only the entries of `globals`; nothing is
imported, nothing of the file is called. It also bounds what a file can cost: every instruction
makes at most one small object or takes bytes that are in the file, and their number is limited.

Source: the comments of `pickletools` in Python's standard library, protocols 2 to 5.
"""

import struct

from keras_tupe.convert.torch_files import globals
from keras_tupe.convert.torch_files.tensors import TorchFileError

MAX_INSTRUCTIONS = 4_000_000  # a BERT's file has about 10,000, one with Adam's state 30,000
MAX_PROTOCOL = 5


class TorchPickle:
    """One pickle of a torch file.

    Args:
        stream: `BoundedStream`, at the first byte of the pickle.
        load_storage: function of the tuple that stands for a storage in the file, to a `Storage`.
    """

    def __init__(self, stream, load_storage):
        self._stream = stream
        self._load_storage = load_storage
        self._stack = []
        self._below_marks = []  # the stacks that were set aside, one for each open mark
        self._memo = {}
        self._budget = MAX_INSTRUCTIONS

    def load(self):
        """Returns the object, and leaves the stream behind the pickle.

        Raises:
            TorchFileError: if the pickle is damaged, names something that is not allowed, or
                is larger than a checkpoint's can be.
        """
        while True:
            self._spend(1)
            code = self._stream.read(1)
            if code == b".":
                return self._pop()
            instruction = _INSTRUCTIONS.get(code)
            if instruction is None:
                raise TorchFileError(
                    f"its pickle holds the instruction {code!r}, which torch.save does not write"
                )
            instruction(self)

    def _spend(self, count):
        self._budget -= count
        if self._budget < 0:
            raise TorchFileError(
                f"its pickle has more than {MAX_INSTRUCTIONS} instructions, far more than the "
                "weights of any model need"
            )

    def _push(self, value):
        self._stack.append(value)

    def _pop(self):
        if not self._stack:
            raise TorchFileError("its pickle takes a value where there is none")
        return self._stack.pop()

    def _top(self, kind):
        if not self._stack or type(self._stack[-1]) is not kind:
            raise TorchFileError(f"its pickle expects a {kind.__name__} where there is none")
        return self._stack[-1]

    def _pop_mark(self):
        if not self._below_marks:
            raise TorchFileError("its pickle closes a mark that it did not open")
        items, self._stack = self._stack, self._below_marks.pop()
        return items

    def _number(self, layout):
        return struct.unpack(layout, self._stream.read(struct.calcsize(layout)))[0]

    def _text(self, layout):
        try:
            return self._stream.read(self._number(layout)).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise TorchFileError("its pickle holds a text that is not UTF-8") from None

    def _protocol(self):
        if self._number("<B") > MAX_PROTOCOL:
            raise TorchFileError(f"its pickle has a protocol above {MAX_PROTOCOL}")

    def _mark(self):
        self._below_marks.append(self._stack)
        self._stack = []

    def _long(self):
        self._push(int.from_bytes(self._stream.read(self._number("<B")), "little", signed=True))

    def _append(self):
        value = self._pop()
        self._top(list).append(value)

    def _append_all(self):
        values = self._pop_mark()
        self._top(list).extend(values)

    def _set_item(self):
        value, key = self._pop(), self._pop()
        self._top(dict)[globals.checked_key(key)] = value

    def _set_items(self):
        values = self._pop_mark()
        if len(values) % 2:
            raise TorchFileError("its pickle has a key without a value")
        self._top(dict).update(
            (globals.checked_key(key), value)
            for key, value in zip(values[::2], values[1::2], strict=True)
        )

    def _tuple_of(self, count):
        self._push(tuple(reversed([self._pop() for _ in range(count)])))

    def _put(self, index):
        if not self._stack:
            raise TorchFileError("its pickle remembers a value where there is none")
        self._memo[index] = self._stack[-1]

    def _get(self, index):
        if index not in self._memo:
            raise TorchFileError("its pickle recalls a value that it did not remember")
        self._push(self._memo[index])

    def _global(self):
        module, name = self._stream.read_line(), self._stream.read_line()
        self._push(globals.find(module, name))

    def _global_from_stack(self):
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str:
            raise TorchFileError("its pickle names a class without a text")
        self._push(globals.find(module, name))

    def _call(self):
        arguments, called = self._pop(), self._pop()
        if not isinstance(called, globals.Allowed) or type(arguments) is not tuple:
            raise TorchFileError("its pickle calls something that cannot be called")
        # What a copy may cost is counted, or a long list copied often would be a bomb.
        self._spend(sum(len(part) for part in arguments if type(part) in (list, tuple)))
        self._push(called.make(*arguments))

    def _set_state(self):
        state = self._pop()
        if self._stack and isinstance(self._stack[-1], globals.InertObject):
            self._stack[-1].set_state(state)
        else:  # torch keeps versions of modules as an attribute of the state's dictionary
            self._top(dict)

    def _persistent(self):
        self._push(self._load_storage(self._pop()))


_INSTRUCTIONS = {
    b"\x80": TorchPickle._protocol,
    b"\x95": lambda machine: machine._number("<Q"),  # a frame: how many bytes follow
    b"(": TorchPickle._mark,
    b"0": TorchPickle._pop,
    b"1": TorchPickle._pop_mark,
    b"N": lambda machine: machine._push(None),
    b"\x88": lambda machine: machine._push(True),
    b"\x89": lambda machine: machine._push(False),
    b"J": lambda machine: machine._push(machine._number("<i")),
    b"K": lambda machine: machine._push(machine._number("<B")),
    b"M": lambda machine: machine._push(machine._number("<H")),
    b"\x8a": TorchPickle._long,
    b"G": lambda machine: machine._push(machine._number(">d")),
    b"X": lambda machine: machine._push(machine._text("<I")),
    b"\x8c": lambda machine: machine._push(machine._text("<B")),
    b"\x8d": lambda machine: machine._push(machine._text("<Q")),
    b"T": lambda machine: machine._push(machine._text("<I")),  # of Python 2
    b"U": lambda machine: machine._push(machine._text("<B")),  # of Python 2
    b"B": lambda machine: machine._push(machine._stream.read(machine._number("<I"))),
    b"C": lambda machine: machine._push(machine._stream.read(machine._number("<B"))),
    b"\x8e": lambda machine: machine._push(machine._stream.read(machine._number("<Q"))),
    b"]": lambda machine: machine._push([]),
    b"a": TorchPickle._append,
    b"e": TorchPickle._append_all,
    b"}": lambda machine: machine._push({}),
    b"s": TorchPickle._set_item,
    b"u": TorchPickle._set_items,
    b")": lambda machine: machine._push(()),
    b"t": lambda machine: machine._push(tuple(machine._pop_mark())),
    b"\x85": lambda machine: machine._tuple_of(1),
    b"\x86": lambda machine: machine._tuple_of(2),
    b"\x87": lambda machine: machine._tuple_of(3),
    b"q": lambda machine: machine._put(machine._number("<B")),
    b"r": lambda machine: machine._put(machine._number("<I")),
    b"\x94": lambda machine: machine._put(len(machine._memo)),
    b"h": lambda machine: machine._get(machine._number("<B")),
    b"j": lambda machine: machine._get(machine._number("<I")),
    b"c": TorchPickle._global,
    b"\x93": TorchPickle._global_from_stack,
    b"R": TorchPickle._call,
    b"\x81": TorchPickle._call,
    b"b": TorchPickle._set_state,
    b"Q": TorchPickle._persistent,
}
