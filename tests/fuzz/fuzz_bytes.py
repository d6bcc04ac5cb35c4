"""Damaged bytes: flips, cuts and insertions, and texts whose lines and cells are wrong."""

_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF)
_CELLS = ("", "nan", "inf", "-1", "1e400", "9" * 5_000, "x", "\0", "\ud800", "1.5", "\u00b2", " 1")


def changed_bytes(content, random):
    """Returns bytes of which some were changed, or which were cut or lengthened."""
    content = bytearray(content)
    if not content:
        return bytes([random.randrange(256)])
    for _ in range(random.choice([1, 1, 1, 2, 8])):
        place = random.randrange(len(content) or 1)
        kind = random.randrange(7)
        if kind == 0:
            del content[place:]
        elif kind == 1:
            del content[place : place + random.choice([1, 4, 64])]
        elif kind == 2:
            content[place:place] = random.randbytes(random.choice([1, 4, 64]))
        elif kind == 3:
            content[place : place + 8] = random.choice(_NUMBERS).to_bytes(1) * 8
        elif kind == 4 and content:
            content[place] = random.choice(_NUMBERS)
        elif kind == 5:
            other = random.randrange(len(content) or 1)
            content[place:place] = content[other : other + 32]
        elif content:
            content[place] ^= 1 << random.randrange(8)
    return bytes(content)


def changed_text(content, random):
    """Returns a text of lines and cells of which one was changed."""
    if random.random() < 0.4:
        return changed_bytes(content, random)
    end = b"\n"
    lines = content.split(end)
    index = random.randrange(len(lines))
    kind = random.randrange(6)
    if kind == 0:
        lines.insert(index, random.choice([b"", b"\0", b"\xff\xfe", b" ", lines[index]]))
    elif kind == 1:
        del lines[index]
    elif kind == 2:
        end = random.choice([b"\r\n", b"\r", b"\xe2\x80\xa8"])
    else:
        separator = next((mark for mark in (b"\t", b",", b" ") if mark in lines[index]), b"\t")
        cells = lines[index].split(separator)
        place = random.randrange(len(cells))
        cell = random.choice(_CELLS).encode("utf-8", "surrogatepass")
        if kind == 3:
            cells[place : place + 1] = random.choice([[], [cell, cell]])
        else:
            cells[place] = cell
        lines[index] = separator.join(cells)
    return end.join(lines)
