"""What the record of a run says of its rows."""

from keras_tupe.data import split_hash


def data_facts(train, valid):
    """Returns what tells the rows of a run from others."""
    return {
        "rows_hash": split_hash(train.record, "train"),
        "valid_rows_hash": split_hash(valid.record, "valid"),
        "length": train.length,
        "vocabulary": train.vocabulary.sha256,
    }


def held_out_facts(vocabulary, held_out, num_batches, outputs):
    """Returns how much text the predictions are of that a validation is the mean of.

    Args:
        vocabulary: the `PreparedVocabulary` of the rows.
        held_out: the `Rows` of validations.
        num_batches: batches of a validation.
        outputs: names of the outputs of a model with several, of which the first counts.

    Returns:
        Dictionary of the numbers of `predictions` and of the `characters` that they stand for.
    """
    characters, predictions, counted = vocabulary.characters, 0.0, 0.0
    for step in range(num_batches):
        _, labels, weights = held_out.evaluation_batch(step)
        if outputs:
            first = next(iter(outputs))
            labels, weights = labels[first], weights[first]
        predictions += float(weights.sum())
        counted += float((weights * characters[labels]).sum())
    return {"predictions": predictions, "characters": counted}
