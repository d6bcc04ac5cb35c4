"""Where a document goes, as a pure function of its text: its part, its block, its sample."""

import hashlib

_BLOCK_BITS = 32


def document_digest(document):
    """The SHA-256 of a document: equal for equal texts only, and the source of all choices here.

    Args:
        document: a string.

    Returns:
        32 bytes. Bytes 0 to 7 choose the part, 8 to 11 the block, 16 to 23 the sample, so the
        three choices are independent.
    """
    return hashlib.sha256(document.encode("utf-8")).digest()


def multiset_hash(digests):
    """Names a multiset by the digests of its members, whatever their order.

    Args:
        digests: iterable of bytes, each the SHA-256 of a member.

    Returns:
        Integer from 0 to 2**256 - 1: the sum of the digests modulo 2**256. So the hashes of parts
        add up to the hash of the whole.
    """
    return sum(int.from_bytes(digest, "big") for digest in digests) % 2**256


def sequence_hash(digests):
    """Names a sequence by the digests of its members, in their order.

    Args:
        digests: iterable of bytes, each the SHA-256 of a member.

    Returns:
        Integer from 0 to 2**256 - 1: the sum modulo 2**256 of each digest times its number, from 1.
        So `sequence_hash(a) + sequence_hash(b) + len(a) * multiset_hash(b)` is that of a, then b.
    """
    numbered = enumerate(digests, 1)
    return sum(n * int.from_bytes(digest, "big") for n, digest in numbered) % 2**256


def is_held_out(digest, share):
    """Whether a document belongs to the held-out part.

    Args:
        digest: of the document, see `document_digest`.
        share: expected share of the documents that is held out, 0 to 1.
    """
    return _fraction(digest, 0) < share


def is_sampled(digest, share):
    """Whether a document belongs to a sample of all documents.

    Args:
        digest: of the document, see `document_digest`.
        share: expected share of the documents in the sample, 0 to 1.
    """
    return _fraction(digest, 16) < share


def block_number(digest, num_blocks):
    """The block, 0 to `num_blocks - 1`, that a document is packed in.

    Args:
        digest: of the document.
        num_blocks: a power of two from 1 to 2**32. Halving it joins neighbouring blocks.
    """
    bits = int.from_bytes(digest[8:12], "big")
    return bits >> (_BLOCK_BITS - (num_blocks.bit_length() - 1))


def choose_num_blocks(num_bytes, block_bytes=2**24):
    """The smallest power of two of blocks that hold at most `block_bytes` on average.

    Args:
        num_bytes: size of the text, in bytes of UTF-8, duplicates dropped.
        block_bytes: 16 MiB by default, some thousands of rows; each block ends with one row that
            is not full.
    """
    needed = max(1, -(-num_bytes // block_bytes))
    return 1 << (needed - 1).bit_length()


def _fraction(digest, start):
    return int.from_bytes(digest[start : start + 8], "big") / 2**64
