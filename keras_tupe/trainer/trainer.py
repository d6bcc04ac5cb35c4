"""Exact training of any model of this package, by `compile` and `fit`."""

import keras

from keras_tupe._keras_private.layers import all_layers
from keras_tupe.tasks._language_model import may_be_scored
from keras_tupe.tasks._task import ChecksData, seed_generators
from keras_tupe.trainer._checks import check_arguments, check_outputs, refuse_layer_losses
from keras_tupe.trainer._replica_optimizer import make_for_replicas
from keras_tupe.trainer._saved import Saved
from keras_tupe.trainer._several_objectives import objective_of
from keras_tupe.trainer._shown import Shown

_FIRST_LOSS_SCALE = 2.0**8  # of a sum of losses; doubled and halved from there


class _NoSteps:
    """What there is on other backends."""

    def __init__(self, *args, **kwargs):
        raise ImportError(
            "The trainer runs on the backends tensorflow and jax. Set KERAS_BACKEND. "
            f"Received: {keras.backend.backend()}"
        )


def _steps():
    """The part that depends on the backend."""
    backend = keras.backend.backend()
    if backend == "tensorflow":
        from keras_tupe.trainer._tensorflow_steps import TensorFlowSteps

        return TensorFlowSteps
    if backend == "jax":
        from keras_tupe.trainer._jax_steps import JaxSteps

        return JaxSteps
    return _NoSteps


@keras.saving.register_keras_serializable(package="keras_tupe")
class Trainer(Shown, Saved, ChecksData, _steps(), keras.Model):
    """Trains a model to the same weights, however the batch is spread.

    One replica, several replicas (`MirroredStrategy`), several workers
    (`MultiWorkerMirroredStrategy`) and micro-batches give the same update for the same batch, but
    for rounding: the loss is divided by the weights of the whole batch, gradients are summed over
    all replicas before they are clipped, and each part of a batch draws its own dropout masks. A
    strategy's model, trainer and `compile` are made within its scope, as in Keras.

    Equation, for a batch in parts r (of replicas and micro-batches):

        gradient = sum_r d(loss_sum_r) / sum_r count_r
        update   = optimizer(clip(gradient))

    Several losses k, a dictionary by the names of the model's outputs, are each divided by the
    weights of its own in the whole batch:

        loss = sum_k loss_weight_k (sum_r loss_sum_kr / sum_r count_kr)

    Not seen: the preprocessor of a KerasHub task (map the data with it), and draws from Keras's
    global seed generator, which stay as they are.

    Differs from plain `fit` of the model: Keras clips each replica's gradient before the sum, takes
    the mean of the replicas' means, draws the same dropout mask on all replicas, does not compile
    under a strategy, and does not train on several workers.

    A step whose loss or gradient is not finite changes no weight. It ends the training with
    `NonFiniteError`, or is skipped while there are at most `skip_bad_steps` of them. With a
    float16 policy losses are scaled, and an overflow only lowers the scale.

    Args:
        model: a built model with one output, such as a `TupeMaskedLM` or a `TupeTextClassifier`,
            or with a dictionary of outputs that each have a loss. It stays as it is, but for its
            weights, and is saved and used without the trainer. A `.keras` file of the trainer holds
            the model and all that its training goes on from.
        micro_batches: parts that each replica computes one after the other, to save memory; must
            divide its rows. Defaults to 1.
        xla: `"auto"`, `True` or `False`: whether XLA compiles forward and backward pass. `"auto"`
            compiles them on GPUs. On CPUs it measures both ways for about a second on a quarter of
            the first batch of a `fit` of more than five minutes whose batches have one known
            shape, and compiles no other. JAX compiles always.
        planned_steps: steps of the whole training, from which `"auto"` knows how long it will be.
            Defaults to those of the first `fit`.
        remat: whether the backward pass computes each encoder block again instead of keeping what
            the forward pass computed in it: memory for about a third more time. The masks of
            dropout and the gradients are the same. Defaults to `False`.
        skip_bad_steps: bad steps to tolerate. Defaults to 0.
        train_metrics: whether the metrics of `compile` are computed in training too, which needs
            the outputs of the whole batch, or in evaluation only. Defaults to `True`.
        **kwargs: `name` and the other arguments of `keras.Model`.

    Attributes:
        step: number of steps done, skipped ones included.
        skipped_steps: number of those that were skipped because something was not finite.
        last_step: `batch_loss`, `gradient_norm` (before it is clipped) and `skipped_steps` after
            the last step, a dictionary.
        compiles_passes: whether XLA compiles forward and backward pass; `None` before the first
            step, and on JAX.
        pass_seconds: tuple of what `"auto"` measured: seconds of forward and backward pass as they
            are, and compiled; of a whole batch, in proportion to the rows.
        stop_requested: whether `request_stop()` has ended the training, on this worker or another.

    Raises:
        ValueError: for impossible arguments, a loss that is no mean, an optimizer that was used
            before, parts made in scopes of different strategies, or a model with losses of its
            layers (regularizers) or state that training changes (batch normalization).
        NonFiniteError: from `fit`.

    Example:
        >>> import numpy as np
        >>> from keras_tupe.trainer import adamw
        >>> model = keras_tupe.TupeTextClassifier(keras_tupe.TupeBackbone(50, 1, 2, 16, 32), 2)
        >>> trainer = Trainer(model, micro_batches=2)
        >>> trainer.compile(adamw(1e-3), weighted_metrics=["accuracy"])
        >>> ids = np.random.default_rng(0).integers(5, 50, (8, 6), "int32")
        >>> inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
        >>> history = trainer.fit(inputs, ids[:, 0] % 2, batch_size=4, verbose=0)
        >>> trainer.step
        2
    """

    def __init__(
        self,
        model,
        *,
        micro_batches=1,
        xla="auto",
        planned_steps=None,
        remat=False,
        skip_bad_steps=0,
        train_metrics=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_arguments(model, micro_batches, xla, planned_steps, remat, skip_bad_steps)
        self.model = model
        self.micro_batches = micro_batches
        self.xla = xla
        self.planned_steps = planned_steps
        self.remat = remat
        self.skip_bad_steps = skip_bad_steps
        self.train_metrics = train_metrics
        self._scales = any(
            getattr(layer, "compute_dtype", None) == "float16" for layer in all_layers(model)
        )
        self._step = self._counter("step", 0)
        self._skipped_steps = self._counter("skipped_steps", 0)
        self._last_skipped_step = self._counter("last_skipped_step", -1)
        self._good_steps = self._counter("good_steps", 0)
        self._loss_scale = self._counter("loss_scale", _FIRST_LOSS_SCALE, "float32")
        self._seed_states = seed_generators(model)
        self._make_stop_flag()
        self._steps_ahead = planned_steps or 0
        self.compiles_passes = None
        self.pass_seconds = ()
        self.stop_requested = False
        self._seen_skipped = None
        self.last_step = {}
        self.built = True

    def _counter(self, name, value, dtype="int32"):
        return self.add_weight(
            shape=(),
            initializer=keras.initializers.Constant(value),
            dtype=dtype,
            trainable=False,
            autocast=False,
            name=name,
        )

    def _task(self):
        return self.model

    def call(self, inputs, training=None, **kwargs):
        return self.model(inputs, training=training, **kwargs)

    def compile(
        self,
        optimizer,
        loss="auto",
        *,
        loss_weights=None,
        metrics=None,
        weighted_metrics=None,
        **kwargs,
    ):
        """Says how to train.

        Args:
            optimizer: a new Keras optimizer, such as `adamw` makes, or its name.
            loss: a Keras loss that is a mean, or a dictionary of such by the names of the model's
                outputs; or `"auto"`: the model's own default.
            loss_weights: dictionary: name of an output -> factor of its loss, 1 where it is not
                named. For `loss="auto"` the model's own default.
            metrics, weighted_metrics: as in Keras.
            **kwargs: `steps_per_execution`: steps per call of the host, which callbacks see as
                one; `run_eagerly`.
        """
        self._check_scope()
        refuse_layer_losses(self.model)
        if isinstance(loss, str) and loss == "auto":
            if getattr(self.model, "loss", None) is None and not self.model.compiled:
                self.model.compile()  # tasks know their own
            loss = getattr(self.model, "loss", None)
            if loss_weights is None:
                loss_weights = getattr(self.model, "loss_weights", None)
        check_outputs(self.model, loss)
        self._is_scored = may_be_scored(self.model, loss, metrics, weighted_metrics)
        self._objective = objective_of(loss, loss_weights, self._is_scored)
        self._loss, self._loss_weights = loss, loss_weights
        self._loss_trackers = [
            keras.metrics.Mean(name=f"{name}_loss") for name in self._objective.names
        ]
        optimizer = keras.optimizers.get(optimizer)
        if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
            optimizer = optimizer.inner_optimizer  # losses are scaled here
        make_for_replicas(optimizer)
        optimizer.build(self.model.trainable_variables)
        super().compile(
            optimizer,
            loss=None,
            metrics=metrics,
            weighted_metrics=weighted_metrics,
            jit_compile=self._keras_compiles and not kwargs.get("run_eagerly", False),
            auto_scale_loss=False,
            **kwargs,
        )

    def fit(self, *args, **kwargs):
        self._seen_skipped = self.skipped_steps
        self.stop_requested = False
        self._look_ahead(args, kwargs)
        before = self.step
        history = super().fit(*args, **kwargs)
        if history.epoch and self.step == before:
            raise ValueError("There must be at least one batch of data. Received: none")
        if self.stop_requested:  # it was honored; the next `fit` trains
            self._set_stop_flag(0)
        return history

    @property
    def step(self):
        return int(keras.ops.convert_to_numpy(self._step))

    @property
    def skipped_steps(self):
        return int(keras.ops.convert_to_numpy(self._skipped_steps))
