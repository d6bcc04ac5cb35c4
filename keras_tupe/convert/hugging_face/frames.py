"""Tokenizers of Hugging Face's models: their classes, and the special tokens around a text."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Frame:
    """The special tokens that a model's vocabulary must have.

    Attributes:
        kind: `kind` of our tokenizer: `"wordpiece"` or `"byte_pair"`.
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


def _classes(*names):
    return tuple(f"{name}Tokenizer{fast}" for name in names for fast in ("", "Fast"))


_BERT = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
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
_END = "<|endoftext|>"

BERT = Frame("wordpiece", _classes("Bert"), _BERT, "[CLS]")
GPT_2 = Frame(
    "byte_pair",
    _classes("GPT2"),
    dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), _END),
    _END,
)
LONGFORMER = Frame("byte_pair", _classes("Longformer", "Roberta"), _FAIRSEQ, "<s>")
# fine-tuned BARTs, such as that for CNN's news, have no token vector of the mask
BART = Frame("byte_pair", _classes("Bart", "Roberta"), _FAIRSEQ, "<s>", spare_mask=True)
ROBERTA = Frame("byte_pair", _classes("Roberta"), _FAIRSEQ, "<s>")
MPNET = Frame(
    "wordpiece", _classes("MPNet"), {**_FAIRSEQ, "unk_token": "[UNK]"}, "<s>", also=("<unk>",)
)
DEBERTA = Frame("byte_pair", _classes("Deberta"), _ENDS, "[CLS]")
ROFORMER = Frame("wordpiece", _classes("Bert", "RoFormer"), _BERT, "[CLS]", cuts_words=True)
ELECTRA = Frame("wordpiece", _classes("Electra", "Bert"), _BERT, "[CLS]")
ALBERT = Frame(
    "sentencepiece",
    _classes("Albert"),
    {
        **_BERT,
        "bos_token": "[CLS]",
        "eos_token": "[SEP]",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
    },
    "[CLS]",
)

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
