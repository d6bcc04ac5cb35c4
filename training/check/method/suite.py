"""All checks of a method, in order."""

import functools
import traceback

from keras_tupe import positions
from training.check import outcome
from training.check.method import (
    encoder,
    equation,
    gradients,
    order,
    padding,
    patterns,
    precision,
    pruning,
    record,
    saving,
    segments,
    whole,
)
from training.check.method.cases import Case, cases_of, encoder_cases

POLICIES = ("mixed_float16", "mixed_bfloat16", "float16", "float64")


def checks(name, quick=False):
    """Returns the checks of a method.

    Args:
        name: its name.
        quick: whether to return the few alone that find most, in a second or two. Defaults to
            `False`.

    Returns:
        List of `Check`, cheap ones and those that explain others first.
    """
    method, every = positions.get(name), tuple(cases_of(name))
    plain = (Case(name),)
    in_encoder = tuple(encoder_cases(every))
    with_memory = tuple(segments.with_memory(every))
    found = [
        Check("the record is complete", record.check_record, plain),
        Check("encoder: the equation", whole.check_equation, plain),
        Check("encoder: padding", whole.check_padding, plain),
        Check("encoder: order and shift", whole.check_order, plain),
        Check("encoder: half precision", whole.check_half_precision, plain),
        Check(
            "encoder: the future",
            whole.check_future,
            () if "causal" in method.refused_patterns else plain,
            reason="the record refuses the pattern 'causal'",
        ),
    ]
    if quick:
        more = Check("equation in float64, 1e-12", equation.check_parity, plain)
        of_segments = Check("segments with a memory", segments.check_segments, with_memory)
        return [*found, more, of_segments]
    cls = tuple(case for case in every if "cls" in method.options)
    far = [Case(name, (("cls", "untied"), ("k", k))) for k in (3, 70) if "k" in method.options]
    far = [case for case in far if "cls" in method.options]
    derived = tuple(dict.fromkeys((*plain, gradients.derivative_case(name, gradients.SHORT))))
    tied = tuple(case for case in every if case.resolved().get("cls", "tied") == "tied")
    return [
        *found,
        Check("functions of the record", record.check_functions, every),
        Check("unknown options are refused", record.check_unknown_options, plain),
        Check("oracle: NumPy alone", equation.check_oracle_is_independent, every),
        Check("oracle: the same each time", equation.check_oracle_is_a_function, every),
        Check("equation in float64, 1e-12", equation.check_parity, every),
        Check("equation with padding", functools.partial(equation.check_parity, padding=1), every),
        Check(
            "equation in float32, 2e-5",
            functools.partial(equation.check_parity, dtype="float32"),
            plain,
        ),
        Check("equation at 139 tokens", equation.check_far_distances, (*plain, *far)),
        Check("equation in an encoder", equation.check_whole_encoder, in_encoder),
        Check("attention patterns", patterns.check_patterns, plain),
        Check("causal: the future is not seen", patterns.check_future, plain),
        Check(
            "segments with a memory",
            segments.check_segments,
            with_memory,
            reason="for methods whose `refused_memory` allows one",
        ),
        Check("padding: how much", padding.check_more_padding, in_encoder),
        Check("padding: in float32", padding.check_more_padding_in_float32, plain),
        Check(
            "bias of distance alone",
            order.check_bias_of_distance,
            tied if method.bias and method.shift_invariant else (),
            reason="for shift-invariant methods with a bias",
        ),
        Check(
            "[CLS] in the bias",
            order.check_cls_of_bias,
            cls if method.bias else (),
            reason="for methods with a bias and the option 'cls'",
        ),
        Check(
            "[CLS] in the logits",
            order.check_cls_of_logits,
            () if method.embed else cls,
            reason="for methods with the option 'cls' that add nothing to embeddings",
        ),
        Check(
            "starts as without positions",
            order.check_start,
            plain if method.starts_as_none else (),
            reason="the record says starts_as_none=False",
        ),
        Check("computed once for all blocks", encoder.check_work_is_done_once, plain),
        Check(
            "without some heads",
            pruning.check_pruned_heads,
            in_encoder if method.prunes_heads else (),
            reason="the record says prunes_heads=False",
        ),
        Check("length limit", encoder.check_length_limit, in_encoder),
        Check("the same seed, the same encoder", encoder.check_determinism, plain),
        *(
            Check(
                f"logits under {policy}",
                functools.partial(precision.check_dtypes, policy=policy),
                plain,
            )
            for policy in POLICIES
        ),
        *(
            Check(
                f"nothing rounded, {policy}",
                functools.partial(precision.check_half_precision, policy=policy),
                in_encoder,
            )
            for policy in POLICIES[:2]
        ),
        Check("weights without a gradient", gradients.check_dead_weights, every, floatx="float64"),
        Check("gradients, numerically", gradients.check_derivatives, derived, tensorflow=True),
        Check("training steps", saving.check_training_step, plain),
        Check("configs make it again", saving.check_layers_configs, every),
        Check("config of an encoder", saving.check_config, in_encoder),
        Check(
            ".keras and weights files", saving.in_new_folder(saving.check_keras_file), in_encoder
        ),
        Check("preset", saving.in_new_folder(saving.check_preset), plain),
        Check("graph of every length", encoder.check_one_graph, in_encoder, True, "float64"),
        Check("SavedModel", saving.in_new_folder(saving.check_saved_model), plain, True),
    ]


def _said(case, error):
    """Returns what an error says in one line, and where in the method's file it was raised."""
    options = ", ".join(f"{key}={value!r}" for key, value in case.options)
    options, text = f"With {options}: " if options else "", " ".join(str(error).split())
    if isinstance(error, AssertionError) and text:
        return f"{options}{text}"
    file = getattr(case.method.logits_oracle, "__code__", None)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if file is not None and frame.filename == file.co_filename
    ]
    where = f" (line {lines[-1]} of the file)" if lines else ""
    return f"{options}{type(error).__name__}: {text}{where}"


Check = functools.partial(outcome.Check, said=_said)
