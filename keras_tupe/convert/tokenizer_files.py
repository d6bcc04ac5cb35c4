"""Tokenizer files of Hugging Face folders, of both generations: read, compared and written.

transformers 5 saves `tokenizer.json` alone; older ones a vocabulary of each kind (`vocab.txt`,
`vocab.json` with `merges.txt`, `spiece.model`), with or without it. All end in one `Vocabulary`.
What differs from what our tokenizers do leaves ids only, with a note that names it: never other
pieces without a word.
"""

import collections
import dataclasses
import json
import os
import pathlib
import shutil
import struct

from keras_tupe import _json_file
from keras_tupe.models import TupeMaskedLMPreprocessor, TupeTokenizer
from keras_tupe.models._kept_tokenizer import can_read_text, kept_tokenizer

IDS_ONLY = "the model takes token ids only"
ONLY_SAVED = (
    "the vocabulary is saved with the model, but text needs tensorflow_text, which is not "
    "installed here"
)
WHOLE, SETTINGS, CONFIG = "tokenizer.json", "tokenizer_config.json", "config.json"
SPECIAL_MAP, ADDED = "special_tokens_map.json", "added_tokens.json"
_MAX_PIECE_BYTES = 256  # as in keras_tupe.tokenizers.WordPiece
# Their tokens are never cut; ours cuts all text, also that of special tokens.
_WHOLE_TOKENS = (
    *("additional_special_tokens", "extra_special_tokens", "never_split", "added_tokens_decoder"),
    "added_tokens",
)
_COMMAS = 100  # transformers 4 counts pieces of a digit and a comma as that much less likely
_WORDPIECE_CUTS = (
    "ours cuts a few characters otherwise than BERT's own tokenizer: ligatures, full-width "
    "letters, superscripts and signs like the ellipsis as their plain letters, a lower-cased "
    "sharp s as ss, zero-width and control characters as the end of a word"
)
_CHINESE_WORDS = (
    "this model's own tokenizer cuts words by a Chinese segmenter; ours, as BERT's, which differs "
    "beside letters that are neither Chinese nor a to z"
)
_JOINED_COMMAS = (
    f"ours cuts a comma from the digit before it, as ALBERT was trained; {WHOLE} does not"
)
_OTHER_SPACE = (
    "ours takes a space alone for the end of a word, and a tab or a line end for an unknown "
    f"character; {WHOLE} takes these for spaces"
)


@dataclasses.dataclass(frozen=True)
class Frame:
    """The special tokens that a model's vocabulary must have.

    Attributes:
        kind: `kind` of our tokenizer: `"wordpiece"`, `"byte_pair"` or `"sentencepiece"`.
        classes: names of the tokenizers there; the first is what we write.
        special: dictionary: entry of the settings -> the token that it must be or be left out.
        start: the token that ours begins with, by which its kind of vocabulary is known.
        cuts_words: whether the tokenizer there cuts Chinese text into words of the vocabulary, as
            ours does not. Defaults to `False`.
        also: tokens that are never cut there either, and are text here as those of `special` are.
        spare_mask: whether the mask may be a last piece for which the model has no token vector.
            Defaults to `False`.
    """

    kind: str
    classes: tuple
    special: dict
    start: str
    cuts_words: bool = False
    also: tuple = ()
    spare_mask: bool = False

    @property
    def around(self):
        """The tokens before and behind a text, a list; empty for GPT-2's."""
        ends = [self.special.get(name) for name in ("cls_token", "sep_token")]
        return ends if None not in ends else []

    @property
    def between(self):
        """The tokens between the texts of a pair, a list."""
        return self.around[1:] * (2 if self.start == "<s>" else 1)


def _classes(*names):
    return tuple(f"{name}Tokenizer{fast}" for name in names for fast in ("", "Fast"))


_BERT = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
_ENDS = {**_BERT, "bos_token": "[CLS]", "eos_token": "[SEP]"}
_FAIRSEQ = {
    "bos_token": "<s>",
    "cls_token": "<s>",
    "eos_token": "</s>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
_MPNET = {**_FAIRSEQ, "unk_token": "[UNK]"}
_ALBERT = {**_ENDS, "unk_token": "<unk>", "pad_token": "<pad>"}
_END = "<|endoftext|>"
_GPT_2 = dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), _END)

BERT = Frame("wordpiece", _classes("Bert"), _BERT, "[CLS]")
ELECTRA = Frame("wordpiece", _classes("Electra", "Bert"), _BERT, "[CLS]")
ROFORMER = Frame("wordpiece", _classes("Bert", "RoFormer"), _BERT, "[CLS]", cuts_words=True)
MPNET = Frame("wordpiece", _classes("MPNet"), _MPNET, "<s>", also=("<unk>",))
GPT_2 = Frame("byte_pair", _classes("GPT2"), _GPT_2, _END)
ROBERTA = Frame("byte_pair", _classes("Roberta"), _FAIRSEQ, "<s>")
LONGFORMER = Frame("byte_pair", _classes("Longformer", "Roberta"), _FAIRSEQ, "<s>")
# fine-tuned BARTs, such as that for CNN's news, have no token vector of the mask
BART = Frame("byte_pair", _classes("Bart", "Roberta"), _FAIRSEQ, "<s>", spare_mask=True)
DEBERTA = Frame("byte_pair", _classes("Deberta"), _ENDS, "[CLS]")
ALBERT = Frame("sentencepiece", _classes("Albert"), _ALBERT, "[CLS]")

# Entries of config.json: the name here, and the id for a model without a tokenizer.
BERT_IDS = {"pad_token_id": ("pad_token_id", 0)}
FAIRSEQ_IDS = {
    "pad_token_id": ("pad_token_id", 1),
    "bos_token_id": ("start_token_id", 0),
    "eos_token_id": ("end_token_id", 2),
    "sep_token_id": ("end_token_id", 2),
}


def special_ids(tokenizer, ids):
    """Returns the entries of config.json about special tokens.

    Args:
        tokenizer: a `TupeTokenizer` or `None`.
        ids: `BERT_IDS` or `FAIRSEQ_IDS`.
    """
    return {
        theirs: default if getattr(tokenizer, ours, None) is None else getattr(tokenizer, ours)
        for theirs, (ours, default) in ids.items()
    }


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """What a tokenizer is made of, whichever files it comes from.

    Attributes:
        pieces: list of strings, in the order of their ids.
        merges: of byte pairs: list of pairs of pieces, first ones first.
        scores: of SentencePiece: list of numbers, one for each piece.
        characters: of SentencePiece: bytes of its table of characters.
        content: of SentencePiece: bytes of the whole model.
    """

    pieces: list
    merges: list | None = None
    scores: list | None = None
    characters: bytes = b""
    content: bytes = b""


@dataclasses.dataclass(frozen=True)
class _Kind:
    """What our tokenizer of a kind demands of the files, and how its vocabulary is read.

    Attributes:
        title: words for the kind, with a verb.
        files: names of the older generation.
        settings, normalizer, pre_tokenizer, model: entries that must be so, or be left out; of a
            part that is not there either, `None`.
        of_files: function of a folder to a `Vocabulary`.
        of_whole: function of the content of `tokenizer.json` to a `Vocabulary`.
        make: function of `(vocabulary, lowercase)` to a `TupeTokenizer`.
        contents: function of `(vocabulary, lowercase)` to the files' bytes, without TensorFlow.
        part: function of `(vocabulary, frame)` to `model` of `tokenizer.json`.
        notes: sentences for the report, of every tokenizer of the kind.
    """

    title: str
    files: tuple
    settings: dict
    normalizer: dict | None
    pre_tokenizer: dict
    model: dict
    of_files: collections.abc.Callable
    of_whole: collections.abc.Callable
    make: collections.abc.Callable
    contents: collections.abc.Callable
    part: collections.abc.Callable
    notes: tuple


def read_vocabulary(folder, vocabulary_size, frame=BERT):
    """Returns the tokenizer of a folder, if ours can do what it asks for, and notes.

    Args:
        folder: path of the folder.
        vocabulary_size: token vectors of the model.
        frame: the `Frame` of the model. Defaults to BERT's.

    Returns:
        `(tokenizer, notes)`: a `TupeTokenizer` or `None`, and sentences for the report.
        Without TensorFlow the tokenizer can be saved but not used.

    Raises:
        ValueError: if the vocabulary has another size than the model, naming both; if a file is
            damaged.
    """
    folder, kind = pathlib.Path(folder), _KINDS[frame.kind]
    names = (CONFIG, SETTINGS, WHOLE, SPECIAL_MAP, ADDED)
    files = {name: _read_json(folder / name) for name in names}
    missing = [name for name in kind.files if not (folder / name).is_file()]
    if missing and not files[WHOLE]:
        return None, (f"there is no {' and no '.join([*missing, WHOLE])}, so {IDS_ONLY}",)
    source = WHOLE if missing else kind.files[0]
    if missing:  # then nothing may be left out
        model = {"type": None, **_part(files[WHOLE], "model")}
        files[WHOLE] = {"normalizer": None, "pre_tokenizer": None, **files[WHOLE], "model": model}
    lowercase, notes = _lowercase(files, frame)
    # first, since the vocabulary of another kind of tokenizer need not fit the model
    different = _differences(files, frame, lowercase)
    if _said(different):
        return _refusal(different)
    try:
        vocabulary = kind.of_whole(files[WHOLE]) if missing else kind.of_files(folder)
    except _UnusableError as error:
        return _unusable(source if missing else " and ".join(kind.files), error)
    pieces, mask = vocabulary.pieces, frame.special.get("mask_token")
    is_spare = vocabulary_size == len(pieces) - 1 and pieces[-1] == mask
    if not (frame.spare_mask and is_spare):
        checked_size(pieces, vocabulary_size, folder / source)
    if "vocab" in _part(files[WHOLE], "model") and not missing:
        different[WHOLE] += _other_vocabulary(files[WHOLE], vocabulary, frame)
    if frame.cuts_words and any(map(_is_word, pieces)):
        different[source].append("pieces of several Chinese characters")
    if _said(different):
        return _refusal(different)
    where = str(folder / source) if frame.kind == "wordpiece" else " and ".join(kind.files)
    tokenizer, more = _tokenizer(vocabulary, lowercase, WHOLE if missing else where, frame)
    start = getattr(tokenizer, "start_token", None)
    if start not in (None, frame.start):
        return None, (
            f"the tokenizer's texts begin with {start!r} and not with {frame.start!r}, so "
            f"{IDS_ONLY}",
        )
    if tokenizer is None:
        return None, more
    return tokenizer, (*more, *notes, *_notes(files[WHOLE], vocabulary, frame))


def vocabulary_problems(tokenizer, backbone, frame):
    """Returns why a tokenizer cannot be written: a list, empty for `None`."""
    if tokenizer is None:
        return []
    if tokenizer.kind != frame.kind:
        return [
            f"a {tokenizer.kind} tokenizer, where {_KINDS[frame.kind].title}; set "
            "`model.preprocessor = None` to write the weights alone"
        ]
    if not tokenizer.has_vocabulary:
        return []
    found = []
    size = tokenizer.vocabulary_size()
    is_spare = frame.spare_mask and tokenizer.mask_token_id == backbone.vocabulary_size == size - 1
    if size != backbone.vocabulary_size and not is_spare:
        found.append(f"a tokenizer of {size} pieces for {backbone.vocabulary_size} token vectors")
    if tokenizer.start_token != frame.start:
        found.append(
            f"a tokenizer whose texts begin with {tokenizer.start_token!r} and not with "
            f"{frame.start!r}"
        )
    return found


def write_vocabulary(tokenizer, backbone, folder, frame):
    """Writes the files of a tokenizer into a folder, for transformers 4 and 5."""
    folder, kind = pathlib.Path(folder), _KINDS[frame.kind]
    tokenizer.save_assets(str(folder))
    shutil.move(folder / tokenizer.file_assets[0], folder / kind.files[0])
    is_pairs = frame.kind == "byte_pair"
    settings = {
        "tokenizer_class": frame.classes[0],
        "model_max_length": backbone.max_sequence_length,
        **({"add_prefix_space": False} if is_pairs else {"do_lower_case": tokenizer.lowercase}),
        **frame.special,
    }
    whole = _whole(kind.of_files(folder), tokenizer.lowercase, frame)
    for name, content in ((SETTINGS, settings), (WHOLE, whole)):
        text = json.dumps(content, indent=2, ensure_ascii=name == SETTINGS)
        (folder / name).write_text(f"{text}\n", encoding="utf-8")


def read_pieces(path):
    """Returns the lines of a vocabulary file.

    Raises:
        ValueError: if it is not UTF-8.
    """
    try:
        text = pathlib.Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            "A WordPiece vocabulary must be a UTF-8 text file with one piece per line. "
            f"Received: {os.fspath(path)!r}, which is not UTF-8"
        ) from error
    # only at line ends: str.splitlines would also cut at Unicode's separators
    lines = [line.rstrip("\r") for line in text.split("\n")]
    return lines[:-1] if not lines[-1] else lines


def checked_size(pieces, vocabulary_size, path):
    """Raises `ValueError` if a vocabulary and a model have different sizes."""
    if len(pieces) != vocabulary_size:
        raise ValueError(
            "The vocabulary must have as many pieces as the model has token vectors, which is "
            f"{vocabulary_size}. Take its own vocabulary, or remove the file and feed ids. "
            f"Received: {len(pieces)} pieces in {os.fspath(path)!r}"
        )


def wordpiece_tokenizer(pieces, lowercase, path):
    """Returns the tokenizer of a BERT vocabulary, if ours can use it, and notes for the report.

    Args:
        pieces: list of strings.
        lowercase: whether text is lower-cased and stripped of accents.
        path: where the pieces come from, for the notes.
    """
    return _tokenizer(Vocabulary(pieces), lowercase, os.fspath(path), BERT)


def preprocessor_of(tokenizer, backbone, kind=TupeMaskedLMPreprocessor):
    """Returns the preprocessor of a task; `None` without a tokenizer.

    Args:
        tokenizer: a `TupeTokenizer` or `None`.
        backbone: the task's `TupeBackbone`.
        kind: class of the preprocessor. Defaults to that of a masked LM.
    """
    if tokenizer is None:
        return None
    return kind(
        tokenizer,
        sequence_length=backbone.max_sequence_length,
        segments=bool(backbone.num_segments),
    )


class _UnusableError(ValueError):
    """A vocabulary that ours cannot use, in a few words; the model is converted without it."""


def _unusable(where, reason):
    return None, (f"ours cannot use {where}: {reason}; so {IDS_ONLY}",)


def _read_json(path):
    if not path.is_file():
        return {}
    try:
        return _json_file.read_json_object(path)
    except ValueError as error:
        raise ValueError(
            f"The file must hold a JSON object: {error}. Received: {os.fspath(path)!r}"
        ) from None


def _tokenizer(vocabulary, lowercase, where, frame):
    """Returns our tokenizer or `None`, and notes; without TensorFlow it can only be saved."""
    kind = _KINDS[frame.kind]
    where = repr(where) if frame.kind == "wordpiece" else where
    if frame.kind == "wordpiece":
        reason = _why_unusable(vocabulary.pieces, dict.fromkeys(frame.special.values()))
        if reason is not None:
            return _unusable(where, reason)
    if not can_read_text():
        contents = kind.contents(vocabulary)
        lowercase = None if frame.kind == "byte_pair" else lowercase
        return kept_tokenizer(frame.kind, contents, lowercase), (ONLY_SAVED,)
    try:
        return kind.make(vocabulary, lowercase), ()
    except (ValueError, TypeError, RuntimeError) as error:  # as the op says
        return _unusable(where, next(iter(str(error).splitlines()), type(error).__name__))


def _why_unusable(pieces, special):
    """Returns what in a vocabulary our WordPiece would refuse, in a few words, or `None`.

    It would say so itself, but where TensorFlow is missing only after the conversion, to whoever
    loads the preset.
    """
    places = {}
    for place, piece in enumerate(pieces):
        if not piece or any(character.isspace() for character in piece):
            what = "has white space in it" if piece else "is empty"
            return f"line {place + 1} {what}"
        if "\0" in piece:
            return f"line {place + 1} has a NUL in it"
        if piece in places:
            return f"line {place + 1} repeats {piece!r} of line {places[piece] + 1}"
        if len(piece.removeprefix("##").encode("utf-8")) > _MAX_PIECE_BYTES:
            return f"line {place + 1} has more than {_MAX_PIECE_BYTES} bytes"
        places[piece] = place
    missing = [piece for piece in special if piece not in places]
    return f"it lacks {', '.join(missing)}" if missing else None


def _is_word(piece):
    return len(piece) > 1 and all("\u4e00" <= character <= "\u9fff" for character in piece)


# What the files ask for, compared with what ours does


def _lowercase(files, frame):
    """Returns whether text is lower-cased, and notes for the report if no setting decides it."""
    settings, normalizer = files[SETTINGS], _part(files[WHOLE], "normalizer")
    if frame.kind == "byte_pair":
        return False, ()
    if "do_lower_case" in settings:
        return settings["do_lower_case"], ()
    is_lower = normalizer.get("lowercase")
    if frame.kind == "sentencepiece" and normalizer:
        is_lower = any(step.get("type") == "Lowercase" for step in _steps(normalizer))
    if is_lower is not None:
        return is_lower, (
            f"text is {'' if is_lower else 'not '}lower-cased, as {WHOLE} says; {SETTINGS} says "
            "nothing",
        )
    return True, (f"text is lower-cased: neither {SETTINGS} nor {WHOLE} says otherwise",)


def _differences(files, frame, lowercase):
    """Returns what the files ask for that ours does not do: name of a file -> list of words."""
    settings, kind = files[SETTINGS], _KINDS[frame.kind]
    found = _other_tokens(files, frame)
    if "do_lower_case" in settings and not isinstance(lowercase, bool):
        found[SETTINGS].append(f"do_lower_case={lowercase!r}")
    if frame.kind == "wordpiece" and settings.get("strip_accents") not in (None, lowercase):
        found[SETTINGS].append(
            f"do_lower_case={lowercase}, strip_accents={settings['strip_accents']!r}"
        )
    found[SETTINGS] += _unlike(settings, kind.settings)
    found[WHOLE] += _other_steps(files[WHOLE], kind, lowercase)
    found[WHOLE] += _unlike(_part(files[WHOLE], "model"), kind.model)
    if frame.kind == "wordpiece":
        unknown = {"unk_token": frame.special["unk_token"]}
        found[WHOLE] += _unlike(_part(files[WHOLE], "model"), unknown)
    around = _around(_part(files[WHOLE], "post_processor"))
    if around is not None and around[0] != frame.around[:1] + frame.around[1:]:
        words = " ".join(map(repr, around[0])) or "nothing"
        found[WHOLE].append(f"post_processor with {words} around texts")
    return found


def _other_tokens(files, frame):
    """Returns which other classes and special tokens the files ask for, by file."""
    special, found = {*frame.special.values(), *frame.also}, {name: [] for name in files}
    found |= {name: [] for name in _KINDS[frame.kind].files}
    for name in (CONFIG, SETTINGS):
        kind = files[name].get("tokenizer_class")
        if kind is not None and kind not in frame.classes:
            found[name].append(f"tokenizer_class={kind!r}")
    for name in (SETTINGS, SPECIAL_MAP):
        for entry, value in files[name].items():
            texts = _texts(value)
            if entry in frame.special and texts not in ([], [frame.special[entry]]):
                found[name].append(f"{entry}={texts[0]!r}")
            elif entry.endswith("_token") and entry not in frame.special and texts:
                is_text = isinstance(value, (str, dict))
                found[name] += _kept_whole(entry, texts, special) if is_text else []
    for name in (SETTINGS, SPECIAL_MAP, WHOLE):
        for entry in _WHOLE_TOKENS:
            found[name] += _kept_whole(entry, _texts(files[name].get(entry)), special)
    found[ADDED] += _kept_whole("the tokens", list(files[ADDED]), special)
    return found


def _other_steps(whole, kind, lowercase):
    """Returns the differences in what is done before the model of pieces sees a text."""
    found = []
    for name in ("normalizer", "pre_tokenizer"):
        expected, content = getattr(kind, name), _part(whole, name)
        if name not in whole or (expected is None and not content):
            continue
        if expected is None or content.get("type") not in expected["type"]:
            found.append(f"{name} of type {content.get('type')!r}")
        elif content["type"] == "Sequence" or "steps" in expected:
            found += _other_sequence(name, content, expected, lowercase)
        else:
            entries = {key: value for key, value in expected.items() if key != "type"}
            found += _unlike(content, entries)
    normalizer = _part(whole, "normalizer")
    if normalizer.get("type") == "BertNormalizer" or "lowercase" in normalizer:
        is_lower = normalizer.get("lowercase", lowercase)
        if is_lower is not lowercase:
            found.append(f"lowercase={is_lower!r} against do_lower_case={lowercase!r}")
        elif not isinstance(is_lower, bool):
            found.append(f"lowercase={is_lower!r}")
        if normalizer.get("strip_accents") not in (None, lowercase):
            found.append(f"lowercase={lowercase}, strip_accents={normalizer['strip_accents']!r}")
    return found


def _other_sequence(name, content, expected, lowercase):
    steps = [step for step in _steps(content) if step not in expected["free"]]
    steps = [step for step in steps if step.get("type") not in expected["free"]]
    wanted = [step for step in expected["steps"] if lowercase or step.get("type") != "Lowercase"]
    fits = len(steps) == len(wanted) and not any(map(_other_step, steps, wanted))
    words = ", ".join(str(step.get("type")) for step in steps) or "nothing"
    return [] if fits else [f"{name} of {words}, with other steps or entries"]


def _other_step(step, wanted):
    return step.get("type") != wanted["type"] or _unlike(step, wanted)


def _steps(content):
    """Returns the steps of a normalizer or a pre-tokenizer, a list of dictionaries."""
    if content.get("type") != "Sequence":
        return [content]
    steps = content.get("normalizers", content.get("pretokenizers"))
    steps = steps if isinstance(steps, list) else []
    return [step if isinstance(step, dict) else {} for step in steps]


def _around(processor):
    """Returns the tokens around a text and between two, as lists; `None` where nothing says so."""
    if not processor or processor.get("type") == "ByteLevel":
        return None
    if "cls" in processor or "sep" in processor:
        ends = [(_texts(processor.get(end)) or [""])[0] for end in ("cls", "sep")]
        return ends, ends[1:] * (2 if processor.get("type") == "RobertaProcessing" else 1)
    single, pair = (
        [one if isinstance(one, dict) else {} for one in value] if isinstance(value, list) else []
        for value in (processor.get("single"), processor.get("pair"))
    )
    tokens = [None if "Sequence" in one else _part(one, "SpecialToken") for one in pair]
    tokens = [token and str(token.get("id", "")) for token in tokens]
    texts = [place for place, token in enumerate(tokens) if token is None]
    between = tokens[texts[0] + 1 : texts[1]] if len(texts) == 2 else None
    singles = [_part(one, "SpecialToken") for one in single if "Sequence" not in one]
    return [str(token.get("id", "")) for token in singles], between


def _other_vocabulary(whole, vocabulary, frame):
    """Returns whether `tokenizer.json` has other pieces than the older files, in words."""
    kind = _KINDS[frame.kind]
    words = [f"other pieces than {kind.files[0]}"]
    try:
        theirs = kind.of_whole(whole)
    except ValueError:
        theirs = None
    if frame.kind == "byte_pair":  # special tokens need not be among them
        places = {piece: place for place, piece in enumerate(vocabulary.pieces)}
        known = _part(_part(whole, "model"), "vocab")
        if not known or any(places.get(piece) != place for piece, place in known.items()):
            return words
        has_merges = "merges" in _part(whole, "model")
        if has_merges and (theirs is None or theirs.merges != vocabulary.merges):
            return [f"other merges than {kind.files[1]}"]
        return []
    if theirs is None or theirs.pieces != vocabulary.pieces:
        return words
    if vocabulary.scores is not None and any(
        abs(ours - other) > 1e-3
        for ours, other in zip(vocabulary.scores, theirs.scores, strict=True)
    ):
        return [f"other scores than {kind.files[0]}"]
    return []


def _notes(whole, vocabulary, frame):
    """Returns what is known to differ in a few texts, as sentences for the report."""
    found = [*_KINDS[frame.kind].notes]
    if frame.cuts_words:
        found.append(_CHINESE_WORDS)
    _, between = _around(_part(whole, "post_processor")) or (None, None)
    if frame.around and between not in (None, frame.between):
        found.append(
            f"texts of a pair have {' '.join(frame.between)} between them here, as this model was "
            f"trained; {WHOLE} has {' '.join(map(str, between))}"
        )
    if frame.kind == "sentencepiece" and whole:
        scores = [
            score for piece, score in _part(whole, "model").get("vocab", ()) if _is_comma(piece)
        ]
        found += [_JOINED_COMMAS] if any(score > -_COMMAS for score in scores) else []
        cuts = [step.get("type") for step in _steps(_part(whole, "pre_tokenizer"))]
        if "WhitespaceSplit" in cuts and not vocabulary.characters:
            found.append(_OTHER_SPACE)
    return found


def _said(found):
    return [f"{name}: {', '.join(lines)}" for name, lines in found.items() if lines]


def _refusal(found):
    words = "; ".join(_said(found))
    return None, (f"the tokenizer has {words}, which ours cannot do, so {IDS_ONLY}",)


def _kept_whole(name, tokens, special):
    """Returns a sentence about tokens that are never cut, but for the special ones of ours."""
    tokens = [token for token in tokens if token not in special]
    more = f" and {len(tokens) - 3} more" if len(tokens) > 3 else ""
    return [f"{name} {', '.join(map(repr, tokens[:3]))}{more}"] if tokens else []


def _unlike(content, fixed):
    """Returns the entries that are there and not as in `fixed`; empty ones are all the same."""
    return [
        f"{name}={content[name]!r}"
        for name, value in fixed.items()
        if name in content and content[name] != value and (content[name] or value)
    ]


def _texts(value):
    """Returns the tokens in an entry: a string, a dictionary with `content`, or many of them."""
    if isinstance(value, dict):
        value = [value["content"]] if "content" in value else list(value.values())
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [] if value is None else [str(value)]


def _part(content, name):
    """Returns the dictionary under a name; an empty one if there is none."""
    part = content.get(name)
    return part if isinstance(part, dict) else {}


# The vocabularies, from files of both generations


def _places_of_whole(whole):
    """Returns pieces by id, with the special tokens that stand beside the model's pieces."""
    vocabulary = _part(whole, "model").get("vocab")
    places = dict(vocabulary) if isinstance(vocabulary, dict) else {}
    added = whole.get("added_tokens")
    for one in added if isinstance(added, list) else []:
        if isinstance(one, dict) and isinstance(one.get("content"), str):
            places.setdefault(one["content"], one.get("id"))
    ids = [place for place in places.values() if type(place) is int]
    if not places or sorted(ids) != list(range(len(places))):
        raise ValueError(
            f"The pieces in {WHOLE} must be a dictionary from each piece to its id, from 0 on, "
            f"without gaps. Received: a `vocab` of {type(vocabulary).__name__}"
        )
    return sorted(places, key=places.get)


def _pairs_of_whole(whole):
    merges = _part(whole, "model").get("merges")
    pairs = (
        [one.split(" ") if isinstance(one, str) else one for one in merges or ()]
        if isinstance(merges, list)
        else None
    )
    if pairs is None or not all(
        isinstance(one, list) and len(one) == 2 and all(isinstance(x, str) for x in one)
        for one in pairs
    ):
        raise ValueError(
            f"The merges in {WHOLE} must be a list of pairs of pieces. Received: `merges` of "
            f"{type(merges).__name__}"
        )
    return Vocabulary(_places_of_whole(whole), [tuple(one) for one in pairs])


def _pairs_of_files(folder):
    places = _read_json(folder / "vocab.json")
    if sorted(place for place in places.values() if type(place) is int) != [*range(len(places))]:
        raise _UnusableError("the ids of a vocabulary must be 0, 1, 2, ..., each once")
    lines = read_pieces(folder / "merges.txt")
    lines = lines[1:] if lines and lines[0].startswith("#version") else lines
    merges = [tuple(line.split(" ")) for line in lines if line]
    return Vocabulary(sorted(places, key=places.get), merges)


def _places(vocabulary):
    return {piece: place for place, piece in enumerate(vocabulary.pieces)}


def _contents_of_pairs(vocabulary):
    lines = ["#version: 0.2", *(" ".join(pair) for pair in vocabulary.merges)]
    return [
        json.dumps(_places(vocabulary), ensure_ascii=False).encode("utf-8"),
        "".join(f"{line}\n" for line in lines).encode("utf-8"),
    ]


def _is_comma(piece):
    return isinstance(piece, str) and piece.endswith(",") and piece[-2:-1].isdigit()


def _model_of_whole(whole):
    """Returns a SentencePiece model of the pieces and scores in a `tokenizer.json`."""
    model = _part(whole, "model")
    scored, unknown = model.get("vocab"), model.get("unk_id")
    if not isinstance(scored, list) or not all(
        isinstance(one, list)
        and len(one) == 2
        and isinstance(one[0], str)
        and type(one[1]) in (int, float)
        and abs(one[1]) < 1e30
        for one in scored
    ):
        raise ValueError(
            f"The pieces in {WHOLE} must be a list of pairs of a piece and its score. "
            f"Received: a `vocab` of {type(scored).__name__}"
        )
    if type(unknown) is not int or not 0 <= unknown < len(scored):
        raise ValueError(
            f"`unk_id` in {WHOLE} must be the id of the unknown piece. Received: {unknown!r}"
        )
    pieces = [piece for piece, _ in scored]
    is_lowered = [_is_comma(piece) and score <= -_COMMAS for piece, score in scored]
    scores = [
        score + _COMMAS if lowered else score
        for (_, score), lowered in zip(scored, is_lowered, strict=True)
    ]
    tables = [
        step.get("precompiled_charsmap")
        for step in _steps(_part(whole, "normalizer"))
        if step.get("type") == "Precompiled"
    ]
    characters = _table(tables[0]) if tables else b""
    content = b""
    for place, (piece, score) in enumerate(zip(pieces, scores, strict=True)):
        entry = _field(1, piece.encode("utf-8", "replace")) + b"\x15" + struct.pack("<f", score)
        content += _field(1, entry + (b"\x18\x02" if place == unknown else b""))
    content += _field(3, _field(2, characters)) if characters else b""
    return Vocabulary(pieces, scores=scores, characters=characters, content=content)


def _table(text):
    import base64

    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError):
        raise ValueError(
            f"`precompiled_charsmap` in {WHOLE} must be a text in base64. "
            f"Received: {type(text).__name__}"
        ) from None


def _model_of_files(folder):
    """Returns the pieces of a SentencePiece model; its format is that of protocol buffers."""
    content = (folder / "spiece.model").read_bytes()
    try:
        fields = [*_fields(content)]
        entries = [dict(_fields(value)) for number, value in fields if number == 1]
        pieces = [entry[1].decode("utf-8") for entry in entries]
        scores = [struct.unpack("<f", entry.get(2, bytes(4)))[0] for entry in entries]
        tables = [dict(_fields(value)).get(2, b"") for number, value in fields if number == 3]
    except (LookupError, TypeError, AttributeError, struct.error) as error:
        raise _UnusableError("This is not a SentencePiece model") from error
    except UnicodeDecodeError as error:
        raise _UnusableError("a piece of this SentencePiece model is not UTF-8") from error
    if not pieces:
        raise _UnusableError("This is not a SentencePiece model")
    characters = tables[0] if tables else b""
    return Vocabulary(pieces, scores=scores, characters=characters, content=content)


def _fields(data):
    """Yields number and value of the fields of a message: bytes, or an integer."""
    place = 0

    def number():
        nonlocal place
        found = shift = 0
        while True:
            byte, place = data[place], place + 1
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found

    while place < len(data):
        tag = number()
        kind = tag & 7
        size = {0: 0, 1: 8, 2: None, 5: 4}[kind]
        if kind == 0:
            yield tag >> 3, number()
            continue
        size = number() if size is None else size
        if place + size > len(data):
            raise LookupError
        yield tag >> 3, data[place : place + size]
        place += size


def _field(number, value):
    size, length = b"", len(value)
    while length > 127:
        size, length = size + bytes([length & 127 | 128]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + value


# `tokenizer.json`, written


def _whole(vocabulary, lowercase, frame):
    """Returns the content of a `tokenizer.json`, as transformers' own converters make it."""
    kind, places = _KINDS[frame.kind], _places(vocabulary)
    mask = frame.special.get("mask_token")
    added = [
        {
            "id": places[token],
            "content": token,
            "single_word": False,
            "lstrip": token == mask,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for token in sorted({*frame.special.values()}, key=places.get)
    ]
    normalizer, cutter, decoder = _written_steps(vocabulary, lowercase, frame)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": cutter,
        "post_processor": _written_frame(frame, places),
        "decoder": decoder,
        "model": kind.part(vocabulary, frame),
    }


def _written_steps(vocabulary, lowercase, frame):
    if frame.kind == "wordpiece":
        normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
        normalizer |= {"strip_accents": None, "lowercase": lowercase}
        decoder = {"type": "WordPiece", "prefix": "##", "cleanup": True}
        return normalizer, {"type": "BertPreTokenizer"}, decoder
    if frame.kind == "byte_pair":
        entries = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
        return None, {**entries, "add_prefix_space": False}, {**entries, "add_prefix_space": True}
    steps = [step for step in _ALBERT_STEPS if lowercase or step["type"] != "Lowercase"]
    if vocabulary.characters:
        import base64

        table = base64.b64encode(vocabulary.characters).decode("ascii")
        steps.append({"type": "Precompiled", "precompiled_charsmap": table})
    return {"type": "Sequence", "normalizers": [*steps, _ONE_SPACE]}, _METASPACE, _METASPACE


def _written_frame(frame, places):
    if not frame.around:
        return {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": False,
            "use_regex": True,
        }

    def token(text, segment=0):
        return {"SpecialToken": {"id": text, "type_id": segment}}

    def text(name, segment=0):
        return {"Sequence": {"id": name, "type_id": segment}}

    start, end = frame.around
    between = [token(each) for each in frame.between]
    return {
        "type": "TemplateProcessing",
        "single": [token(start), text("A"), token(end)],
        "pair": [token(start), text("A"), *between, text("B", 1), token(end, 1)],
        "special_tokens": {
            each: {"id": each, "ids": [places[each]], "tokens": [each]} for each in (start, end)
        },
    }


def _wordpiece_part(vocabulary, frame):
    return {
        "type": "WordPiece",
        "unk_token": frame.special["unk_token"],
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": _places(vocabulary),
    }


def _pairs_part(vocabulary, frame):
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": "",
        "end_of_word_suffix": "",
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": _places(vocabulary),
        "merges": [list(pair) for pair in vocabulary.merges],
    }


def _sentencepiece_part(vocabulary, frame):
    scored = zip(vocabulary.pieces, vocabulary.scores, strict=True)
    return {
        "type": "Unigram",
        "unk_id": vocabulary.pieces.index(frame.special["unk_token"]),
        "vocab": [[piece, score - _COMMAS * _is_comma(piece)] for piece, score in scored],
        "byte_fallback": False,
    }


_ALBERT_STEPS = [
    {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
    {"type": "Replace", "pattern": {"String": "''"}, "content": '"'},
    {"type": "NFKD"},
    {"type": "StripAccents"},
    {"type": "Lowercase"},
]
_ONE_SPACE = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
_METASPACE = {
    "type": "Metaspace",
    "replacement": "\u2581",
    "prepend_scheme": "always",
    "split": True,
}
_KINDS = {
    "wordpiece": _Kind(
        title="WordPiece belongs",
        files=("vocab.txt",),
        settings={
            "tokenize_chinese_chars": True,
            "do_basic_tokenize": True,
            "clean_text": True,
            "wordpieces_prefix": "##",
            "word_tokenizer_type": "basic",
            "subword_tokenizer_type": "wordpiece",
            "auto_map": None,
        },
        normalizer={"type": ("BertNormalizer",), "handle_chinese_chars": True, "clean_text": True},
        pre_tokenizer={"type": ("BertPreTokenizer",)},
        model={
            "type": "WordPiece",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
        },
        of_files=lambda folder: Vocabulary(read_pieces(folder / "vocab.txt")),
        of_whole=lambda whole: Vocabulary(_places_of_whole(whole)),
        make=lambda vocabulary, lowercase: TupeTokenizer(vocabulary.pieces, lowercase=lowercase),
        contents=lambda vocabulary: ["".join(f"{x}\n" for x in vocabulary.pieces).encode("utf-8")],
        part=_wordpiece_part,
        notes=(_WORDPIECE_CUTS,),
    ),
    "byte_pair": _Kind(
        title="byte pairs belong",
        files=("vocab.json", "merges.txt"),
        settings={"add_prefix_space": False, "auto_map": None},
        normalizer=None,
        pre_tokenizer={"type": ("ByteLevel",), "add_prefix_space": False, "use_regex": True},
        model={
            "type": "BPE",
            "dropout": None,
            "byte_fallback": False,
            "ignore_merges": False,
            "fuse_unk": False,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
        },
        of_files=_pairs_of_files,
        of_whole=_pairs_of_whole,
        make=lambda vocabulary, _: TupeTokenizer(
            byte_pairs=(_places(vocabulary), vocabulary.merges)
        ),
        contents=_contents_of_pairs,
        part=_pairs_part,
        notes=(
            "ours takes a special token that is written in the text for text, never for that "
            "token; bytes that are no UTF-8 are kept",
        ),
    ),
    "sentencepiece": _Kind(
        title="SentencePiece belongs",
        files=("spiece.model",),
        settings={
            "keep_accents": False,
            "remove_space": True,
            "sp_model_kwargs": None,
            "auto_map": None,
        },
        normalizer={
            "type": ("Sequence",),
            "steps": _ALBERT_STEPS,
            "free": ("Precompiled", _ONE_SPACE),
        },
        pre_tokenizer={
            "type": ("Sequence", "Metaspace"),
            "steps": [{**_METASPACE, "add_prefix_space": True}],
            "free": ("WhitespaceSplit",),
        },
        model={"type": "Unigram", "byte_fallback": False},
        of_files=_model_of_files,
        of_whole=_model_of_whole,
        make=lambda vocabulary, lowercase: TupeTokenizer(
            sentencepiece=vocabulary.content, lowercase=lowercase
        ),
        contents=lambda vocabulary: [vocabulary.content],
        part=_sentencepiece_part,
        notes=(
            "ours folds case where ALBERT's own tokenizer lower-cases, so that a sharp s is ss and "
            "a final sigma one like any other, and takes a special token in the text for text",
        ),
    ),
}
