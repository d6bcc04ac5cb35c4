"""Train and test functions on TensorFlow, with or without a distribution strategy."""

import itertools

import keras
import tensorflow as tf

from keras_tupe._keras_private.training import TensorFlowFit, has_own_strategy, queued_dataset
from keras_tupe.layers._recomputation import set_remat
from keras_tupe.trainer._checks import refuse_layer_losses, refuse_other_state
from keras_tupe.trainer._dropout_seeds import seeds_of
from keras_tupe.trainer._tensorflow_parts import (
    all_reduced,
    checks_of_rows,
    in_parts,
    map_tensors,
)
from keras_tupe.trainer._tensorflow_update import update
from keras_tupe.trainer._xla_choice import ChoosesXla


class TensorFlowSteps(ChoosesXla, TensorFlowFit):
    """What `Trainer` does on TensorFlow; see there.

    A step is three parts. Each replica computes the gradients of its loss sum, in micro-batches,
    compiled by XLA where that pays. Sums and gradients of all replicas are added up. Then every
    replica does the same update on its own copy of the variables, each where it is in memory.
    """

    def make_train_function(self, force=False):
        """Makes, and returns, the function that takes an iterator and does `steps_per_execution`
        steps."""
        if self.train_function is None or force:
            self._gradient_function = None  # not before XLA is chosen
            self.train_function = self._function(self.train_step, self.steps_per_execution)
        return self.train_function

    def make_test_function(self, force=False):
        """As `make_train_function`, for evaluation."""
        if self.test_function is None or force:
            self._forward_function = self._compiled(self._forward, self._compiles_passes)
            one = self._function(self.test_step, 1)

            def function(iterator):
                logs = one(iterator)
                for _ in range(1, self.steps_per_execution):
                    try:
                        logs = one(iterator)
                    except StopIteration:  # within the group
                        break
                return logs

            self.test_function = function
        return self.test_function

    def train_step(self, data):
        """One step of one replica; returns scalars that are the same on all."""
        inputs, targets, weights = keras.utils.unpack_x_y_sample_weight(data)
        if self.micro_batches > 1:
            with tf.control_dependencies(checks_of_rows(inputs, self.micro_batches)):
                inputs, targets, weights = map_tensors(tf.identity, (inputs, targets, weights))
        context = tf.distribute.get_replica_context()
        loss, count, gradients, outputs = self._passes(
            self._gradient_function, (inputs, targets, weights)
        )
        self._track(loss, count)
        if self.train_metrics:
            self.compute_metrics(inputs, targets, outputs, weights)
        present = [g for g in gradients if g is not None]
        stop = tf.cast(self._stop_request, loss.dtype)
        loss, count, stop, *present = all_reduced(context, [loss, count, stop, *present])
        present = iter(present)
        gradients = [None if g is None else next(present) for g in gradients]
        with tf.control_dependencies([loss, count, *(g for g in gradients if g is not None)]):
            facts = update(self, loss, count, gradients)
        return {**facts, "stop": tf.cast(stop > 0, "int32")}

    def _passes(self, function, data):
        inputs, targets, weights = data
        context = tf.distribute.get_replica_context()
        weights = self._objective.in_whole(
            targets, weights, lambda counts: all_reduced(context, [counts])[0]
        )
        replica = tf.cast(context.replica_id_in_sync_group, "int32")
        return function(inputs, targets, weights, replica, self._step.value)

    def test_step(self, data):
        """Adds a replica's part of a batch to the metrics."""
        inputs, targets, weights = keras.utils.unpack_x_y_sample_weight(data)
        loss, count, outputs = self._forward_function(inputs, targets, weights)
        self._track(loss, count)
        self.compute_metrics(inputs, targets, outputs, weights)
        return {}

    def _forward(self, inputs, targets, weights):
        inputs, given = self._with_labels(inputs, targets, training=False)
        outputs = self.model(inputs, training=False, **given)
        return *self._objective.each(targets, outputs, weights), outputs

    def _gradients(self, inputs, targets, weights, replica, step):
        """Sums over the micro-batches: loss, count, gradients, and the outputs if asked for."""
        parts = self.micro_batches
        if parts == 1:
            return self._part_gradients((inputs, targets, weights), replica, step)
        data = map_tensors(lambda x: in_parts(x, parts), (inputs, targets, weights))
        present = []

        def part(index, *sums):
            one = map_tensors(lambda x: tf.gather(x, index), data)
            found = self._part_gradients(one, replica * parts + index, step)
            loss, count, gradients, outputs = found
            present[:] = [g is not None for g in gradients]
            new = [loss, count, *(g for g in gradients if g is not None)]
            if sums:
                new = [a + b for a, b in zip(sums[: len(new)], new, strict=True)]
            return new, outputs

        first, first_outputs = part(tf.constant(0))
        if not self.train_metrics:
            _, *sums = tf.while_loop(
                lambda index, *_: index < parts,
                lambda index, *sums: (index + 1, *part(index, *sums)[0]),
                (tf.constant(1), *first),
            )
            outputs = None
        else:
            arrays = tf.nest.map_structure(
                lambda x: tf.TensorArray(x.dtype, parts, element_shape=x.shape).write(0, x),
                first_outputs,
            )

            def body(index, arrays, *sums):
                sums, outputs = part(index, *sums)
                arrays = tf.nest.map_structure(lambda a, x: a.write(index, x), arrays, outputs)
                return (index + 1, arrays, *sums)

            _, arrays, *sums = tf.while_loop(
                lambda index, *_: index < parts, body, (tf.constant(1), arrays, *first)
            )
            outputs = tf.nest.map_structure(lambda array: array.concat(), arrays)
        loss, count, *gradients = sums
        gradients = iter(gradients)
        return loss, count, [next(gradients) if here else None for here in present], outputs

    def _part_gradients(self, data, part, step):
        inputs, targets, weights = data
        values = [v.value for v in self._seed_states]
        seeds = seeds_of(self._seed_states, values, step, part)
        set_remat(self.model, self.remat)
        with tf.GradientTape() as tape:
            scope = keras.StatelessScope(state_mapping=seeds, collect_losses=True)
            with scope:
                inputs, given = self._with_labels(inputs, targets, training=True)
                outputs = self.model(inputs, training=True, **given)
            loss, count = self._objective.sums(targets, outputs, weights)
            scale = self._loss_scale.value
            scaled = loss * tf.cast(scale, loss.dtype) if self._scales else loss
        refuse_other_state(self.model, self._seed_states, scope, seeds)
        refuse_layer_losses(self.model, scope)
        found = tape.gradient(scaled, [v.value for v in self.model.trainable_variables])
        gradients = [None if g is None else tf.convert_to_tensor(g) for g in found]
        return loss, count, gradients, outputs if self.train_metrics else None

    _keras_compiles = False  # it would compile the collectives too, which XLA cannot

    def _check_scope(self):
        strategy = self.distribute_strategy
        variables = [v.value for v in self.model.variables]
        is_plain = not tf.distribute.has_strategy()
        fits = (
            not any(isinstance(v, tf.distribute.DistributedValues) for v in variables)
            if is_plain and not has_own_strategy(self)
            else all(strategy.extended.variable_created_in_scope(v) for v in variables)
        )
        if not fits or tf.distribute.get_strategy() is not strategy:
            raise ValueError(
                "Model, trainer and `compile` belong in the scope of one strategy: make all three "
                "within `with strategy.scope():`. Received: the scope of "
                f"{type(tf.distribute.get_strategy()).__name__} for what was made elsewhere"
            )

    def _make_stop_flag(self):
        """A variable of this worker alone, which every step adds up over the workers."""
        self._stop_request = tf.Variable(0, trainable=False)

    def request_stop(self):
        """Asks for the end of `fit`, on all workers after the same step."""
        self._set_stop_flag(1)

    def _set_stop_flag(self, value):
        with tf.init_scope():  # whatever is traced at this moment
            self._stop_request.assign(value)

    def _function(self, step, count):
        """Returns the function iterator -> logs: `count` steps on all replicas, then metrics."""
        strategy = self.distribute_strategy

        def one(data):
            facts = strategy.run(step, args=(data,))
            return {name: strategy.experimental_local_results(x)[0] for name, x in facts.items()}

        def many(iterator):
            if count == 1:
                return one(iterator.get_next()), self._logs(step == self.train_step)

            def body(index, facts):
                new = one(iterator.get_next())
                return index + 1, {**new, "stop": new["stop"] + facts["stop"]}

            def goes_on(index, facts):
                return tf.logical_and(index < count, facts["skipped_steps"] <= tolerated)

            facts = self._no_facts()
            tolerated = tf.maximum(facts["skipped_steps"], self.skip_bad_steps)
            # one after the other: the end of the data must not meet a step on its way
            _, facts = tf.while_loop(goes_on, body, (0, facts), parallel_iterations=1)
            return facts, self._logs(step == self.train_step)

        def on_data(data):
            return one(data), self._logs(step == self.train_step)

        if not self.run_eagerly:
            many = tf.function(many, autograph=False, reduce_retracing=True)
            on_data = tf.function(on_data, autograph=False, reduce_retracing=True)

        is_traced = False  # `on_data`

        def function(iterator):
            nonlocal is_traced
            is_own = isinstance(iterator, (tf.data.Iterator, tf.distribute.DistributedIterator))
            batches = iterator
            if step == self.train_step and self._gradient_function is None:
                measures = is_own and self._may_measure(iterator)
                first = [next(iterator)] if measures else []
                self._choose_passes(*first)
                batches = itertools.chain(first, iterator)
                is_own = is_own and not measures
                is_traced = measures
            # a second graph of the same would cost seconds and memory
            by_batch = is_traced and count == 1 and isinstance(iterator, tf.data.Iterator)
            if is_own and not by_batch:
                before = self.step if count > 1 else None
                try:
                    facts, logs = many(iterator)
                except tf.errors.OutOfRangeError:
                    if before is None or self.step == before:
                        raise StopIteration from None
                    # the data ended within the group: what was done counts
                    facts, logs = self._no_facts(), self._logs(step == self.train_step)
                return self._checked(facts, logs)
            logs = None
            for data in itertools.islice(batches, count):
                facts, logs = on_data(data)
                logs = self._checked(facts, logs)
            if logs is None:
                raise StopIteration
            return logs

        return function

    def _no_facts(self):
        """What is known before a group of steps, in the form of what a step returns."""
        nothing = tf.constant(float("nan"))
        counters = {
            name: tf.identity(getattr(self, f"_{name}").value)
            for name in ("skipped_steps", "last_skipped_step")
        }
        return {**counters, "stop": tf.constant(0), "batch_loss": nothing, "gradient_norm": nothing}

    def _batch_to_build_on(self, iterator, data_batch):
        """Returns a batch for the metrics, whose variables are made before a graph is traced."""
        strategy = self.distribute_strategy
        dataset = queued_dataset(iterator)
        if data_batch is None and dataset is not None:
            data_batch = dataset[0]
        if data_batch is None:
            for _, _, batches in iterator:
                data_batch = next(batches, None)
                break
            if data_batch is None:
                raise ValueError("There must be at least one batch of data. Received: none")
        return keras.tree.map_structure(
            lambda x: None if x is None else strategy.experimental_local_results(x)[0], data_batch
        )
