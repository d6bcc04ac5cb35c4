"""Cost of fine-tuning on SQuAD, by the number of questions and the lengths of their windows."""

from training.machine.cost import WIDER, fine_tuning

_TRAIN, _DEV = 87_599, 10_570  # questions
_CONTEXT, _AROUND = 161, 15  # tokens of a paragraph; of a question, with [CLS] and two [SEP]


def squad_cost(settings, length, size, position, device):
    """Returns the cost of fine-tuning one preset on SQuAD at one length.

    Args:
        settings: a `Squad` of `training.studies.papers`.
        length: tokens per window.
        size, position, device: as in `glue_cost` of `training.finetune_glue`.
    """
    room = length - _AROUND
    windows = 1 + max(0.0, (_CONTEXT - room) / settings.doc_stride + 0.5)
    tokens = min(length, WIDER * (_CONTEXT + _AROUND))
    questions = min(_TRAIN, settings.max_train_questions or _TRAIN)
    train = settings.epochs * questions * windows
    dev = windows * min(_DEV, settings.max_dev_questions or _DEV)
    cost = fine_tuning(size, position, device, tokens, train, dev, settings.batch_size)
    return cost.times(settings.seeds)
