"""What records say in words and in LaTeX, against what their oracles and options do."""

import math
import re

import numpy as np
import pytest
from position_cases import METHOD_NAMES, Case, method_layers

from keras_tupe import positions
from keras_tupe.positions import oracle

MACROS = (
    r"\\(frac|sqrt|cdot|quad|left|right|sum|sin|cos|ln|max|le)(?![A-Za-z])|\\text\{[a-z ]+\}|\\[,;]"
)


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_every_symbol_of_an_equation_is_explained(name):
    method = positions.get(name)
    left = re.sub(MACROS, " ", method.equation)
    for symbol in sorted({**positions.SYMBOLS, **method.where}, key=len, reverse=True):
        if len(symbol) > 1:
            left = left.replace(symbol, " ")
    left = re.sub(r"r_\{\\delta\(j,i\)\}|p_\{i,2t(\+1)?\}|F\^K", " ", left)  # of two that are alike
    known = {symbol for symbol in {**positions.SYMBOLS, **method.where} if len(symbol) == 1}
    unknown = set(re.findall(r"\\?[A-Za-z]+", left)) - known - {"i", "j", "t", "e"}
    assert not unknown


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_the_equation_divides_content_as_the_oracle_does(name):
    """With weights of positions at 0, or at the 1 of a factor, only content is left at i = j."""
    method, layers = positions.get(name), method_layers(Case(name), "float64")
    if method.embed and not layers.embed.weights:
        pytest.skip("fixed positions cannot be taken away from the tokens")
    weights = {
        path: value
        if path.startswith(("attention/query/", "attention/key/"))
        else np.full_like(value, 1.0 if method.options.get("initializer") == "ones" else 0.0)
        for path, value in layers.oracle_weights().items()
    }
    tokens = np.random.default_rng(0).normal(size=(3, layers.dims.hidden_dim))
    logits = method.logits_oracle(tokens, weights, layers.dims, layers.options)
    content = oracle.content_logits(tokens, weights, layers.dims, num_terms=1)
    terms = re.findall(r"\\sqrt\{(\d?)d\}", method.equation)
    assert terms
    if "k_j" not in method.equation.replace(r"\mu(k_j)", ""):
        pytest.skip("its content is a product of magnitudes, which the oracle alone says")
    expected = content[:, 1, 1] / math.sqrt(int(terms[0] or 1))
    np.testing.assert_allclose(logits[:, 1, 1], expected, rtol=1e-12)


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_the_equation_shows_what_the_record_says_of_cls_and_of_distance(name):
    method = positions.get(name)
    has_reset = r"\mathrm{reset}_\theta" in method.equation
    assert has_reset == (method.options.get("cls") == "untied")
    of_distance = re.search(r"j ?- ?i|i ?- ?j|delta|R_i", method.equation)
    of_position = re.search(r"p_i|P\^Q_i|B_\{ij\}|R_i|\(L, i, j\)", method.equation)
    if method.shift_invariant:
        assert of_distance or not method.sees_order
    else:
        assert of_position
    assert all(method.meaning(option) for option in method.options)


def test_what_other_options_share_with_a_method_is_kept():
    xlnet = positions.get("xlnet")
    method = xlnet.with_options("a summary", "a source", use_biases=False)
    assert (method.equation, method.where) == (xlnet.equation, xlnet.where)
    other = xlnet.with_options("a", "b", equation="s", where={}, use_biases=False)
    assert (other.equation, other.where) == ("s", {})
