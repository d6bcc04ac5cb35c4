"""SQuAD v1.1: questions from its files, windows for the model, predictions back to text.

questions = read_squad("dev-v1.1.json")
windows = squad_windows(questions, tokenizer, length=384)
...  # a model gives start and end logits, both of the shape of windows.token_ids
answers = squad_predictions(windows, start_logits, end_logits)
best = squad_n_best(windows, start_logits, end_logits, n=20)  # with probabilities
"""

from keras_tupe.data.tasks.squad._file import SquadQuestion, read_squad
from keras_tupe.data.tasks.squad._n_best import squad_n_best
from keras_tupe.data.tasks.squad._predictions import squad_predictions
from keras_tupe.data.tasks.squad._windows import SquadWindows, squad_windows

__all__ = [
    "SquadQuestion",
    "SquadWindows",
    "read_squad",
    "squad_n_best",
    "squad_predictions",
    "squad_windows",
]
