"""What files keep of a trainer: its configuration, and all that a run goes on from."""

import keras

from keras_tupe.tasks._task import compile_from, with_progress
from keras_tupe.trainer._replica_optimizer import keras_copy


class Saved:
    """The part of a trainer that says what is saved; see `Trainer`."""

    def get_config(self):
        names = (
            *("micro_batches", "xla", "planned_steps", "remat"),
            *("skip_bad_steps", "train_metrics"),
        )
        config = super().get_config()
        config.pop("dtype", None)  # the model's counts
        return {
            **config,
            "model": keras.saving.serialize_keras_object(self.model),
            **{name: getattr(self, name) for name in names},
        }

    @classmethod
    def from_config(cls, config):
        model = keras.saving.deserialize_keras_object(config["model"])
        return cls(**{**config, "model": model})

    def get_compile_config(self):
        config = super().get_compile_config()
        for name in ("loss_weights", "jit_compile"):
            config.pop(name, None)  # the trainer decides
        if config:
            config["optimizer"] = keras.saving.serialize_keras_object(keras_copy(self.optimizer))
            config["loss"] = keras.saving.serialize_keras_object(self._loss)
            if self._loss_weights is not None:
                config["loss_weights"] = dict(self._loss_weights)
        return with_progress(self, config)

    def compile_from_config(self, config):
        compile_from(self, config)

    @property
    def state_variables(self):
        """All that a run goes on from: model, optimizer and counters; name -> Keras variable."""
        seeds = {id(v): index for index, v in enumerate(self._seed_states)}
        found, owners = {}, {}
        for part, model in getattr(self.model, "parts", {}).items():  # that have the same names
            owners |= {id(variable): f"{part}/" for variable in model.variables}
        for variable in self.model.variables:
            # Keras numbers generators over the whole process
            number = seeds.get(id(variable))
            path = f"{owners.get(id(variable), '')}{variable.path}"
            name = f"model/{path}" if number is None else f"model/seed/{number}"
            if name in found:
                raise ValueError(
                    "The weights of a model must have different names. Name its layers. Received: "
                    f"{name!r} twice"
                )
            found[name] = variable
        for index, variable in enumerate(self.optimizer.variables):
            found[f"optimizer/{index}/{variable.name}"] = variable
        for name in ("step", "skipped_steps", "last_skipped_step", "good_steps", "loss_scale"):
            found[f"trainer/{name}"] = getattr(self, f"_{name}")
        return found
