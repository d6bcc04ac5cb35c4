"""BERT's normalization of text, in TensorFlow's operations: the same in Python and in graphs."""

import functools

import tensorflow as tf
import tensorflow_text

_PLAIN = r"[\t\n\r -~]*"  # what needs no more than ASCII's lower case
_DROPPED = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x{9f}\x{FFFD}\p{Cf}\p{Co}]"


def bert_normalized(strings, lowercase):
    """Returns strings as `tokenizers.normalizers.BertNormalizer` has them, spaces apart.

    Control characters go, punctuation gets spaces around it and, with `lowercase`, accents and case
    go too. `FastBertTokenizer` does the rest; its own lower case would fold compatible characters
    (a superscript two to 2) and keep the accents of some Greek letters.
    """
    plain = tf.strings.lower(strings) if lowercase else strings
    odd = tf.where(~tf.strings.regex_full_match(strings, _PLAIN))  # (others, 1)

    def with_others():
        found = of_any_character(tf.gather_nd(strings, odd), lowercase)
        return tf.tensor_scatter_nd_update(plain, odd, found)

    return tf.cond(tf.size(odd) > 0, with_others, lambda: plain)


def of_any_character(strings, lowercase):
    """As `bert_normalized`, by the long way for all strings: what becomes of parts of one."""
    found = tf.strings.regex_replace(strings, _DROPPED, "")
    if lowercase:
        found = tensorflow_text.normalize_utf8(found, "NFD")
        found = _lowered(tf.strings.regex_replace(found, r"\p{Mn}", ""))
    return tf.strings.regex_replace(found, r"\p{P}", r" \0 ")


def _lowered(strings):
    """Returns strings in lower case, each character alone; `tf.strings.lower` asks for a locale."""
    upper, lower = map(tf.constant, _cases())
    codes = tf.strings.unicode_decode(strings, "UTF-8")
    flat = codes.flat_values
    place = tf.minimum(tf.searchsorted(upper, flat), tf.size(upper) - 1)
    flat = tf.where(tf.gather(upper, place) == flat, tf.gather(lower, place), flat)
    return tf.strings.unicode_encode(codes.with_flat_values(flat), "UTF-8")


@functools.cache
def _cases():
    """Returns the code points that have another one as their lower case, ascending, and these."""
    found = {code: chr(code).lower() for code in range(0x1F000)}
    found = {code: ord(low) for code, low in found.items() if len(low) == 1 and ord(low) != code}
    return list(found), list(found.values())
