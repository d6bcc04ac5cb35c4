"""Parts of training on pairs: reading, tokens, the plan, scores, and what is written."""

import itertools
import math

import numpy as np
import pytest
import sacrebleu
import seq2seq_cases as cases

from keras_tupe.data import Padded
from keras_tupe.models import BeamSearch, TupeSeq2SeqLM
from training.command.settings import parse
from training.finetune_seq2seq.data import Pairs, read_pairs, tokenized, tokens_of
from training.finetune_seq2seq.model import start_of
from training.finetune_seq2seq.plan import plan_of
from training.finetune_seq2seq.scores import score
from training.finetune_seq2seq.settings import Settings
from training.finetune_seq2seq.writer import Writer


def settings(**options):
    return Settings(**{"max_source_length": 12, "max_target_length": 12, **options})


def test_files_are_read_to_the_letter(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_bytes("\ufeffa b\tc\r\n \u2028d\te \u00e4".encode())
    pairs = read_pairs(path)
    assert (pairs.sources, pairs.targets) == (["a b", " \u2028d"], ["c", "e \u00e4"])
    assert pairs.digest() != Pairs("", ["a b"], ["c"]).digest()


@pytest.mark.parametrize("starts_with_end", [False, True])
def test_rows_are_those_of_the_preprocessor(starts_with_end):
    text = cases.model().preprocessor
    text.decoder_starts_with_end = starts_with_end
    sources = ["1 2 3", "4", "5 6", " ".join("7" * 10)]
    targets = ["3 2 1", "4 4 . 4", " ".join("9" * (11 - starts_with_end)), "8"]
    tokens = tokens_of(Pairs("pairs.tsv", sources, targets), text, cut_long=False)
    rows = Padded.of_pairs(tokens.sources, tokens.targets, pad_id=0, batch_size=4, seed=0)
    inputs, labels, weights = rows.evaluation_batch(0)
    order = rows.evaluation_rows(0)
    x, y, w = text({"encoder_text": sources, "decoder_text": targets})
    np.testing.assert_array_equal(weights, w.numpy()[order])
    # what has no weight stands behind all that has: the preprocessor lets the decoder read the end
    for name, expected in {**x, "labels": y}.items():
        counts = weights > 0 if name[:7] == "decoder" else np.ones((4, 12), bool)
        found = {**inputs, "labels": labels}[name]
        np.testing.assert_array_equal(found[counts], expected.numpy()[order][counts], name)


def test_long_texts_are_cut_as_the_preprocessor_cuts_and_counted():
    text = cases.model().preprocessor
    sources, targets = ["1 " * 30, "2"], ["2", "1 " * 30]
    tokens = tokens_of(Pairs("pairs.tsv", sources, targets), text, cut_long=True)
    assert tokens.num_cut == {"source": 1, "target": 1}
    x, y, _ = text({"encoder_text": sources, "decoder_text": targets})
    assert tokens.sources[0].tolist() == x["encoder_token_ids"].numpy()[0].tolist()
    assert tokens.targets[1][1:].tolist() == y.numpy()[1].tolist()


def test_a_vocabulary_of_both_columns_keeps_words_whole(tmp_path):
    pairs = Pairs("", ["der Hund bellt", "Hund"] * 3, ["the dog barks", "dog"] * 3)
    start = start_of(settings(vocabulary_size=400, position="rope"), pairs)
    words = start.preprocessor.tokenizer.get_vocabulary()
    assert {"der", "Hund", "bellt", "the", "dog", "barks"} <= set(words)
    assert "hund" not in words
    model = start.model(seed=1)
    assert model.backbone.vocabulary_size == len(words)
    again = start.model(seed=1)
    for ours, theirs in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("options", "steps", "warmup"),
    [({}, 70, 4), ({"epochs": 3}, 21, 1), ({"steps": 50, "warmup_steps": 0}, 50, 0)],
)
def test_steps_follow_epochs_and_the_warmup_follows_steps(options, steps, warmup):
    plan = plan_of(settings(**options), 7)
    assert (plan.steps, plan.warmup_steps) == (steps, warmup)
    validated = [step for step in range(steps + 1) if plan.is_validated(step)]
    assert validated[-1] == steps
    assert 0 not in validated
    assert len(validated) <= 26
    assert float(plan.schedule(steps)) == 0


def test_transformer_base_has_the_learning_rates_of_its_equation(tmp_path):
    files = [f"--{name}={tmp_path / 'pairs.tsv'}" for name in ("train", "valid")]
    cases.write_pairs(tmp_path / "pairs.tsv", 1)
    words = ["--config", "transformer-base", *files, "--out", str(tmp_path / "out")]
    named = parse(Settings, words)
    schedule = plan_of(named, 1000).schedule
    for step in (1, 4000, 100_000):
        expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert math.isclose(float(schedule(step - 1)), expected, rel_tol=1e-4)
    assert (named.steps, named.clip_norm, named.num_beams) == (100_000, None, 4)
    by_epochs = parse(Settings, [*words, "--epochs", "3"])
    assert (by_epochs.epochs, by_epochs.steps) == (3, None)


def test_scores_are_those_of_sacrebleu_and_exact_match_does_not_see_spaces():
    targets = ["The cat sat, then ran.", "It did not see the dog.", "Yes, it is so!"]
    written = ["The cat sat , then ran .", "it did not see the dog .", "Yes , it is so !"]
    found = score(targets, written, lowercase=False)
    assert math.isclose(found["exact_match"], 200 / 3)
    assert found["bleu"] == sacrebleu.corpus_bleu(written, [targets], force=True).score
    assert found["chrf"] == sacrebleu.corpus_chrf(written, [targets]).score
    assert "tok:13a" in found["signatures"]["bleu"]
    low, high = found["exact_match_interval"]
    assert 0 < low < found["exact_match"] < high < 100
    assert score(targets, written, lowercase=True)["exact_match"] == 100
    assert score(targets, targets, lowercase=False)["bleu"] > 99.99
    assert score(targets, ["[UNK]"] * 3, lowercase=True)["exact_match"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("num_beams", [1, 3])
def test_predictions_are_those_of_the_model_in_the_order_of_the_sources(num_beams):
    whole, model = cases.model(), cases.model()
    sources = [" ".join("123456789"[:n]) for n in (8, 1, 5, 2, 9, 3, 4)]
    whole.compile(sampler="greedy" if num_beams == 1 else BeamSearch(3, 0.6))
    expected = [" ".join(text.split()) for text in whole.generate(sources)]
    assert len(set(expected)) > 1
    alone = TupeSeq2SeqLM(model.backbone)
    tokens = tokenized(whole.preprocessor.tokenizer.op, sources, False)
    done = []
    given = settings(num_beams=num_beams, length_penalty=0.6, batch_size=3)
    found = Writer(alone, whole.preprocessor, given).texts(tokens, done.append)
    assert found == expected
    assert done == [3, 6, 7]


# Another right value of each setting, and whether it makes another run. A new one must be put here.
OTHER = {
    "size": "mini",
    "position": "t5",
    "position_options": '{"cls": "tied"}',
    "vocabulary_size": 100,
    "lowercase": True,
    "normalize_first": True,
    "initializer_range": 0.1,
    "normalize_embeddings": False,
    "scale_embeddings": True,
    "max_source_length": 64,
    "max_target_length": 64,
    "cut_long": True,
    "dropout": 0.2,
    "label_smoothing": 0.0,
    "learning_rate": 1e-4,
    "schedule": "inverse_sqrt",
    "steps": 7,
    "epochs": 3,
    "warmup_steps": 3,
    "batch_size": 8,
    "weight_decay": 0.0,
    "beta_1": 0.8,
    "beta_2": 0.999,
    "clip_norm": None,
    "num_beams": 2,
    "length_penalty": 0.6,
    "precision": "mixed_bfloat16",
    "micro_batches": 2,
}
NO_MATTER = {
    **dict.fromkeys(("preset", "train", "valid", "test", "out", "config"), "elsewhere"),
    "seeds": 3,
    "strategy": "one",
    "xla": "off",
    "remat": True,
    "deterministic": True,
    "valid_every": 3,
    "save_every": 3,
    "log_every": 3,
    "given": {"steps": "command line"},
}


def test_every_setting_is_thought_about():
    assert set(vars(Settings())) == {*OTHER, *NO_MATTER, "position_file"}
    plain = Settings().identity()
    for name, value in itertools.chain(OTHER.items(), NO_MATTER.items()):
        assert (Settings(**{name: value}).identity() != plain) == (name in OTHER), name
    afterwards = Settings(num_beams=3, length_penalty=0.5)
    assert afterwards.training_identity() == Settings().training_identity()
