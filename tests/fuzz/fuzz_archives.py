"""Damaged archives of arrays whose checksums are right: zip, npz, npy, safetensors, HDF5."""

import io
import re
import struct
import zipfile
import zlib

import h5py
import numpy as np
from fuzz_bytes import changed_bytes
from fuzz_values import changed_json

from keras_tupe._vocabulary_files import parse_sentencepiece, piece_field

_SHAPES = ("()", "(0,)", "(-1,)", "(1,)", "(2**40,)", "(1099511627776,)", "(3, 3)", "[2]", "(2.5,)")
_SHAPES += ("(True,)", "None", "(1,)*9", "(" * 200 + ")" * 200, "9" * 5_000, "(2,", "'x'")
_KINDS = ("<f8", ">f4", "|O", "<U4", "|S0", "|V7", "<c16", "<M8[s]", "|b1", "<f2", "x", "", "<f99")
_LIMIT = 2**16  # of an npy header


def changed_npy(content, random):
    """Returns an npy file with another header, or other bytes."""
    found = re.match(rb"\x93NUMPY\x01\x00(..)(.*?)\n", content, re.DOTALL)
    if found is None or random.random() < 0.3:
        return changed_bytes(content, random)
    header, data = found[2].decode("latin-1"), content[found.end() :]
    kind = random.randrange(4)
    if kind == 0:
        header = re.sub(r"'shape': \([^)]*\)", f"'shape': {random.choice(_SHAPES)}", header)
    elif kind == 1:
        header = re.sub(r"'descr': '[^']*'", f"'descr': {random.choice(_KINDS)!r}", header)
    elif kind == 2:
        header = re.sub(r"'fortran_order': \w+", "'fortran_order': 7", header)
    else:
        header = changed_bytes(header.encode(), random).decode("latin-1")
    header = header.encode("latin-1", "replace").replace(b"\n", b" ")[: _LIMIT - 2] + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def changed_zip(content, random, change=changed_bytes):
    """Returns a zip archive with an entry changed by `change`, or with other facts of an entry."""
    kind = random.randrange(10)
    if kind == 0:
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
        entries[name] = change(entries[name], random)
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


def changed_npz(content, random):
    """Returns a NumPy archive with another array in it."""
    return changed_zip(content, random, changed_npy)


def changed_torch(content, random):
    """Returns a torch file with other bytes, with the checksums of a zip archive made right."""
    if content.startswith(b"PK"):
        return changed_zip(content, random)
    return changed_bytes(content, random)


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
        sets = [name for name in names if isinstance(file[name], h5py.Dataset)]
        if not sets:
            return changed_bytes(content, random)
        name = random.choice(sets)
        group = random.choice([other for other in names if other not in sets] or ["/"])
        value = file[name][()]
        kind = random.randrange(16)
        if kind == 15:
            _change_attribute(file[random.choice([*names, "/"])], random)
        elif kind == 14:
            file[f"{group}/extra"] = random.choice([1.0, "x", np.zeros((2, 3), "f")])
        elif kind == 13 and group != "/":
            file.move(group, random.choice([f"{group}_", "x", "y/z"]))
        else:
            del file[name]
            _put_other(file, name, value, kind)
    return buffer.getvalue()


def _put_other(file, name, value, kind):
    """Puts something else where an array was; nothing for the highest kinds."""
    array = np.asarray(value)
    others = {
        0: lambda: np.zeros((*array.shape, 2), "f"),
        1: lambda: array.reshape(-1)[:1],
        2: lambda: np.full(array.shape, np.nan, "f"),
        3: lambda: np.full(array.shape, np.inf, "f"),
        4: lambda: "text",
        5: lambda: array.astype("complex64"),
        6: lambda: np.zeros(array.shape, [("a", "f4"), ("b", "i8")]),
        7: lambda: array.astype("S4"),
    }
    if kind in others:
        file[name] = others[kind]()
    elif kind == 8:
        file.create_group(name)
    elif kind == 9:
        file[name] = h5py.SoftLink(f"/{name}")
    elif kind == 10:
        file[name] = h5py.ExternalLink("/etc/passwd", "/x")
    elif kind == 11:
        file.create_dataset(name, (2**20, 2**20), "f", chunks=(1, 2**10))
    elif kind == 12:
        external = [("/etc/passwd", 0, h5py.h5f.UNLIMITED)]
        file.create_dataset(name, array.shape or (1,), "f", external=external)


def _change_attribute(item, random):
    for key in list(item.attrs):
        item.attrs[key] = random.choice([b"\xff\x00", 7, "x" * 1_000, np.zeros(3)])
    item.attrs["extra"] = 1


def changed_spm(content, random):
    """Returns a SentencePiece model with another piece, or other bytes."""
    if random.random() < 0.3:
        return changed_bytes(content, random)
    fields, pieces, _ = parse_sentencepiece(content)
    place = random.randrange(len(pieces))
    piece, others = pieces[place], [whole for number, _, whole in fields if number != 1]
    kind = random.randrange(7)
    if kind == 0:
        texts = ["", "a\0b", "\0", "<s>", "<unk>", "x" * 70_000, "\u2581", "<0x00>", "<0xZZ>", "\n"]
        pieces[place] = piece._replace(text=random.choice(texts))
    elif kind == 1:
        pieces[place] = piece._replace(kind=random.choice([*range(8), 2**64 - 1, 2**31 - 1]))
    elif kind == 2:
        scores = [float("nan"), float("inf"), float("-inf"), 1e38]
        pieces[place] = piece._replace(score=random.choice(scores))
    elif kind == 3:
        del pieces[place]
    elif kind == 4:
        pieces.append(piece)
    elif kind == 5:
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


def changed_keras(content, random):
    """Returns a `.keras` archive with another configuration or other weights."""

    def change(entry, random):
        if entry.startswith(b"\x89HDF"):
            return changed_h5(entry, random)
        return changed_json(entry, random) if entry[:1] == b"{" else changed_bytes(entry, random)

    return changed_zip(content, random, change)
