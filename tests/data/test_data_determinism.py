"""The same bytes in another process, whatever the order of its hash tables."""

import os
import sys

from interpreters import python

# Modules of the package that need NumPy alone, so that the other process need not start Keras.
PROGRAM = """
import hashlib
from training.command.without_keras import without_keras

with without_keras():
    from keras_tupe.data.corpus.documents import corpus_hash, split_documents
    from keras_tupe.data.corpus.embedded import embedded_documents
    from keras_tupe.data.corpus.packing import pack_rows, tokenize_documents
    from keras_tupe.data.corpus.vocabulary import train_wordpiece
    from keras_tupe.data.corpus.prepared_vocabulary import word_starts
    from keras_tupe.data.rows.masking import Masking
    from keras_tupe.data.rows.rows import Rows
    from keras_tupe.data.tasks.word_order import word_order_pairs

documents = embedded_documents(("tqdm", "mpl_toolkits"))
train, held_out = split_documents(documents, 0.2)
pieces = train_wordpiece(train, 500)
ids = {piece: index for index, piece in enumerate(pieces)}

def tokenize(sentences):
    return [[ids.get(word, 1) for word in sentence.lower().split()] for sentence in sentences]

frame = {"start_id": 2, "end_id": 3, "pad_id": 0}
packed = pack_rows(tokenize_documents(train, tokenize), 32, **frame)
begins_word = word_starts(pieces, "wordpiece")
arrays = []
for begins in (None, begins_word):
    masking = Masking(
        len(pieces), mask_id=4, pad_id=0, special_ids=range(5), begins_word=begins
    )
    rows = Rows(packed.token_ids, masking, batch_size=8, seed=3)
    if walk:
        for step in range(30):
            rows.batch(step)
    inputs, labels, weights = rows.shard(1, 2).batch(1234)
    arrays += [*inputs.values(), labels, weights]
pairs = word_order_pairs(train, tokenize, **frame, seed=3)
content = [
    "\\n".join([*train, "held out", *held_out, *pieces, *pairs.texts]).encode(),
    corpus_hash(documents).encode(),
    *(array.tobytes() for array in (*arrays, pairs.token_ids)),
]
digest = hashlib.sha256(b"".join(content)).hexdigest()
"""


def test_everything_is_bit_identical_in_another_process_and_after_a_seek():
    here = {"walk": True}
    exec(PROGRAM, here)  # the same program runs here and there
    environment = {"PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)}
    there = python("-c", f"walk = False\n{PROGRAM}\nprint(digest)", environment=environment)
    assert there.split()[-1] == here["digest"]
