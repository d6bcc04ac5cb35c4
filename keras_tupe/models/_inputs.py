"""Checks of what a task is made of."""

import keras


def input_names(model):
    """Returns the names of a model's inputs, and of those that are no integers, as a tuple."""
    floats = [tensor.name for tensor in model.inputs if "float" in tensor.dtype]
    return [tensor.name for tensor in model.inputs], floats


def check_optimizer(optimizer, model):
    """Refuses `global_clipnorm` on TensorFlow where Keras could not clip all gradients together."""
    if keras.backend.backend() != "tensorflow":
        return
    # under a pure half-precision policy those of some position terms stay in float32
    dtypes = sorted({weight.dtype for weight in model.trainable_variables})
    if getattr(optimizer, "global_clipnorm", None) and len(dtypes) > 1:
        raise ValueError(
            "Keras clips gradients by their global norm only if all weights have one dtype. Use a "
            "mixed precision policy such as 'mixed_bfloat16', `keras_tupe.trainer.Trainer`, or an "
            f"optimizer without `global_clipnorm`. Received: weights in {' and '.join(dtypes)}"
        )


def check_preprocessor(preprocessor, backbone):
    """Refuses a preprocessor, if there is one, that makes what a backbone does not take."""
    if preprocessor is None:
        return
    length, limit = preprocessor.sequence_length, backbone.max_sequence_length
    if backbone.has_length_limit and length is not None and length > limit:
        raise ValueError(
            f"The preprocessor's rows must fit into the backbone's max_sequence_length={limit}. "
            f"Make it with `sequence_length={limit}` or less. Received: sequence_length={length}"
        )
    if bool(preprocessor.segments) != bool(backbone.num_segments):
        raise ValueError(
            "A preprocessor makes segment ids (`segments=True`) for a backbone with `num_segments` "
            f"> 0, and for no other. Received: segments={preprocessor.segments}, "
            f"num_segments={backbone.num_segments}"
        )
    if backbone.position_options.get("cls") == "untied" and not preprocessor.add_start_token:
        raise ValueError(
            f"The backbone's method {backbone.position!r} frees the first token from positions, "
            "which must be [CLS]. Make the preprocessor with `add_start_token=True`, or the "
            "backbone with position_options={'cls': 'tied'}. Received: add_start_token=False"
        )
    tokenizer = preprocessor.tokenizer  # a larger id would go unseen inside a compiled graph
    if tokenizer.has_vocabulary and tokenizer.vocabulary_size() > backbone.vocabulary_size:
        raise ValueError(
            "The tokenizer's vocabulary must not be larger than the backbone's, which has "
            f"{backbone.vocabulary_size} token vectors. Received: a tokenizer of "
            f"{tokenizer.vocabulary_size()} pieces"
        )
