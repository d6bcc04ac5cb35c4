"""Spans of tagged words, as `conlleval` counts them."""

import collections
import dataclasses
import operator
import re

# Begin, inside, end, single, outside; BILOU has last and unit, BMES has middle.
_KINDS = {**dict(zip("BIESO", "BIESO", strict=True)), "L": "E", "U": "S", "M": "I"}
_TAG = re.compile("O|([BIESLUM])(?:-(.+))?", re.DOTALL)


def has_spans(tags):
    """Returns whether all `tags`, strings, are of a scheme of spans: `O`, `B-PER`, `I-PER`, `B`.

    Such schemes are IOB1, BIO (IOB2), BIOES, BILOU and BMES. Other tags, such as parts of speech,
    are plain.

    Example:
        >>> has_spans(["O", "B-PER", "I-PER"]), has_spans(["NOUN", "VERB"])
        (True, False)
    """
    return all(_TAG.fullmatch(tag) for tag in tags)


def tag_spans(tags):
    """Returns the spans of the words of a text, tuples `(type, first, behind)` in their order.

    Equation, with p_i and y_i the prefix and the type of tag i:

        tag i goes on with the span of tag i - 1    if  p_{i-1} in {B, I},  p_i in {I, E},
                                                        and y_{i-1} = y_i
        it begins a span                            otherwise, unless it is O

    So no tag is refused: an `I-PER` behind `O` or `B-LOC` begins a span of its own.

    Args:
        tags: strings of a scheme of spans, see `has_spans`. A tag without a type has the type `_`.

    Example:
        >>> tag_spans(["B-PER", "I-PER", "O", "I-LOC"])
        [('PER', 0, 2), ('LOC', 3, 4)]
    """
    return [(name, first, behind) for name, first, behind, _ in _spans(tags)]


def bad_transitions(tags):
    """Returns how many of some `tags`, `I` and `E`, begin a span, which those of BIO never do.

    Example:
        >>> bad_transitions(["O", "I-PER", "I-PER", "I-LOC"])
        2
    """
    return sum(kind in "IE" for _, _, _, kind in _spans(tags))


def _spans(tags):
    """Returns type, first word, the one behind the last, and first prefix of each span."""
    found, before = [], ("O", None)
    for number, tag in enumerate(tags):
        match = _TAG.fullmatch(tag)
        if match is None:
            raise ValueError(
                "Tags of spans must be O, or B, I, E or S, followed by a hyphen and a type, such "
                f"as 'B-PER'. Score plain tags with `accuracy`. Received: {tag!r}"
            )
        kind, name = _KINDS[tag[0]], match[2] or "_"
        if kind in "IE" and before[0] in "BI" and before[1] == name:
            found[-1] = (*found[-1][:2], number + 1, found[-1][3])
        elif kind != "O":
            found.append((name, number, number + 1, kind))
        before = kind, name
    return found


@dataclasses.dataclass(frozen=True)
class SpanScores:
    """How many spans of some texts were found.

    Args:
        right: spans of the predictions that are one of the labels, with its type.
        predicted: all spans of the predictions.
        labelled: all spans of the labels.
        accuracy: share of the words whose tag is that of the label; `None` of one type.
        by_type: dictionary of the `SpanScores` of each type, by its name, sorted.
    """

    right: int
    predicted: int
    labelled: int
    accuracy: float | None = None
    by_type: dict = dataclasses.field(default_factory=dict)

    @property
    def precision(self):
        """Share of the predicted spans that are right; 0 if there are none."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self):
        """Share of the labelled spans that were found; 0 if there are none."""
        return self.right / self.labelled if self.labelled else 0.0

    @property
    def f1(self):
        """Harmonic mean of precision and recall, 2 right / (predicted + labelled); 0 for 0/0."""
        either = self.predicted + self.labelled
        return 2 * self.right / either if either else 0.0


def span_scores(labels, predictions):
    """Scores tags of words by the spans that they mark, of all types and of each.

    A predicted span is right if the labels have one of the same words and the same type. Spans are
    those of `tag_spans`. If a tag is plain (see `has_spans`), every word is a span with its tag as
    type, O too: then precision, recall and F1 are the accuracy.

    Differences from the source: `conlleval` gives percent. It knows B, I, O and E; S, and the rule
    for S and E, are those of seqeval's default mode, whose numbers these are for IOB1, BIO and
    BIOES. Of BILOU and BMES, seqeval counts L and U without their meaning, and plain tags as spans
    by their first letter.

    Args:
        labels, predictions: lists of sequences of strings, the tags of the words of each text.

    Returns:
        A `SpanScores`.

    Raises:
        ValueError: if there is no word, or a text has not as many predictions as labels.

    Example:
        >>> labels = [["B-PER", "I-PER", "O", "B-LOC"]]
        >>> found = span_scores(labels, [["B-PER", "O", "O", "B-LOC"]])
        >>> found.f1, found.by_type["LOC"].f1
        (0.5, 1.0)

    References:
        Tjong Kim Sang and Buchholz. Introduction to the CoNLL-2000 Shared Task: Chunking. CoNLL
        2000, and its scorer, conlleval.
        Nakayama. seqeval. 2018. https://github.com/chakki-works/seqeval
    """
    sizes = [[len(tags) for tags in texts] for texts in (labels, predictions)]
    if sizes[0] != sizes[1] or not sum(sizes[0]):
        raise ValueError(
            "There must be words, and a predicted tag for each label of each text. Received: "
            f"{len(labels)} texts of {sum(sizes[0])} labels, {len(predictions)} of "
            f"{sum(sizes[1])} predictions"
        )
    every = {tag for texts in (labels, predictions) for tags in texts for tag in tags}
    spans_of, counts = tag_spans if has_spans(every) else _words, []
    for texts in (labels, predictions):
        counts.append({(n, *span) for n, tags in enumerate(texts) for span in spans_of(tags)})
    wanted, found = counts
    by_type = [
        collections.Counter(span[1] for span in spans) for spans in (wanted & found, found, wanted)
    ]
    names = sorted(by_type[1] | by_type[2])
    hits = sum(sum(map(operator.eq, *pair)) for pair in zip(labels, predictions, strict=True))
    return SpanScores(
        *(one.total() for one in by_type),
        hits / sum(sizes[0]),
        {name: SpanScores(*(one[name] for one in by_type)) for name in names},
    )


def _words(tags):
    return [(tag, number, number + 1) for number, tag in enumerate(tags)]


def span_f1(labels, predictions):
    """Returns the F1 of the spans of all types together, a float in [0, 1]; see `span_scores`.

    Args:
        labels, predictions: lists of sequences of tags, strings.

    Example:
        >>> span_f1([["B-PER", "O"], ["B-LOC"]], [["B-PER", "O"], ["O"]])
        0.6666666666666666
    """
    return span_scores(labels, predictions).f1
