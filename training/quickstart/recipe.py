"""How the quickstart trains: settings in which positions can be seen to matter within minutes.

Pre-LN and the wide initialization are not TUPE's trunk; at this size and length its own learns too
slowly. Per token, steps of 16 rows teach `absolute` as much and steps of 64 rows less, and neither
costs less: up to a loss of 5 it learns hardly more from a larger step than from a smaller one.
"""

LENGTH = 32  # tokens per row
VOCABULARY_SIZE = 8000
MASK_RATE = 0.2
TEST_PAIRS = 2000
BATCH_SIZE = 32
LEARNING_RATE = 3e-3
BETA_2 = 0.98
INITIALIZER_RANGE = 0.09
STEPS = 2200
TASK_BATCH_SIZE = 64
TASK_LEARNING_RATE = 1e-3
TASK_STEPS = 400
WARMUP_SHARE = 0.06
CURVE_BATCHES = 12  # held-out batches behind each point of the curve


def curve_points(steps):
    """Returns the points of the curve of so many steps: 5 of few, 11 of many."""
    return min(steps, max(5, min(11, steps // 50)))
