"""Damaged files of every format: bytes, texts, values, and archives whose checksums are right."""

import io
import json
import math
import re
import struct
import tomllib
import warnings
import zipfile
import zlib

import h5py
import numpy as np

from keras_tupe._vocabulary_files import parse_sentencepiece, piece_field

# === Bytes and lines ===

_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF)
_CELLS = ("", "nan", "inf", "-1", "1e400", "9" * 5_000, "x", "\0", "\ud800", "1.5", "\u00b2", " 1")


def changed_bytes(content, random):
    """Returns bytes of which some were changed, or which were cut or lengthened."""
    content = bytearray(content)
    for _ in range(random.choice([1, 1, 1, 2, 8])):
        place, kind = random.randrange(len(content) or 1), random.randrange(7)
        if kind == 0:
            del content[place:]
        elif kind == 1:
            del content[place : place + random.choice([1, 4, 64])]
        elif kind == 2 or not content:
            content[place:place] = random.randbytes(random.choice([1, 4, 64]))
        elif kind == 3:
            content[place : place + 8] = random.choice(_NUMBERS).to_bytes(1) * 8
        elif kind == 4:
            content[place] = random.choice(_NUMBERS)
        elif kind == 5:
            other = random.randrange(len(content))
            content[place:place] = content[other : other + 32]
        else:
            content[place] ^= 1 << random.randrange(8)
    return bytes(content)


def changed_text(content, random):
    """Returns a text of lines and cells of which one was changed."""
    end, lines = b"\n", content.split(b"\n")
    index, kind = random.randrange(len(lines)), random.randrange(10)
    if kind < 4:
        return changed_bytes(content, random)
    if kind == 4:
        lines.insert(index, random.choice([b"", b"\0", b"\xff\xfe", b" ", lines[index]]))
    elif kind == 5:
        del lines[index]
    elif kind == 6:
        end = random.choice([b"\r\n", b"\r", b"\xe2\x80\xa8"])
    else:
        separator = next((mark for mark in (b"\t", b",", b" ") if mark in lines[index]), b"\t")
        cells = lines[index].split(separator)
        place, cell = random.randrange(len(cells)), random.choice(_CELLS)
        cell = cell.encode("utf-8", "surrogatepass")
        cells[place : place + 1] = random.choice([[], [cell, cell], [cell], [cell]])
        lines[index] = separator.join(cells)
    return end.join(lines)


# === Values: what a hand, another program or an attacker may leave in JSON or TOML ===

_RAW = "@raw@"  # stands for a text that Python's writer would not write
_DEEP = (99, 2_000, 10_000)


def nested(depth, opening="[", closing="]"):
    """Returns the text of a list in a list in a list ..."""
    return opening * depth + closing * depth


VALUES = (
    *(None, True, False, 0, -1, 1, 2, 3, 7, 2**31, 2**40, 2**63, 2**64, -(2**63), 10**400),
    *(0.5, -0.0, 1e308, 1e-320, math.nan, math.inf, -math.inf, 4.9e-324),
    *("", "0", "1", "x", "a\0b", "\ud800", "\U0001f600", "x" * 5_000, "nan", "a\nb", " ", "##"),
    *("../../../etc/passwd", "/etc/passwd", ".", "..", "float32", "mixed_float16", "[PAD]"),
    *([], [[]], {}, {"": {}}, [None], [0], [True], {"class_name": "x"}, [[0, 0]], ["a", "b"]),
    *({"class_name": [], "config": []}, {"config": {"config": None}}, [{}], [1e999], [10**400]),
)
_TEXTS = (
    *(nested(depth) for depth in _DEEP),
    *(nested(depth, '{"a":', "}").replace(":}", ":0}", 1) for depth in _DEEP),
    *("9" * 5_000, "1e999", "-1e999", "[" * 10_000, "\x00", '"\x01"', '"\\u0000"', "'x'"),
)
_ENDS = (b"", b"\x00", b"\xff", b"}", b"\n{}", b"\xef\xbb\xbf", b"[" * 10_000)


def _slots(value):
    """Returns the places in a value: pairs (dictionary or list, key or index)."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, item in items:
        found.append((value, key))
        if isinstance(item, dict | list):
            found += _slots(item)
    return found


def changed(value, random):
    """Returns a value with one place changed: another value, one less, one more, another key."""
    whole = [value]
    inside, key = random.choice(_slots(whole))
    old, kind = inside[key], random.randrange(10)
    other = random.choice(_slots(whole))
    new = random.choice(VALUES)
    if kind == 5:
        new = random.choice([[old], {"x": old}, str(old)])
    elif kind == 6:
        new = json.loads(json.dumps(other[0][other[1]]))
    elif kind == 7 and isinstance(old, int | float):
        new = random.choice([-old, old + 1, old - 1, bool(old), float(old)])
    elif kind > 7 and isinstance(old, dict) and old:
        name, new = random.choice(list(old)), dict(old)
        item = new.pop(name)
        if kind == 8:
            new[random.choice(["", "x", name.upper(), name + "\0"])] = item
    elif kind > 7 and isinstance(old, list) and old:
        index = random.randrange(len(old))
        new = random.choice([old[:index] + old[index + 1 :], [*old, old[index]], old[::-1]])
    elif kind > 7 and isinstance(old, str) and old:
        index = random.randrange(len(old))
        new = old[:index] + random.choice(["", "\0", "é", " "]) + old[index:]
    inside[key] = new
    return whole[0]


def changed_json(content, random):
    """Returns the bytes of a JSON file that was changed at one place, or at its end."""
    value, kind = json.loads(content), random.random()
    if kind < 0.05:
        return content + random.choice(_ENDS)
    if kind < 0.2:
        whole = [value]
        inside, key = random.choice(_slots(whole))
        inside[key] = _RAW
        text = json.dumps(whole[0]).replace(json.dumps(_RAW), random.choice(_TEXTS), 1)
        return text.encode("utf-8", "surrogatepass")
    return json.dumps(changed(value, random)).encode()


def changed_json_lines(content, random):
    """Returns the bytes of a file of JSON lines of which one was changed."""
    lines = content.splitlines()
    index = random.randrange(len(lines))
    lines[index] = changed_json(lines[index], random)
    return b"\n".join(lines) + b"\n"


def _toml(value):
    """Returns a value as TOML writes it inside of a line; what TOML has not is left empty."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {_toml(x)}" for k, x in value.items()) + "}"
    return "" if value is None else json.dumps(value)


def changed_toml(content, random):
    """Returns the bytes of a TOML file that was changed at one place."""
    value = changed(tomllib.loads(content.decode()), random)
    value = value if isinstance(value, dict) else {"x": value}
    text = "".join(f"{json.dumps(str(key))} = {_toml(item)}\n" for key, item in value.items())
    if random.random() < 0.05:
        text += f"deep = {nested(random.choice(_DEEP))}\n"
    return text.encode("utf-8", "surrogatepass")


# === Archives of arrays ===

_SHAPES = ("()", "(0,)", "(-1,)", "(1,)", "(2**40,)", "(1099511627776,)", "(3, 3)", "[2]", "(2.5,)")
_SHAPES += ("(True,)", "None", "(1,)*9", "(" * 200 + ")" * 200, "9" * 5_000, "(2,", "'x'")
_KINDS = ("<f8", ">f4", "|O", "<U4", "|S0", "|V7", "<c16", "<M8[s]", "|b1", "<f2", "x", "", "<f99")


def changed_npy(content, random):
    """Returns an npy file with another header, or other bytes."""
    found = re.match(rb"\x93NUMPY\x01\x00(..)(.*?)\n", content, re.DOTALL)
    kind = random.randrange(6)
    if found is None or kind > 3:
        return changed_bytes(content, random)
    header = found[2].decode("latin-1")
    if kind == 0:
        header = re.sub(r"'shape': \([^)]*\)", f"'shape': {random.choice(_SHAPES)}", header)
    elif kind == 1:
        header = re.sub(r"'descr': '[^']*'", f"'descr': {random.choice(_KINDS)!r}", header)
    elif kind == 2:
        header = re.sub(r"'fortran_order': \w+", "'fortran_order': 7", header)
    else:
        header = changed_bytes(header.encode(), random).decode("latin-1")
    header = header.encode("latin-1", "replace").replace(b"\n", b" ")[: 2**16 - 2] + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content[found.end() :]


def changed_zip(content, random):
    """Returns a zip archive with an entry changed by its kind, or with other facts of an entry."""
    kind = random.randrange(10)
    if kind == 0 or not content.startswith(b"PK"):
        return changed_bytes(content, random)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = {info.filename: archive.read(info) for info in archive.infolist()}
    name = random.choice(list(entries))
    stored, more = zipfile.ZIP_STORED, {}
    if kind == 1:
        del entries[name]
    elif kind == 2:
        entries[random.choice(["", "../x", "x" * 300, name + "\u00e9"])] = entries.pop(name)
    elif kind == 3:
        stored = random.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
    elif kind == 4:
        more[name] = entries[name]  # twice
    elif kind > 5:
        entries[name] = damaged(f".{name.rpartition('.')[2]}", entries[name], random)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", stored) as archive:
        for entry, data in [*entries.items(), *more.items()]:
            archive.writestr(zipfile.ZipInfo(entry), data, stored)
    made = bytearray(made.getvalue())
    if kind == 5:  # a fact of an entry in the central directory: its flags, method, sizes, ...
        starts = [match.start() for match in re.finditer(b"PK\x01\x02", made)]
        place = random.choice(starts) + random.choice([6, 8, 10, 16, 20, 24, 28, 42])
        made[place] = random.choice([1, 8, 9, 12, 14, 64, 93, 99, 255])
    return bytes(made)


def changed_safetensors(content, random):
    """Returns a safetensors file with another header, or other bytes."""
    if random.random() < 0.3:
        return changed_bytes(content, random)
    (size,) = struct.unpack("<Q", content[:8])
    header = changed_json(content[8 : 8 + size], random)
    return struct.pack("<Q", len(header)) + header + content[8 + size :]


def changed_h5(content, random):
    """Returns an HDF5 file with other bytes, or with another content that is written right."""
    if random.random() < 0.4:
        return changed_bytes(content, random)
    buffer = io.BytesIO(content)
    with h5py.File(buffer, "r+") as file:
        names = []
        file.visit(names.append)
        name = random.choice([name for name in names if isinstance(file[name], h5py.Dataset)])
        groups = [other for other in names if isinstance(file[other], h5py.Group)]
        group, array = random.choice(groups or ["/"]), np.asarray(file[name][()])
        external = {"external": [("/etc/passwd", 0, h5py.h5f.UNLIMITED)]}

        def put(value):
            del file[name]
            file[name] = value

        def make(shape, **options):
            del file[name]
            file.create_dataset(name, shape, "f", **options)

        def attribute():
            item = file[random.choice([*names, "/"])]
            for key in [*item.attrs, "extra"]:
                item.attrs[key] = random.choice([b"\xff\x00", 7, "x" * 1_000, np.zeros(3)])

        random.choice(
            [
                attribute,
                lambda: file.move(group, random.choice([f"{group}_", "x", "y/z"])),
                lambda: file.create_dataset(f"{group}/extra", data=np.zeros((2, 3), "f")),
                lambda: file.__delitem__(name),
                lambda: put(np.zeros((*array.shape, 2), "f")),
                lambda: put(array.reshape(-1)[:1]),
                lambda: put(np.full(array.shape, random.choice([np.nan, np.inf]), "f")),
                lambda: put("text"),
                lambda: put(array.astype("complex64")),
                lambda: put(np.zeros(array.shape, [("a", "f4"), ("b", "i8")])),
                lambda: put(array.astype("S4")),
                lambda: put(h5py.SoftLink(f"/{name}")),
                lambda: put(h5py.ExternalLink("/etc/passwd", "/x")),
                lambda: make((2**20, 2**20), chunks=(1, 2**10)),
                lambda: make(array.shape or (1,), **external),
            ]
        )()
    return buffer.getvalue()


def changed_spm(content, random):
    """Returns a SentencePiece model with another piece, or other bytes."""
    kind = random.randrange(10)
    if kind < 3:
        return changed_bytes(content, random)
    fields, pieces, _ = parse_sentencepiece(content)
    place = random.randrange(len(pieces))
    piece, others = pieces[place], [whole for number, _, whole in fields if number != 1]
    if kind == 3:
        texts = ["", "a\0b", "\0", "<s>", "<unk>", "x" * 70_000, "\u2581", "<0x00>", "<0xZZ>", "\n"]
        pieces[place] = piece._replace(text=random.choice(texts))
    elif kind == 4:
        pieces[place] = piece._replace(kind=random.choice([*range(8), 2**64 - 1, 2**31 - 1]))
    elif kind == 5:
        scores = [float("nan"), float("inf"), float("-inf"), 1e38]
        pieces[place] = piece._replace(score=random.choice(scores))
    elif kind == 6:
        del pieces[place]
    elif kind == 7:
        pieces.append(piece)
    elif kind == 8:
        del pieces[place:]
    else:
        more = [b"\x12\x02\x18\x01", b"\x12\x02\x18\x07", b"\x1a\x02\x12\x00"]
        others.append(random.choice(more))
    return b"".join([*map(piece_field, pieces), *others])


def changed_gzip(content, random):
    """Returns gzip with other content and the right checksum, or other bytes."""
    if random.random() < 0.6:
        return changed_bytes(content, random)
    packer = zlib.compressobj(wbits=31)
    return packer.compress(changed_bytes(zlib.decompress(content, 47), random)) + packer.flush()


_BY_SUFFIX = {
    ".json": changed_json,
    ".jsonl": changed_json_lines,
    ".toml": changed_toml,
    ".npy": changed_npy,
    ".h5": changed_h5,
    ".safetensors": changed_safetensors,
    ".spm": changed_spm,
    ".gz": changed_gzip,
    **dict.fromkeys((".npz", ".keras", ".pt", ".bin"), changed_zip),
    **dict.fromkeys((".csv", ".tsv", ".txt", ".md"), changed_text),
}


def damaged(suffix, content, random):
    """Returns the bytes of a file, changed as files of its kind can be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names that are there twice, on purpose
            return _BY_SUFFIX.get(suffix, changed_bytes)(content, random)
    except Exception:  # damaged twice: it no longer has a structure
        return changed_bytes(content, random)
