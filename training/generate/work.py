"""Text after prompts, and targets of sources."""

import keras_hub

from keras_tupe import TupeBackbone, TupeCausalLM, TupeCausalLMPreprocessor, positions
from keras_tupe.models import BeamSearch
from training.presets.folder import is_seq2seq
from training.presets.load import load_preset, load_seq2seq


def generate(settings):
    """Prints what the model of a preset writes after prompts."""
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
    """Returns the `TupeCausalLM` of a preset, which may be that of a causal encoder."""
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
    """Returns the sampler that settings ask for: KerasHub's, but for the beams of pairs."""
    samplers, both = keras_hub.samplers, {"temperature": settings.temperature}
    drawn, beams = {**both, "seed": settings.seed}, BeamSearch if is_pairs else samplers.BeamSampler
    return {
        "greedy": lambda: samplers.GreedySampler(**both),
        "beam": lambda: beams(settings.k, **both),
        "top_k": lambda: samplers.TopKSampler(settings.k, **drawn),
        "top_p": lambda: samplers.TopPSampler(settings.p, **drawn),
        "random": lambda: samplers.RandomSampler(**drawn),
    }[settings.sampler]()
