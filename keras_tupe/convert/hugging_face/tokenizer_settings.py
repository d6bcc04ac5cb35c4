"""Settings of a tokenizer from the files of a Hugging Face folder."""

import pathlib

from keras_tupe.convert.bert.wordpiece import IDS_ONLY
from keras_tupe.convert.hugging_face.files import read_json

VOCABULARY, SETTINGS = "vocab.txt", "tokenizer_config.json"
CONFIG, WHOLE = "config.json", "tokenizer.json"
SPECIAL_MAP, ADDED = "special_tokens_map.json", "added_tokens.json"
# What must be as here, or left out.
_FIXED = {
    "tokenize_chinese_chars": True,
    "do_basic_tokenize": True,
    "clean_text": True,
    "wordpieces_prefix": "##",
    "auto_map": None,
}
_FIXED_NORMALIZER = {"handle_chinese_chars": True, "clean_text": True}
_FIXED_MODEL = {
    "type": "WordPiece",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
}
_KINDS = {"word_tokenizer_type": "basic", "subword_tokenizer_type": "wordpiece"}
# Their tokens are never cut; ours cuts all text, also that of special tokens.
_WHOLE_TOKENS = (
    *("additional_special_tokens", "extra_special_tokens", "never_split", "added_tokens_decoder"),
    "added_tokens",
)


def read_files(folder):
    """Returns the contents of the folder's files, by name; a file that is not there is empty.

    Raises:
        ValueError: if a file does not hold a JSON object.
    """
    names = (CONFIG, SETTINGS, WHOLE, SPECIAL_MAP, ADDED)
    paths = {name: pathlib.Path(folder, name) for name in names}
    return {name: read_json(path) if path.is_file() else {} for name, path in paths.items()}


def as_written(whole):
    """Returns a `tokenizer.json` that is the only file: an entry that is not there is `None`."""
    model = {"type": None, **model_of(whole)}
    return {"normalizer": None, "pre_tokenizer": None, **whole, "model": model}


def lowercase_of(files):
    """Returns whether text is lower-cased, and notes for the report if nothing decides it."""
    if "do_lower_case" in files[SETTINGS]:
        return files[SETTINGS]["do_lower_case"], ()
    normalizer = part_of(files[WHOLE], "normalizer")
    if "lowercase" in normalizer:
        is_lower = normalizer["lowercase"]
        return is_lower, (
            f"text is {'' if is_lower else 'not '}lower-cased, as {WHOLE} says; {SETTINGS} says "
            "nothing",
        )
    return True, (f"text is lower-cased: neither {SETTINGS} nor {WHOLE} says otherwise",)


def differences(files, frame, lowercase, pieces=None):
    """Returns what the files ask for that our WordPiece does not do.

    Args:
        files: what `read_files` returned.
        frame: the `Frame` of the model.
        lowercase: whether ours would lower-case text and strip accents.
        pieces: the vocabulary, to compare the files' ids with; without it they are not compared.

    Returns:
        List of strings, one for each file with differences.
    """
    found = {name: [] for name in files}
    found[SETTINGS] += _of_settings(files[SETTINGS], lowercase)
    found[WHOLE] += _of_whole(files[WHOLE], frame, lowercase)
    for name, lines in other_frame(files, frame).items():
        found[name] += lines
    if pieces is not None:
        found[WHOLE] += _other_vocabulary(files[WHOLE], pieces)
    return said(found)


def said(found):
    """Returns a string for each file with differences, from a dictionary of lists."""
    return [f"{name}: {', '.join(lines)}" for name, lines in found.items() if lines]


def refusal(different):
    """Returns the note on files that ask for what ours cannot do, in a tuple."""
    return (f"the tokenizer has {'; '.join(different)}, which ours cannot do, so {IDS_ONLY}",)


def other_frame(files, frame):
    """Returns which other classes and special tokens the files ask for, by file.

    Args:
        files: what `read_files` returned.
        frame: the `Frame` that they should have.
    """
    special, found = {*frame.special.values(), *frame.also}, {name: [] for name in files}
    for name in (CONFIG, SETTINGS):
        kind = files[name].get("tokenizer_class")
        if kind is not None and kind not in frame.classes:
            found[name].append(f"tokenizer_class={kind!r}")
    for name in (SETTINGS, SPECIAL_MAP):
        for entry, value in files[name].items():
            texts = texts_of(value)
            if entry in frame.special and texts not in ([], [frame.special[entry]]):
                found[name].append(f"{entry}={texts[0]!r}")
            elif entry.endswith("_token") and entry not in frame.special and texts:
                is_text = isinstance(value, (str, dict))
                found[name] += kept_whole(entry, texts, special) if is_text else []
    for name in (SETTINGS, SPECIAL_MAP, WHOLE):
        for entry in _WHOLE_TOKENS:
            found[name] += kept_whole(entry, texts_of(files[name].get(entry)), special)
    found[ADDED] += kept_whole("the tokens", list(files[ADDED]), special)
    return found


def _of_settings(settings, lowercase):
    found = []
    if "do_lower_case" in settings and not isinstance(lowercase, bool):
        found.append(f"do_lower_case={lowercase!r}")
    if settings.get("strip_accents") not in (None, lowercase):
        found.append(f"do_lower_case={lowercase}, strip_accents={settings['strip_accents']!r}")
    found += unlike(settings, _FIXED)
    for name, value in settings.items():
        if name.endswith("_tokenizer_type") and value not in (None, _KINDS.get(name)):
            found.append(f"{name}={value!r}")
    return found


def _of_whole(whole, frame, lowercase):
    """Returns the differences in the file of the `tokenizers` library, entry by entry."""
    found = []
    for name, kind in (("normalizer", "BertNormalizer"), ("pre_tokenizer", "BertPreTokenizer")):
        if name in whole and part_of(whole, name).get("type") != kind:
            found.append(f"{name} of type {part_of(whole, name).get('type')!r}")
    normalizer = part_of(whole, "normalizer")
    is_lower = normalizer.get("lowercase", lowercase)
    if is_lower is not lowercase:
        found.append(f"lowercase={is_lower!r} against do_lower_case={lowercase!r}")
    elif "lowercase" in normalizer and not isinstance(is_lower, bool):
        found.append(f"lowercase={is_lower!r}")
    if normalizer.get("strip_accents") not in (None, lowercase):
        found.append(f"lowercase={lowercase}, strip_accents={normalizer['strip_accents']!r}")
    fixed = {**_FIXED_MODEL, "unk_token": frame.special["unk_token"]}
    found += unlike(normalizer, _FIXED_NORMALIZER) + unlike(model_of(whole), fixed)
    around, ends = _around(part_of(whole, "post_processor")), ("cls_token", "sep_token")
    if around not in (None, [frame.special[end] for end in ends]):
        found.append(f"post_processor with {' '.join(map(repr, around)) or 'nothing'} around texts")
    return found


def _around(processor):
    """Returns the special tokens that a post-processor puts around one text, `None` without one."""
    if not processor:
        return None
    if "cls" in processor:
        return [(texts_of(processor.get(end)) or [""])[0] for end in ("cls", "sep")]
    single = processor.get("single")
    single = [one for one in single if isinstance(one, dict)] if isinstance(single, list) else []
    tokens = [part_of(one, "SpecialToken") for one in single if "Sequence" not in one]
    return [str(token.get("id", "")) for token in tokens]


def kept_whole(name, tokens, special):
    """Returns a sentence about tokens that are never cut, but for the special ones of ours."""
    tokens = [token for token in tokens if token not in special]
    more = f" and {len(tokens) - 3} more" if len(tokens) > 3 else ""
    return [f"{name} {', '.join(map(repr, tokens[:3]))}{more}"] if tokens else []


def _other_vocabulary(whole, pieces):
    vocabulary = model_of(whole).get("vocab")
    if vocabulary is None or vocabulary == {piece: place for place, piece in enumerate(pieces)}:
        return []
    return [f"other pieces than {VOCABULARY}"]


def unlike(content, fixed):
    """Returns the entries that are there and not as in `fixed`."""
    return [
        f"{name}={content[name]!r}"
        for name, value in fixed.items()
        if name in content and content[name] != value
    ]


def texts_of(value):
    """Returns the tokens in an entry: a string, a dictionary with `content`, or many of them."""
    if isinstance(value, dict):
        value = [value["content"]] if "content" in value else list(value.values())
    if isinstance(value, list):
        return [text for item in value for text in texts_of(item)]
    return [] if value is None else [str(value)]


def part_of(content, name):
    """Returns the dictionary under a name; an empty one if there is none."""
    part = content.get(name)
    return part if isinstance(part, dict) else {}


def model_of(whole):
    """Returns what `tokenizer.json` says of the model of pieces."""
    return part_of(whole, "model")
