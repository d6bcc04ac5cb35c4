"""Whether XLA compiles forward and backward pass, measured on rows of the run itself."""

import gc
import inspect
import statistics
import time

import keras
import tensorflow as tf

from keras_tupe.trainer._tensorflow_parts import checks_of_rows, map_tensors

PAYS_SECONDS = 300  # of a run: a shorter one does not win back what compiling costs
_FLOPS_PER_SECOND = 1e11  # of two CPU cores; a run that is short by it is not even timed
_GAIN = 0.95  # of the time of the passes that were not compiled
_MEASURE_SECONDS = 1.0
_ROUNDS = 3  # at least
_PART = 4  # rows of a batch over those that are measured
_SMALL = 2048  # tokens of a batch: a smaller one is measured whole, as its parts say nothing of it


class ChoosesXla:
    """The part of a trainer on TensorFlow that says what XLA compiles; see `Trainer`."""

    @property
    def _compiles_passes(self):
        if self.xla != "auto":
            return self.xla
        # not measured on GPUs, where forward and backward pass gain by XLA
        return bool(tf.config.list_logical_devices("GPU")) or bool(self.compiles_passes)

    def _compiled(self, function, xla):
        if self.run_eagerly or not xla:
            return function
        return tf.function(function, jit_compile=True, autograph=False)

    def _look_ahead(self, args, kwargs):
        self._steps_ahead = self.planned_steps or steps_of_fit(args, kwargs)

    def _may_measure(self, iterator):
        return (
            self.compiles_passes is None
            and self.xla == "auto"
            and not self.run_eagerly
            and not tf.config.list_logical_devices("GPU")
            and has_one_shape(iterator)
            and self._steps_ahead > 0
            and self._may_pay(iterator)
        )

    def _may_pay(self, iterator):
        """Returns whether a run may be long enough, by 6 operations a weight and token."""
        specs = tf.nest.flatten(iterator.element_spec, expand_composites=True)
        values = max(spec.shape.num_elements() for spec in specs)  # one for each token
        work = 6 * self.model.count_params() * values * self._steps_ahead
        return work >= PAYS_SECONDS * _FLOPS_PER_SECOND

    def _choose_passes(self, data=None):
        """Says by which function forward and backward pass are computed; measures on a batch.

        It measures on a part of the batch's rows, since what XLA keeps in its passes of all rows
        would be the peak memory of a run that does not take them.
        """

        def way(xla):
            def gradients(*args):
                self.compiles_passes = xla  # while it is traced
                return self._gradients(*args)

            return self._compiled(gradients, xla)

        ways = [way(False), way(True)]
        if data is not None:

            def passes(function):
                return lambda data: self._passes(
                    function, keras.utils.unpack_x_y_sample_weight(data)
                )

            choice = XlaChoice(self.distribute_strategy, *map(passes, ways), self.micro_batches)
            self.pass_seconds = choice.seconds(data, self._steps_ahead)
            del choice
            gc.collect()  # its graphs are circles
            plain, *compiled = self.pass_seconds
            self.compiles_passes = bool(compiled) and compiled[0] < _GAIN * plain
        self.compiles_passes = bool(self._compiles_passes)
        self._gradient_function = ways[self.compiles_passes]


class XlaChoice:
    """Measures both ways of a trainer's `passes`, and says which is the faster.

    Nothing that training goes on from is changed: passes are functions of weights, seeds and batch.
    All workers come to the same result, as they add up their times.

    Args:
        strategy: the `tf.distribute.Strategy`.
        passes: function of one replica's data to tensors: sums, gradients and outputs.
        compiled: the same, compiled by XLA.
        unit: parts that each replica's rows are computed in. Defaults to 1.
    """

    def __init__(self, strategy, passes, compiled, unit=1):
        self._strategy, self._unit = strategy, unit
        self._functions = [self._whole(function) for function in (passes, compiled)]

    def seconds(self, data, steps):
        """Returns the median seconds of the passes `(as they are, compiled)`.

        Those of a whole batch, as far as they are proportional to its rows: each replica computes
        the first quarter of its own, or all of fewer than 2,048 tokens.

        Args:
            data: a batch, as `strategy.run` takes it.
            steps: of the whole run.

        Returns:
            The two, or the first alone if the run is too short to win back the compiling.
        """
        of_replica = self._of_replica(data)
        checks_of_rows(of_replica[0], self._unit)
        share = of_replica[0].shape[0] / self._measured(of_replica)
        plain, compiled = self._functions
        self._seconds(plain, data)  # traces
        first = self._mean(min(self._seconds(plain, data) for _ in range(2)))
        if steps * first * share < PAYS_SECONDS:
            return (first * share,)
        self._seconds(compiled, data)
        rounds = max(_ROUNDS, round(self._mean(_MEASURE_SECONDS / first / 2)))
        times = [[self._seconds(f, data) for f in (plain, compiled)] for _ in range(rounds)]
        medians = (statistics.median(column) for column in zip(*times, strict=True))
        return tuple(self._mean(median) * share for median in medians)

    def _of_replica(self, data):
        flat = [x for x in tf.nest.flatten(data) if x is not None]
        return [self._strategy.experimental_local_results(x)[0] for x in flat]

    def _measured(self, tensors):
        """Returns how many of a replica's rows are measured, from its tensors."""
        rows = tensors[0].shape[0]
        if max(x.shape.num_elements() for x in tensors if x is not None) < _SMALL:
            return rows
        return max(rows // _PART // self._unit, 1) * self._unit

    def _whole(self, function):
        def one(data):
            rows = self._measured(tf.nest.flatten(data))
            some = map_tensors(lambda x: x[:rows], data)
            found = [x for x in tf.nest.flatten(function(some)) if x is not None]
            return tf.add_n([tf.cast(tf.reduce_max(x), "float32") for x in found])  # needs all

        return tf.function(lambda data: self._strategy.run(one, args=(data,)), autograph=False)

    def _seconds(self, function, data):
        start = time.perf_counter()
        for result in self._strategy.experimental_local_results(function(data)):
            result.numpy()  # waits
        return time.perf_counter() - start

    def _mean(self, number):
        """Returns the mean of a number of each worker."""
        strategy = self._strategy
        if strategy.num_replicas_in_sync == 1:
            return number
        numbers = strategy.experimental_distribute_values_from_function(
            lambda _: tf.constant(number, "float32")
        )
        return float(strategy.reduce("MEAN", numbers, axis=None))


def has_one_shape(iterator):
    """Returns whether all batches of an iterator of `tf.data` have one shape, which is known."""
    specs = tf.nest.flatten(getattr(iterator, "element_spec", None), expand_composites=True)
    return all(getattr(s, "shape", None) is not None and s.shape.is_fully_defined() for s in specs)


def steps_of_fit(args, kwargs):
    """Returns the number of steps that a call of `fit` will do, or 0 if it does not say so."""
    found = inspect.signature(keras.Model.fit).bind(None, *args, **kwargs)
    found.apply_defaults()
    of_epoch = found.arguments["steps_per_epoch"]
    if of_epoch is None and isinstance(found.arguments["x"], tf.data.Dataset):
        of_epoch = int(found.arguments["x"].cardinality())  # below 0 if it is not known
    return (found.arguments["epochs"] - found.arguments["initial_epoch"]) * max(of_epoch or 0, 0)
