"""An encoder from a SavedModel, as a layer."""

import contextlib
import os

import keras

from keras_tupe._keras_private.files import in_safe_mode
from keras_tupe._keras_private.layers import in_symbolic_scope, track_variable
from keras_tupe.models._backbone_config import new_backbone
from keras_tupe.models.saved.folder import load_folder, path_as_text
from keras_tupe.models.saved.inputs import check_saved_inputs
from keras_tupe.models.saved.signature import IDS, POSITIONS, output_spec, read_signature


@keras.saving.register_keras_serializable(package="keras_tupe")
class SavedEncoder(keras.layers.Layer):
    """A text encoder from a SavedModel, to use or to fine-tune inside a Keras 3 model.

    It loads what `keras_tupe.export.export_encoder` writes, and any other encoder that follows
    TF Hub's interface for text. It is for Keras 3 what `hub.KerasLayer` is for tf_keras. The
    code that made the encoder is not needed; TensorFlow is (`KERAS_BACKEND=tensorflow`).

    A `.keras` file of a model with this layer holds the layer's weights, as they were trained, and
    the path of the SavedModel, which must still be there when the file is loaded: the graph is in
    it. A SavedModel runs whatever is in it as soon as it is loaded, so Keras loads such a file only
    with `safe_mode=False`. Under a `tf.distribute` strategy make the layer inside its scope; all
    replicas then draw the same dropout masks.

    Differences from `hub.KerasLayer`: `input_type_ids` may be left out, integers of any width
    are cast to what the encoder takes, and inputs are checked. As there, a frozen layer runs
    without dropout, and regularization losses count only while the layer is trainable.

    Args:
        path: folder of the SavedModel.
        trainable: whether the weights are trained. Defaults to `True`.
        mlm: whether to run the SavedModel's masked language model (its `mlm`), which also
            predicts the tokens at `masked_lm_positions`. Defaults to `False`.
        **kwargs: `name` and `dtype`. The SavedModel computes as it was exported, whatever the
            dtype policy is.

    Call arguments:
        inputs: dictionary of integers `(batch, length)`: `input_word_ids`, `input_mask` (1 = real
            token) and, unless all are 0, `input_type_ids`. With `mlm` also `masked_lm_positions`
            `(batch, predictions)`, in [0, length).
        training: Python boolean, whether dropout is on.

    Returns:
        Dictionary as the SavedModel returns it: `sequence_output` `(batch, length, hidden_dim)`
        and `pooled_output` `(batch, hidden_dim)`; usually `default`, equal to `pooled_output`; with
        `mlm` also `mlm_logits` `(batch, predictions, vocabulary_size)`. float32 in our exports.

    Masking: by `input_mask`.

    Raises:
        ValueError: if there is no SavedModel, it is not an encoder, the backend is not
            TensorFlow; for inputs that are missing, do not fit, or are longer than the
            encoder's tables (where the length is known).
        TypeError: if `path` is no path, or the inputs are not integers.

    Example:
        >>> import tempfile
        >>> from keras_tupe.export import export_encoder
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export_encoder(keras_tupe.TupeBackbone(100, 1, 2, 16, 32), folder)
        ...     encoder = SavedEncoder(folder)
        >>> ids = np.array([[2, 7, 9, 3]])
        >>> outputs = encoder({"input_word_ids": ids, "input_mask": np.ones_like(ids)})
        >>> tuple(outputs["pooled_output"].shape)
        (1, 16)

    References:
        TF Hub, Common SavedModel APIs for Text; Reusable SavedModels.
    """

    def __init__(self, path, trainable=True, mlm=False, **kwargs):
        if keras.backend.backend() != "tensorflow":
            raise ValueError(
                "`SavedEncoder` runs a TensorFlow graph. Set KERAS_BACKEND=tensorflow before Keras "
                f"is imported. Received: backend={keras.backend.backend()!r}"
            )
        super().__init__(trainable=trainable, **kwargs)
        self.saved_model_path = path_as_text(path)  # `path` is a layer's place in the model
        self.mlm = mlm
        self._loaded = load_folder(self.saved_model_path)  # its functions die with it
        self._encoder = self._loaded
        if mlm:
            self._encoder = getattr(self._loaded, "mlm", None)
            if self._encoder is None:
                raise ValueError(
                    "The SavedModel has no masked language model. Export a `TupeMaskedLM`, or "
                    f"leave out `mlm=True`. Received: path={self.saved_model_path!r}"
                )
        self._signature = read_signature(self._encoder, self.saved_model_path, mlm)
        self._track_saved_variables()
        self.built = True

    def _track_saved_variables(self):
        """Makes Keras variables that share the memory of the SavedModel's own."""
        trainable = {id(value) for value in getattr(self._encoder, "trainable_variables", ())}
        names = set()
        for value in getattr(self._encoder, "variables", ()):
            name = value.name.split(":")[0]  # optimizers refuse the ":0"
            if name in names:
                name = f"{name}_{len(names)}"
            names.add(name)
            with contextlib.ExitStack() as stack:
                *scopes, last = (self.name, *name.split("/"))
                for scope in scopes:
                    stack.enter_context(keras.name_scope(scope))
                variable = keras.Variable(
                    value, dtype=value.dtype.name, trainable=id(value) in trainable, name=last
                )
            track_variable(self, variable)

    def call(self, inputs, training=None):
        import tensorflow as tf

        self._check(inputs)
        values = {
            name: tf.cast(inputs[name] if name in inputs else tf.zeros_like(inputs[IDS]), dtype)
            for name, dtype in self._signature.inputs.items()
        }
        flag = {"training": bool(training) and self.trainable}
        outputs = self._encoder(values, **(flag if self._signature.takes_training else {}))
        if self.trainable:
            for loss in getattr(self._encoder, "regularization_losses", ()):
                self.add_loss(loss())
        return outputs

    def compute_output_spec(self, inputs, training=None):
        self._check(inputs)
        rows = tuple(inputs[IDS].shape)
        slots = tuple(inputs[POSITIONS].shape) if self.mlm else None
        return output_spec(self._signature, rows, slots)

    def _check(self, inputs):
        # under a strategy Keras builds models on the mean of the replicas' ids, fractions
        check_saved_inputs(inputs, self._signature, fractions=in_symbolic_scope())

    def to_backbone(self):
        """Returns a `TupeBackbone` with the weights that the layer has now, to export it again.

        A masked language model's head is not part of it.

        Raises:
            ValueError: if the SavedModel was not written by `keras_tupe.export.export_encoder`, or
                its positional method is not known here.
        """
        if self._signature.facts is None:
            raise ValueError(
                "Only the architecture of encoders that `keras_tupe.export.export_encoder` wrote "
                "is known. Save the model with this layer as a `.keras` file instead. Received: "
                f"path={self.saved_model_path!r}"
            )
        backbone = new_backbone(self._signature.facts)
        values = list(self._loaded.variables)
        if [tuple(v.shape) for v in values] != [tuple(v.shape) for v in backbone.variables]:
            raise ValueError(
                "The SavedModel and the config beside it are of different encoders. Export it "
                f"again. Received: path={self.saved_model_path!r}"
            )
        for variable, value in zip(backbone.variables, values, strict=True):
            variable.assign(value)
        return backbone

    def get_config(self):
        return {**super().get_config(), "path": self.saved_model_path, "mlm": self.mlm}

    @classmethod
    def from_config(cls, config):
        path = config["path"]
        # None outside of Keras's loading, where code names this class and not a file
        if in_safe_mode():
            raise ValueError(
                "The file asks for a SavedModel from a path that it names, and a SavedModel runs "
                "whatever is in it as soon as it is loaded. If you trust both, load the file with "
                "`safe_mode=False`, or after `keras.config.enable_unsafe_deserialization()`. "
                f"Received: path={path!r}"
            )
        if not os.path.isdir(path) and "://" not in path:
            raise ValueError(
                "The SavedModel that a `SavedEncoder` was made from is gone; the file holds only "
                "its weights. Put the folder back, or build the model again with "
                "`SavedEncoder(new_path)` and call its `load_weights` with the file. Received: "
                f"path={path!r}, looked for at {os.path.abspath(path)!r}"
            )
        return cls(**config)
