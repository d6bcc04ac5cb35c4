"""What a method can score at most, by how it knows the order of tokens.

Three kinds of methods, from what an answer of theirs can depend on:

    nowhere     the tokens of the row, whatever their order, and the token that is asked. Such an
                encoder permutes its answers as its tokens are permuted.
    trained     at positions of training also the order. Positions of a table that no row of
                training had keep rows drawn at random, alike for all of them and independent of
                all that was learned: the mean over such rows is that of `nowhere` among these
                positions.
    everywhere  the whole row in its order: no bound.

Among answers that cannot differ, only those of one token can be right:

    ceiling = sum over keys k of max over tokens t of #(answers of key k that are t) / #answers

It bounds the score of each run of kind `nowhere`, and of kind `trained` the mean over the random
rows, since for answers y_1 ... y_m of one key

    sum_a P(answer = y_a) <= max_t #(a: y_a = t).
"""

import collections

import numpy as np

NOWHERE, TRAINED, EVERYWHERE = KINDS = ("nowhere", "trained", "everywhere")


def ceiling(rows, kind, trained_length):
    """Returns the largest share of right answers, from 0 to 1.

    Args:
        rows: `AskedRows`.
        kind: one of `KINDS`.
        trained_length: tokens of the longest row of training.

    Example:
        >>> from training.studies.probe.rows import AskedRows
        >>> tokens = np.array([[1, 7, 8], [1, 8, 7]], "int32")
        >>> rows = AskedRows(tokens, np.arange(2), np.zeros(2, int), tokens[:, 1])
        >>> ceiling(rows, "nowhere", 3), ceiling(rows, "trained", 3), ceiling(rows, "trained", 1)
        (0.5, 1.0, 0.5)
    """
    if kind == EVERYWHERE:
        return 1.0
    seen = trained_length if kind == TRAINED else 0
    counts = collections.defaultdict(collections.Counter)
    for row, position, label in zip(rows.rows, rows.positions, rows.labels, strict=True):
        tokens = rows.token_ids[row]
        asked = int(position) if position < seen else (int(tokens[position]),)
        key = (tokens[:seen].tobytes(), np.sort(tokens[seen:]).tobytes(), asked)
        counts[key][int(label)] += 1
    most = sum(max(labels.values()) for labels in counts.values())
    return most / len(rows.labels)
