"""Text after prompts, and targets of sources."""

import keras_hub

from keras_tupe import TupeBackbone, TupeCausalLM, TupeCausalLMPreprocessor, positions
from keras_tupe.models import BeamSearch
from training.presets.checks import is_seq2seq
from training.presets.load import load_preset, load_seq2seq


def generate(settings):
    """Prints what the model of a preset writes after prompts.

    Args:
        settings: a `Settings` without problems.

    Raises:
        ValueError: if the preset is none of a model that writes, or a prompt does not fit.
    """
    if settings.position_file:
        positions.load_file(settings.position_file)
    is_pairs = is_seq2seq(settings.preset)
    model = load_seq2seq(settings.preset) if is_pairs else causal_lm(settings.preset)
    model.compile(sampler=sampler_of(settings, is_pairs))
    prompts = [prompt for prompt in settings.prompt for _ in range(settings.num)]
    texts = model.generate(prompts, max_length=settings.max_length)
    for number, (prompt, text) in enumerate(zip(prompts, texts, strict=True)):
        if number % settings.num == 0:
            print(f"{'' if number == 0 else chr(10)}{prompt}", flush=True)
        print(f"    {text}")


def causal_lm(folder):
    """Returns the `TupeCausalLM` of a preset, with its preprocessor.

    Args:
        folder: preset of a causal language model, or of a causal encoder with a tokenizer.

    Raises:
        ValueError: if it is none, or has no tokenizer.
    """
    model, text = load_preset(folder)
    if isinstance(model, TupeBackbone):
        model = TupeCausalLM(model)
    if not isinstance(model, TupeCausalLM):
        raise ValueError(
            "The preset must be that of a causal language model, which `keras-tupe pretrain "
            f"--objective causal_lm` trains. Received: {folder!r}, of a {type(model).__name__}"
        )
    if text is None:
        raise ValueError(
            "The preset must have a tokenizer, so that it can read prompts. Save the model with "
            f"its preprocessor. Received: {folder!r}"
        )
    if not isinstance(text, TupeCausalLMPreprocessor):
        tokenizer = getattr(text, "tokenizer", text)
        text = TupeCausalLMPreprocessor(tokenizer, model.backbone.max_sequence_length)
    model.preprocessor = text
    return model


def sampler_of(settings, is_pairs=False):
    """Returns the sampler that settings ask for: KerasHub's, but for the beams of pairs.

    Args:
        settings: a `Settings` without problems.
        is_pairs: whether targets are written.
    """
    samplers, both = keras_hub.samplers, {"temperature": settings.temperature}
    if settings.sampler == "greedy":
        return samplers.GreedySampler(**both)
    if settings.sampler == "beam" and is_pairs:
        return BeamSearch(settings.k, **both)
    if settings.sampler == "beam":
        return samplers.BeamSampler(settings.k, **both)
    drawn = {**both, "seed": settings.seed}
    if settings.sampler == "top_k":
        return samplers.TopKSampler(settings.k, **drawn)
    if settings.sampler == "top_p":
        return samplers.TopPSampler(settings.p, **drawn)
    return samplers.RandomSampler(**drawn)
