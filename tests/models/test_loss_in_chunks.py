"""A causal model is trained and tested without its logits, to the numbers that they would give."""

import keras
import numpy as np
import pytest

from keras_tupe import TupeBackbone
from keras_tupe.models import TupeCausalLM, _loss_in_chunks
from keras_tupe.trainer import Trainer

LENGTH, VOCABULARY = 7, 23

# no part of language modeling
pytestmark = pytest.mark.filterwarnings("ignore:Gradients do not exist for variables .'pooled")


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    whole = _loss_in_chunks.token_losses
    monkeypatch.setattr(
        _loss_in_chunks, "token_losses", lambda *args, **kwargs: whole(*args, chunk=5, **kwargs)
    )


def new_model(dtype="float64"):
    keras.utils.set_random_seed(3)
    backbone = TupeBackbone(
        VOCABULARY, 1, 2, 8, 12, attention_pattern="causal", dropout=0.0, dtype=dtype
    )
    return TupeCausalLM(backbone)


def batch(rows=6):
    random = np.random.default_rng(5)
    tokens = random.integers(0, VOCABULARY, (rows, LENGTH + 1), "int32")
    inputs = {"token_ids": tokens[:, :-1], "padding_mask": np.ones((rows, LENGTH), "int32")}
    return inputs, tokens[:, 1:], random.random((rows, LENGTH))


KIND = {"from_logits": True, "reduction": "mean_with_sample_weight", "dtype": "float64"}


class OtherLoss(keras.losses.SparseCategoricalCrossentropy):
    """The same loss, of a class that needs logits."""


def cross_entropy():
    return keras.losses.SparseCategoricalCrossentropy(**KIND)


def other_loss():
    return OtherLoss(**KIND)


def trained(loss, **kwargs):
    """Weights after three steps of `fit`, and what they and the evaluation said."""
    model = new_model()
    seen = []
    call = type(model.backbone.token_embedding).call

    def watched(self, inputs, reverse=False):
        if reverse:
            seen.append(tuple(inputs.shape))
        return call(self, inputs, reverse)

    with pytest.MonkeyPatch.context() as patch:
        optimizer = keras.optimizers.SGD(0.5)
        model.compile(optimizer, loss, weighted_metrics=["accuracy"], **kwargs)
        inputs, labels, weights = batch()
        model.train_on_batch(inputs, labels, weights)  # its build has symbols for the logits
        patch.setattr(type(model.backbone.token_embedding), "call", watched)
        history = model.fit(
            inputs, labels, sample_weight=weights, batch_size=3, shuffle=False, verbose=0
        ).history
        history |= model.evaluate(inputs, labels, sample_weight=weights, verbose=0, return_dict=1)
    return [np.array(w) for w in model.get_weights()], history, seen


@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_fit_and_evaluate_are_those_of_all_logits(jit_compile):
    ours, history, seen = trained(cross_entropy(), jit_compile=jit_compile)
    theirs, wanted, others = trained(other_loss(), jit_compile=jit_compile)
    assert others
    assert not seen, "logits were computed"
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    assert history.keys() == wanted.keys()
    for name, values in history.items():
        np.testing.assert_allclose(values, wanted[name], rtol=1e-6, err_msg=name)


def test_other_metrics_get_logits():
    model = new_model("float32")
    model.compile("sgd", metrics=[keras.metrics.SparseTopKCategoricalAccuracy(2)])
    inputs, labels, weights = batch()
    model.train_on_batch(inputs, labels, weights)
    assert not model._is_scored


def test_the_model_itself_answers_with_logits():
    model = new_model()
    model.compile()
    inputs, *_ = batch()
    for training in (False, True):
        assert tuple(model(inputs, training=training).shape) == (6, LENGTH, VOCABULARY)


@pytest.mark.parametrize("micro_batches", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_the_trainer_gives_the_update_of_all_logits(micro_batches):
    found = []
    for loss in (cross_entropy(), other_loss()):
        trainer = Trainer(new_model(), micro_batches=micro_batches, xla=False)
        trainer.compile(keras.optimizers.SGD(0.5), loss, weighted_metrics=["accuracy"])
        inputs, labels, weights = batch()
        history = trainer.fit(inputs, labels, sample_weight=weights, batch_size=6, verbose=0)
        scores = trainer.evaluate(
            inputs, labels, sample_weight=weights, batch_size=6, verbose=0, return_dict=True
        )
        getattr(trainer, "jax_state_sync", lambda: None)()
        values = [np.array(w) for w in trainer.model.get_weights()]
        found.append((trainer._is_scored, values, {**history.history, **scores}))
    (ours, *ours_values), (theirs, *theirs_values) = found
    assert (ours, theirs) == (True, False)
    for one, other in zip(ours_values[0], theirs_values[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    for name, value in ours_values[1].items():
        np.testing.assert_allclose(value, theirs_values[1][name], rtol=1e-6, err_msg=name)
