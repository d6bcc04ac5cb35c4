"""Every position bias with its arguments."""

import keras

from keras_tupe.layers import RelativeBucketBias, UntiedPositionBias
from keras_tupe.positions.alibi import AlibiBias
from keras_tupe.positions.diet_abs import LowRankPositionBias
from keras_tupe.positions.fire import FireBias
from keras_tupe.positions.free_table import FreeTableBias
from keras_tupe.positions.kerple import KerpleBias
from keras_tupe.positions.sandwich import SandwichBias
from keras_tupe.positions.t5_low_rank import LowRankDistanceBias

NORMAL = keras.initializers.RandomNormal(0.3)
H, LONG = 2, 600


SIZES = {"key_dim": 5, "initializer": NORMAL}
TABLE = {"max_sequence_length": LONG}
BUCKETS = {"num_buckets": 8, "max_distance": 20}
UNTIED = {**SIZES, **TABLE, "cls_theta": False, "use_bias": True, "epsilon": 1e-3}
# class, its arguments but the heads, weights, whether nothing on the way is rounded
BIASES = [
    (AlibiBias, {}, 0, True),
    (AlibiBias, {"learned": True, "sides": 2}, 1, False),
    (KerpleBias, {"kernel": "power", "initializer": NORMAL}, 2, False),
    (KerpleBias, {"initializer": NORMAL}, 2, False),
    (SandwichBias, {"width": 6}, 0, True),
    (FireBias, {"threshold": 3.5, "width": 5}, 3, False),
    (FreeTableBias, {**TABLE, "initializer": "ones"}, 1, True),
    (LowRankPositionBias, {**TABLE, "rank": 3, "initializer": NORMAL}, 2, False),
    (LowRankDistanceBias, {**SIZES, "max_distance": 3}, 3, False),
    (RelativeBucketBias, {**BUCKETS, "initializer": NORMAL}, 1, True),
    (RelativeBucketBias, {**BUCKETS, "bidirectional": False}, 1, True),
    (UntiedPositionBias, UNTIED, 7, True),
]
