"""Torch files are read as data; what is not data, or not whole, is refused in one sentence."""

import builtins
import collections
import contextlib
import io
import os
import pickle
import random
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
import torch_cases
from golden_cases import GOLDEN
from torch_cases import called, legacy_file, named, outside, pickled, tensor, zip_file

from keras_tupe.convert import torch_file
from keras_tupe.convert.torch_file import read_torch_file

SIX = np.arange(6, dtype="<f4").tobytes()
MEBIBYTE = 2**20
FILES = ["torch_zip.pt", "torch_legacy.pt"]


def read(tmp_path, data):
    path = tmp_path / "weights.pt"
    path.write_bytes(data)
    return read_torch_file(path)


def refused(tmp_path, data, match="Expected a whole file"):
    with pytest.raises(ValueError, match=match) as caught:
        read(tmp_path, data)
    assert str(caught.value).startswith("This torch checkpoint was not read: ")
    assert str(caught.value).endswith(f"Received: path={str(tmp_path / 'weights.pt')!r}")


@contextlib.contextmanager
def memory_below(limit):
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def both_formats(value, storages=None):
    """Yields a file in each format; `value` is made by a function of `legacy`."""
    for legacy, write in ((False, zip_file), (True, legacy_file)):
        yield write(pickled(value(legacy)), storages or {"0": SIX})


@pytest.mark.parametrize("name", FILES)
def test_what_torch_wrote_is_read_exactly(name):
    found, expected = read_torch_file(GOLDEN / name), np.load(GOLDEN / "torch_tensors.npz")
    assert sorted(found["tensors"]) == sorted(expected)
    for key, value in expected.items():
        ours = found["tensors"][key]
        assert (ours.dtype, ours.shape) == (value.dtype, value.shape), key
        np.testing.assert_array_equal(ours, value, err_msg=key)
        assert not ours.flags.writeable
    assert np.shares_memory(found["tensors"]["plain"], found["tensors"]["tied"])
    assert np.shares_memory(found["tensors"]["plain"], found["tensors"]["transposed"])
    assert found["args"].class_name == "argparse.Namespace"
    args = {"lr": [1e-4], "fp16": False, "data": "corpus", "seed": None}
    assert found["args"].attributes == args
    nested = (1, (2, "\xe4"), [True, -3, 300, 70000, -(2**40)])
    assert found["plain"] == {140234523452123: 1, None: 2.5, "size": (2, 3), "nested": nested}
    assert found["numpy_scalar"].attributes == {}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_data_of_every_protocol_is_read(tmp_path, protocol):
    value = {
        "numbers": [0, 1, 255, 256, 65535, 65536, -1, 2**31, -(2**31), 2**60, 1.5, -2.0],
        "texts": ["", "a", "\u20ac" * 300, b"" if protocol > 2 else "", True, False, None],
        "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], {}, [[1], [2]]],
        1: collections.OrderedDict([("b", 1), ("a", 2)]),
    }
    found = read(tmp_path, zip_file(pickle.dumps(value, protocol), {}))
    assert found == value
    assert list(found[1]) == ["b", "a"]


def test_unusual_tensors_are_read(tmp_path):
    storage = ("storage", named("torch", "FloatStorage"), "0", "cpu", 6, ("1", 2, 3))
    given = (outside(storage), 1, (2,), (1,), False, called("collections", "OrderedDict"))
    part = called("torch._utils", "_rebuild_tensor_v2", *given)  # of a storage
    assert read(tmp_path, legacy_file(pickled(part), {"0": SIX})).tolist() == [3, 4]
    for data in both_formats(lambda old: tensor("0", 6, (1, 6), stride=(2**61, 1), legacy=old)):
        assert read(tmp_path, data).tolist() == [[0, 1, 2, 3, 4, 5]]


class Attack:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def attacks(target):
    """Returns pickles, by name, that make a file if Python loads them."""
    command, code = f"touch {target}", f"open({str(target)!r}, 'w').close()"
    system, evaluate = Attack(os.system, command), Attack(builtins.eval, code)
    run = called("builtins", "eval", code)
    text = b"S'" + command.encode() + b"'\n"
    return {
        **{f"os.system, protocol {n}": pickle.dumps(system, n) for n in (0, 1, 2, 3, 4, 5)},
        **{f"eval, protocol {n}": pickle.dumps(evaluate, n) for n in (0, 1, 2, 3, 4, 5)},
        "exec": pickle.dumps(Attack(builtins.exec, code), 2),
        "nested": pickle.dumps({"args": 1, "model": {"w": [1, (2, {"x": evaluate})]}}, 2),
        "in a list before a tensor": pickled([run, tensor("0", 6, (2, 3))]),
        "in a persistent id": pickled(outside(("storage", run, "0", "cpu", 6))),
        "as a persistent id": pickled(outside(run)),
        "as a key": pickled({"a": 1, "b": {run: 1}}),
        "as a size": pickled(called("torch._utils", "_rebuild_tensor_v2", *[run] * 4, 0, 0)),
        "as an attribute": pickled(torch_cases.settings(x=run)),
        "INST": b"(" + text + b"iposix\nsystem\n.",
        "OBJ": b"(cposix\nsystem\n" + text + b"o.",
        "by attributes": b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93"
        + b"\x8c"
        + bytes([len(code)])
        + code.encode()
        + b"\x85R.",
        "popped": b"\x80\x02" + run + b"0N.",
        "NEWOBJ": b"\x80\x02"
        + named("subprocess", "Popen")
        + pickled(([["touch", str(target)]],))[2:-1]
        + b"\x81.",
    }


@pytest.mark.parametrize("name", sorted(attacks("x")))
def test_an_attack_is_refused_and_does_not_run(tmp_path, name):
    target = tmp_path / "touched"
    attack = attacks(target)[name]
    if name in ("os.system, protocol 2", "eval, protocol 4", "nested", "INST"):  # they are real
        pickle.loads(attack)
        target.unlink()
    for data in (
        zip_file(attack, {"0": SIX}),
        legacy_file(attack, {"0": SIX}),
        legacy_file(pickled(1), {}, keys=attack),
        pickled(torch_cases.MAGIC_NUMBER) + attack,
    ):
        refused(tmp_path, data, "nothing was run|is damaged")
        assert not target.exists()


def test_a_name_off_the_list_is_refused_by_name(tmp_path):
    for module, name in (
        ("torch.storage", "_load_from_bytes"),
        ("torch.hub", "load"),
        ("torch", "load"),
        ("torch", "nn.Module"),
        ("collections", "OrderedDict.fromkeys"),
        ("argparse", "Namespace.__init__"),
        ("argparse", "FileType"),
        ("builtins", "getattr"),
        ("keras_tupe.convert.torch_file", "read_torch_file"),
        ("torch", "QUInt8Storage"),
    ):
        for data in both_formats(lambda legacy, call=(module, name): {"w": called(*call, "x")}):
            refused(tmp_path, data, f"asks for '{module}.{name}'")


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*FILES, "fairseq_tupe_r.pt"])
def test_a_file_cut_at_any_byte_is_refused(tmp_path, name, step):
    data = (GOLDEN / name).read_bytes()
    step = 1499 if name.startswith("fairseq") else step
    for length in [*range(0, len(data), step), *range(len(data) - 100, len(data))]:
        refused(tmp_path, data[:length])


def outcome(tmp_path, data):
    try:
        read(tmp_path, data)
    except ValueError as error:
        return "refused" if "This torch checkpoint was not read: " in str(error) else str(error)
    return "read"


@pytest.mark.parametrize("name", FILES)
def test_damaged_bytes_give_a_named_error_or_other_numbers(tmp_path, name):
    data, outcomes, generator = (GOLDEN / name).read_bytes(), [], random.Random(5)
    with memory_below(8 * MEBIBYTE):
        for _ in range(160):
            damaged = bytearray(data)
            for _ in range(generator.choice((1, 1, 2, 8))):
                damaged[generator.randrange(len(data))] = generator.randrange(256)
            outcomes.append(outcome(tmp_path, bytes(damaged)))
    value = {"args": torch_cases.settings(a=1, b="x"), "model": {"w": tensor("0", 6, (2, 3))}}
    data = pickled(value)  # in a sound archive
    for _ in range(400):
        damaged = bytearray(data)
        damaged[generator.randrange(len(data))] = generator.randrange(256)
        outcomes.append(outcome(tmp_path, zip_file(bytes(damaged), {"0": SIX})))
    assert set(outcomes) == {"read", "refused"}
    assert min(outcomes.count("read"), outcomes.count("refused")) > 20


@pytest.mark.parametrize(
    "lie",
    [
        {"count": 5, "size": (5,)},
        {"count": 7, "size": (7,)},
        {"count": 2**40, "size": (2,)},
        {"count": 6, "size": (3, 3)},
        {"count": 6, "size": (2, 3), "offset": 1},
        {"count": 6, "size": (2, 3), "stride": (4, 1)},
        {"count": 6, "size": (2**40,), "stride": (0,)},
        {"count": 6, "size": (7,), "stride": (0,)},
        {"count": 6, "size": (2, 3), "stride": (3,)},
        {"count": 6, "size": (1,) * 40},
        {"count": 6, "size": (0, 2**61)},
        {"count": 6, "size": (-2, 3)},
        {"count": 6, "size": (2, 3), "offset": -1},
        {"count": 6, "size": (2, 3), "stride": (-3, 1)},
        {"count": 6, "size": (2.0, 3), "stride": (3, 1)},
        {"count": -1, "size": (2, 3)},
        {"count": True, "size": (1,)},
        {"count": 6, "size": (2, 3), "kind": "DoubleStorage"},
        {"count": 6, "size": (2, 3), "function": "_rebuild_parameter"},
    ],
    ids=str,
)
def test_sizes_that_lie_are_refused_and_cost_nothing(tmp_path, lie):
    with memory_below(8 * MEBIBYTE):
        for data in both_formats(lambda legacy: {"w": tensor("0", **lie, legacy=legacy)}):
            refused(tmp_path, data)


ODD_VALUES = [
    [tensor("0", 6, (6,)), tensor("0", 6, (6,), kind="IntStorage")],
    [tensor("0", 6, (6,)), tensor("0", 3, (3,))],
    tensor("1", 6, (6,)),
    tensor("../data.pkl", 6, (6,)),
    outside("module"),
    outside(("module", 1, "0", "cpu", 6)),
    outside(("storage", "FloatStorage", "0", "cpu", 6)),
    outside(("storage", named("torch", "Size"), "0", "cpu", 6)),
    outside(("storage", named("torch", "FloatStorage"), 0, "cpu", 6)),
    called("torch", "FloatStorage", 10**9),
    called("torch._utils", "_rebuild_tensor_v2", 1, 0, (1,), (1,), False, None),
    called("torch._utils", "_rebuild_tensor_v2", 1),
    called("torch._utils", "_rebuild_parameter", 1, False, None),
    called("torch", "Size", 5),
    called("collections", "OrderedDict", [1]),
    called("collections", "OrderedDict", [((), 1)]),
    {(1, 2): 3},
    {1.5: 3},
    {2**64: 3},
]
BROKEN = [
    *(b".", b"0.", b"Nt.", b"(1.", b"NNa.", b"NNNs.", b"}(Nu.", b"N(Ne.", b"q\x00.", b"h\x00."),
    *(b"NNR.", b"NN\x93.", b"NNb.", b"X\x02\x00\x00\x00\xff\xfe.", b"cos\xff\nsystem\n."),
    *(b"c" + b"a" * 2000 + b"\n.", b"X\xff\xff\xff\x7f.", b"\x8e" + struct.pack("<Q", 2**63)),
    *(b"\x80\x06N.", b"\x82\x01.", b""),
]


def test_a_pickle_that_torch_would_not_write_is_refused(tmp_path):
    for value in ODD_VALUES:
        refused(tmp_path, zip_file(pickled(value), {"0": SIX}))
    for raw in BROKEN:
        refused(tmp_path, zip_file(raw, {}))
    for data in (b"", b"PK", b"text, not weights\n", b"\x93NUMPY"):
        refused(tmp_path, data)


def test_what_a_pickle_can_cost_is_bounded(tmp_path, monkeypatch):
    depth = 50_000
    place = b"\x80\x02]r\xff\xff\xff\x7fj\xff\xff\xff\x7f."  # the last one of its memory
    with memory_below(8 * MEBIBYTE):
        assert read(tmp_path, zip_file(place, {})) == []
    assert read(tmp_path, zip_file(b"\x80\x02]" + b"\x85" * depth + b".", {}))
    refused(tmp_path, zip_file(b"\x80\x02}N" + b"\x85" * depth + b"Ns.", {}), "a key")
    doubling = b"\x80\x02)" + b"q\0h\0\x86" * 200 + b"."  # 2 to the 200 leaves, if they were copied
    assert len(read(tmp_path, zip_file(doubling, {}))) == 2
    monkeypatch.setattr(torch_file, "MAX_PICKLE_BYTES", 8000)
    items = pickled([(str(place), 0) for place in range(100)])[:-1] + b"q\x00"
    copies = b"".join(named("collections", "OrderedDict") + b"h\x00\x85R0" for _ in range(100))
    read(tmp_path, zip_file(items + b".", {}))
    refused(tmp_path, zip_file(items + copies + b".", {}), "far more than the weights")
    for data in both_formats(lambda legacy: "a" * 9000):
        refused(tmp_path, data, "cut off")


def test_a_dishonest_archive_is_refused(tmp_path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickled(tensor("0", 16 * MEBIBYTE, (1,))))
        archive.writestr("archive/data/0", bytes(64 * MEBIBYTE))
    bomb = file.getvalue()
    del file
    with memory_below(8 * MEBIBYTE):
        refused(tmp_path, bomb, "is compressed, which torch.save never does")
    honest = zip_file(pickled(tensor("0", 6, (6,))), {"0": SIX})
    data, place = bytearray(honest), honest.rindex(b"archive/data/0") - 46  # of its directory
    data[place + 20 : place + 28] = struct.pack("<II", 10**9, 10**9)
    refused(tmp_path, bytes(data), "claims more")
    refused(tmp_path, honest.replace(SIX, SIX[:-1] + b"\x41"), "CRC")
    for names in ((), ("data.pkl",), ("a/b/data.pkl",), ("a/data.pkl", "b/data.pkl")):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("other.txt", "text")
            for name in names:
                archive.writestr(name, pickled(1))
        refused(tmp_path, file.getvalue(), "exactly one NAME/data.pkl")


def test_the_machine_must_be_little_endian(tmp_path):
    value = {"w": 1}
    refused(tmp_path, zip_file(pickled(value), {}, byteorder=b"big"), "little-endian")
    refused(tmp_path, legacy_file(pickled(value), {}, little_endian=False), "little-endian")
    assert read(tmp_path, zip_file(pickled(value), {}, byteorder=b"little")) == value


def test_an_older_file_that_contradicts_itself_is_refused(tmp_path):
    value = pickled(tensor("0", 6, (6,), legacy=True))
    for changes in (
        {"keys": pickled(["1"])},
        {"keys": pickled(["0", "0"])},
        {"keys": pickled({"0": 1})},
        {"keys": pickled([0])},
        {"keys": pickled(outside(("storage", 1, "0", "cpu", 6)))},
        {"counts": {"0": 7}},
        {"counts": {"0": -1}},
    ):
        refused(tmp_path, legacy_file(value, {"0": SIX}, **changes))
    refused(tmp_path, pickled({"w": 1}), "it does not begin as torch.save begins|cut off")
    whole = legacy_file(pickled({"w": 1}), {})
    assert read(tmp_path, whole) == {"w": 1}
    refused(tmp_path, whole.replace(pickled(1001), pickled(1002), 1), "does not begin as")


def test_a_missing_file_is_named(tmp_path):
    for path in (tmp_path / "none.pt", tmp_path):
        with pytest.raises(FileNotFoundError, match="no such checkpoint.*Received: path='"):
            read_torch_file(path)
