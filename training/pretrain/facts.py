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
