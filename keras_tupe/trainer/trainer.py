"""Exact training of any model of this package, by `compile` and `fit`."""

import keras

from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.trainer._dropout_seeds import seed_generators
from keras_tupe.trainer._objective import Objective
from keras_tupe.trainer._pure_optimizer import make_pure
from keras_tupe.trainer.non_finite_error import NonFiniteError

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


class Trainer(_steps(), keras.Model):
    """Trains a model to the same weights, however the batch is spread.

    One replica, several replicas (`MirroredStrategy`), several workers
    (`MultiWorkerMirroredStrategy`) and micro-batches give the same update for the same batch, but
    for rounding: the loss is divided by the weights of the whole batch, gradients are summed over
    all replicas before they are clipped, and each part of a batch draws its own dropout masks. A
    strategy's model, trainer and `compile` are made within its scope, as in Keras.

    Equation, for a batch in parts r (of replicas and micro-batches; `Objective` has the sums):

        gradient = sum_r d(loss_sum_r) / sum_r count_r
        update   = optimizer(clip(gradient))

    Differs from plain `fit` of the model: Keras clips each replica's gradient before the sum, takes
    the mean of the replicas' means, draws the same dropout mask on all replicas, does not compile
    under a strategy, and does not train on several workers.

    A step whose loss or gradient is not finite changes no weight. It ends the training with
    `NonFiniteError`, or is skipped while there are at most `skip_bad_steps` of them. With a
    float16 policy losses are scaled, and an overflow only lowers the scale.

    Args:
        model: a built model with one output, such as a `TupeMaskedLM` or a `TupeTextClassifier`.
            It stays as it is, but for its weights, and is saved and used without the trainer.
        micro_batches: parts that each replica computes one after the other, to save memory; must
            divide its rows. Defaults to 1.
        xla: `"auto"`, `True` or `False`: whether XLA compiles forward and backward pass and
            update. `"auto"` compiles the update everywhere, and forward and backward pass on GPUs:
            on CPUs they gain nothing in float32 and lose in half precision. JAX compiles always.
        skip_bad_steps: bad steps to tolerate. Defaults to 0.
        train_metrics: whether the metrics of `compile` are computed in training too, which needs
            the outputs of the whole batch, or in evaluation only. Defaults to `True`.

    Attributes:
        step: number of steps done, skipped ones included.
        skipped_steps: number of those that were skipped because something was not finite.
        stop_requested: whether `request_stop()` has ended the training, on this worker or another.

    Raises:
        ValueError: for impossible arguments, a loss that is no mean, an optimizer that was used
            before, or a model with state that training changes, such as batch normalization.
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
        self, model, *, micro_batches=1, xla="auto", skip_bad_steps=0, train_metrics=True, **kwargs
    ):
        super().__init__(**kwargs)
        check_positive_integers(micro_batches=micro_batches)
        if xla not in ("auto", True, False):
            raise ValueError(f"`xla` must be 'auto', True or False. Received: xla={xla!r}")
        if not isinstance(model, keras.Model) or not model.built:
            raise ValueError(
                "`model` must be a built Keras model. Call it once, or make it with the functional "
                f"API. Received: model={model!r}"
            )
        self.model = model
        self.micro_batches = micro_batches
        self.xla = xla
        self.skip_bad_steps = skip_bad_steps
        self.train_metrics = train_metrics
        self._scales = any(
            getattr(layer, "compute_dtype", None) == "float16" for layer in model._flatten_layers()
        )
        self._step = self._counter("step", 0)
        self._skipped_steps = self._counter("skipped_steps", 0)
        self._last_skipped_step = self._counter("last_skipped_step", -1)
        self._good_steps = self._counter("good_steps", 0)
        self._loss_scale = self._counter("loss_scale", _FIRST_LOSS_SCALE, "float32")
        self._seed_states = seed_generators(model)
        self._make_stop_flag()
        self.stop_requested = False
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

    def call(self, inputs, training=None):
        return self.model(inputs, training=training)

    def compile(self, optimizer, loss="auto", *, metrics=None, weighted_metrics=None, **kwargs):
        """Says how to train.

        Args:
            optimizer: a new Keras optimizer, such as `adamw` makes, or its name.
            loss: a Keras loss that is a mean, or `"auto"`: the model's own default.
            metrics, weighted_metrics: as in Keras.
            **kwargs: `steps_per_execution`: steps per call of the host, which callbacks see as
                one; `run_eagerly`.
        """
        if loss == "auto":
            self.model.compile(optimizer="sgd", weighted_metrics=None)
            loss = self.model.loss
        self._objective = Objective(loss)
        optimizer = keras.optimizers.get(optimizer)
        if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
            optimizer = optimizer.inner_optimizer  # losses are scaled here
        make_pure(optimizer)
        optimizer.build(self.model.trainable_variables)
        super().compile(
            optimizer,
            loss=None,
            metrics=metrics,
            weighted_metrics=weighted_metrics,
            jit_compile=self._keras_compiles,
            auto_scale_loss=False,
            **kwargs,
        )

    @property
    def step(self):
        return int(keras.ops.convert_to_numpy(self._step))

    @property
    def skipped_steps(self):
        return int(keras.ops.convert_to_numpy(self._skipped_steps))

    @property
    def state_variables(self):
        """What a run goes on from: model, optimizer and counters; name -> Keras variable."""
        found = {f"model/{v.path}": v for v in self.model.variables}
        for index, variable in enumerate(self.optimizer.variables):
            found[f"optimizer/{index}/{variable.name}"] = variable
        for name in ("step", "skipped_steps", "last_skipped_step", "good_steps", "loss_scale"):
            found[f"trainer/{name}"] = getattr(self, f"_{name}")
        return found

    def _checked(self, function):
        """Wraps a train function: bad steps beyond the tolerated ones end the training."""

        def checked(*arguments):
            found = function(*arguments)
            logs = found[0] if isinstance(found, tuple) else found
            self.stop_requested = self.stop_requested or bool(logs.pop("stop", 0))
            skipped, last = int(logs["skipped_steps"]), logs.pop("last_skipped_step")
            if skipped > self.skip_bad_steps:
                raise NonFiniteError(int(last), skipped)
            self.stop_training = self.stop_training or self.stop_requested
            return found

        return checked

    def _refuse_other_state(self, scope, mapping):
        given = {id(variable): value for variable, value in mapping}
        seeds = {id(variable) for variable in self._seed_states}
        for variable in self.model.non_trainable_variables:
            value = scope.get_current_value(variable)
            if id(variable) not in seeds and value is not given.get(id(variable)):
                raise ValueError(
                    "The trainer knows models whose weights change by their gradients alone. "
                    f"Received: a model that changes {variable.path!r} in training"
                )
