"""How the quickstart trains: settings in which positions can be seen to matter within minutes.

Pre-LN and the wide initialization are not TUPE's trunk; at this size and length its own learns too
slowly.
"""

LENGTH = 32  # tokens per row
VOCABULARY_SIZE = 8000
MASK_RATE = 0.2
TEST_PAIRS = 2000
BATCH_SIZE = 64
LEARNING_RATE = 5e-3
BETA_2 = 0.98
INITIALIZER_RANGE = 0.09
STEPS = 800
XLA = True  # at this size it saves a fifth of a step, on CPUs too
TASK_BATCH_SIZE = 64
TASK_LEARNING_RATE = 1e-3
TASK_STEPS = 300
WARMUP_SHARE = 0.06
CURVE_BATCHES = 10  # held-out batches behind each point of the curve


def curve_points(steps):
    """Returns the points of the curve of so many steps: 5 of few, 20 of many."""
    return min(steps, max(5, min(20, steps // 50)))
