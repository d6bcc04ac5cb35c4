"""A causal model is trained and tested without its logits, to the numbers that they would give."""

import keras
import numpy as np
import pytest

from keras_tupe import TupeBackbone
from keras_tupe.models import TupeCausalLM
from keras_tupe.tasks import _language_model as _loss_in_chunks
from keras_tupe.trainer import Trainer

LENGTH, VOCABULARY = 7, 23
KIND = {"from_logits": True, "reduction": "mean_with_sample_weight", "dtype": "float64"}

# no part of language modeling
pytestmark = pytest.mark.filterwarnings("ignore:Gradients do not exist for variables .'pooled")


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    whole = _loss_in_chunks.token_losses
    monkeypatch.setattr(
        _loss_in_chunks, "token_losses", lambda *args, **kwargs: whole(*args, chunk=5, **kwargs)
    )


class OtherLoss(keras.losses.SparseCategoricalCrossentropy):
    """The same loss, of a class that needs logits."""


def new_model(dtype="float64"):
    keras.utils.set_random_seed(3)
    sizes = {"attention_pattern": "causal", "dropout": 0.0, "dtype": dtype}
    return TupeCausalLM(TupeBackbone(VOCABULARY, 1, 2, 8, 12, **sizes))


def batch():
    """Returns inputs, labels and weights."""
    random = np.random.default_rng(5)
    tokens = random.integers(0, VOCABULARY, (6, LENGTH + 1), "int32")
    inputs = {"token_ids": tokens[:, :-1], "padding_mask": np.ones((6, LENGTH), "int32")}
    return inputs, tokens[:, 1:], random.random((6, LENGTH))


def trained(owner, model, loss, monkeypatch, size, **kwargs):
    """Returns weights after `fit`, what it and the evaluation said, and which logits were made."""
    inputs, labels, weights = batch()
    owner.compile(keras.optimizers.SGD(0.5), loss, weighted_metrics=["accuracy"], **kwargs)
    is_model = isinstance(owner, keras.Model)
    owner.fit(inputs, labels, sample_weight=weights, verbose=0)  # the build has symbols for logits
    kind, seen = type(model.backbone.token_embedding), []
    call = kind.call

    def watched(self, inputs, reverse=False):
        if reverse:
            seen.append(tuple(inputs.shape))
        return call(self, inputs, reverse)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "call", watched)
        given = {"sample_weight": weights, "batch_size": size, "verbose": 0}
        found = owner.fit(inputs, labels, shuffle=False, **given).history
        given |= {"return_dict": True} if is_model else {}
        found |= owner.evaluate(inputs, labels, **given)
    return [np.array(w) for w in model.get_weights()], found, seen


def check(monkeypatch, owner_of, size, **kwargs):
    """Compares training by scores with training by logits."""
    models = new_model(), new_model()
    owners = [owner_of(model) for model in models]
    losses = keras.losses.SparseCategoricalCrossentropy(**KIND), OtherLoss(**KIND)
    (ours, history, seen), (theirs, wanted, others) = (
        trained(owner, model, loss, monkeypatch, size, **kwargs)
        for owner, model, loss in zip(owners, models, losses, strict=True)
    )
    assert [owner._is_scored for owner in owners] == [True, False]
    assert others
    assert not seen, "logits were computed"
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    assert history.keys() == wanted.keys()
    for name, values in history.items():
        np.testing.assert_allclose(values, wanted[name], rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_fit_and_evaluate_are_those_of_all_logits(jit_compile, monkeypatch):
    check(monkeypatch, lambda model: model, 3, jit_compile=jit_compile)


@pytest.mark.parametrize("micro_batches", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_the_trainer_gives_the_update_of_all_logits(micro_batches, monkeypatch):
    check(monkeypatch, lambda model: Trainer(model, micro_batches=micro_batches, xla=False), 6)


def test_other_metrics_get_logits_and_so_does_whoever_calls_the_model():
    model = new_model("float32")
    model.compile("sgd", metrics=[keras.metrics.SparseTopKCategoricalAccuracy(2)])
    model.train_on_batch(*batch())
    assert not model._is_scored
    model.compile()
    for training in (False, True):
        found = model(batch()[0], training=training)
        assert tuple(found.shape) == (6, LENGTH, VOCABULARY)
