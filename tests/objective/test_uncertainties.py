"""`uncertainty`: six kinds, from the members' probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from rarenode import uncertainty
from rarenode.errors import ArgumentError
from tests import oracles
from tests.strategies import ensembles, probabilities

KINDS = ("bbma", "gmu", "epistemic_kl", "epistemic_js", "predictive", "aleatoric")
EPISTEMIC = ("epistemic_kl", "epistemic_js")
every_kind = pytest.mark.parametrize("kind", KINDS)
DTYPES: tuple[tuple[type[np.floating[Any]], float], ...] = ((np.float64, 1e-9), (np.float32, 2e-4))


@every_kind
@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@given(data=st.data())
def test_numpy_and_torch_match_the_oracle(
    kind: str, dtype: type[np.floating[Any]], tolerance: float, data: st.DataObject
) -> None:
    probs = data.draw(ensembles(dtype=dtype))
    before = probs.copy()
    expected = oracles.uncertainty(probs, kind, float(np.finfo(dtype).eps))
    result = uncertainty(probs, kind)
    assert isinstance(result, np.ndarray)
    assert result.dtype == dtype
    assert result.shape == probs.shape[1:]
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
    assert np.array_equal(probs, before)
    tensor = uncertainty(torch.tensor(probs), kind)
    assert isinstance(tensor, torch.Tensor)
    assert tensor.numpy().dtype == dtype
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=tolerance, atol=tolerance)


@every_kind
@given(data=st.data())
def test_the_order_of_members_and_nodes_does_not_matter(kind: str, data: st.DataObject) -> None:
    probs = data.draw(ensembles())
    members = data.draw(st.permutations(range(probs.shape[0])))
    nodes = data.draw(st.permutations(range(probs.shape[2])))
    moved = uncertainty(probs[members][:, :, nodes], kind)
    np.testing.assert_allclose(moved, uncertainty(probs, kind)[:, nodes], rtol=1e-9, atol=1e-9)


@every_kind
@given(data=st.data())
def test_presence_and_absence_are_treated_alike(kind: str, data: st.DataObject) -> None:
    probs = data.draw(hnp.arrays(np.float64, (3, 4), elements=st.integers(0, 64).map(lambda n: n / 64)))
    np.testing.assert_allclose(uncertainty(1 - probs, kind), uncertainty(probs, kind), rtol=1e-9, atol=1e-9)


@every_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_it_is_finite_and_never_negative(kind: str, dtype: type[np.floating[Any]], data: st.DataObject) -> None:
    """A value of -1e-9 would be enough to make U^0.5 not a number."""
    probs = data.draw(ensembles(dtype=dtype))
    for result in (uncertainty(probs, kind), uncertainty(torch.tensor(probs), kind).numpy()):
        assert np.isfinite(result).all()
        assert (result >= 0).all()
        if kind != "epistemic_kl":
            assert (result <= 1 + 1e-5).all()


@pytest.mark.parametrize("kind", EPISTEMIC)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
@given(data=st.data())
def test_identical_members_have_no_epistemic_uncertainty(
    kind: str, dtype: type[np.floating[Any]], tolerance: float, data: st.DataObject
) -> None:
    one = data.draw(hnp.arrays(np.float64, (2, 3), elements=probabilities())).astype(dtype)
    same = np.stack([one] * data.draw(st.integers(2, 5)))
    np.testing.assert_allclose(uncertainty(same, kind), 0, atol=tolerance)
    np.testing.assert_allclose(uncertainty(torch.tensor(same), kind).numpy(), 0, atol=tolerance)


@given(ensembles(most_members=1))
def test_one_member_has_no_epistemic_uncertainty_and_gmu_is_bbma(probs: NDArray[np.float64]) -> None:
    for kind in EPISTEMIC:
        assert (uncertainty(probs, kind) == 0).all()
        assert (uncertainty(torch.tensor(probs), kind) == 0).all()
    np.testing.assert_allclose(uncertainty(probs, "gmu"), uncertainty(probs, "bbma"), atol=1e-9)
    np.testing.assert_allclose(uncertainty(probs, "aleatoric"), uncertainty(probs, "predictive"), atol=1e-12)


@given(ensembles())
def test_how_the_kinds_relate(probs: NDArray[np.float64]) -> None:
    kinds = {kind: uncertainty(probs, kind) for kind in KINDS}
    assert (kinds["gmu"] >= kinds["bbma"] - 1e-12).all()
    assert (kinds["aleatoric"] <= kinds["predictive"] + 1e-12).all()
    assert (kinds["predictive"] >= kinds["bbma"] - 1e-12).all()  # binary entropy lies above 1 - |2p - 1|
    assert (kinds["epistemic_js"] <= kinds["epistemic_kl"] + 1e-9).all()


def test_values_by_hand() -> None:
    probs = np.array([[0.0], [1.0]])
    assert uncertainty(probs, "bbma") == pytest.approx([1.0])
    assert uncertainty(probs, "gmu") == pytest.approx([1.0])
    assert uncertainty(probs, "predictive") == pytest.approx([1.0])
    assert uncertainty(probs, "aleatoric") == pytest.approx([0.0])
    assert uncertainty(probs, "epistemic_js") == pytest.approx([1.0])
    eps = float(np.finfo(np.float64).eps)
    bits = (1 - 2 * eps) * np.log2((1 - eps) / eps)  # between two coins of eps and 1 - eps
    assert uncertainty(probs, "epistemic_kl") == pytest.approx([bits])
    quarter = np.array([[0.25], [0.25], [0.25]])
    assert uncertainty(quarter, "bbma") == pytest.approx([0.5])
    assert uncertainty(quarter, "aleatoric") == pytest.approx([2 - 0.75 * np.log2(3)])
    # mean 0.75, deviation sqrt(0.02) with divisor 1, so SNR = 0.5 / (2 sqrt(0.02))
    two = np.array([[0.65], [0.85]])
    assert uncertainty(two, "gmu") == pytest.approx([1 - 0.5 * (1 - np.exp(-0.5 / (2 * 0.02**0.5)))])
    # 0.5 against 0.25, in bits, both ways
    there, back = 0.5 * np.log2(2) + 0.5 * np.log2(2 / 3), 0.25 * np.log2(0.5) + 0.75 * np.log2(1.5)
    assert uncertainty(np.array([[0.5], [0.25]]), "epistemic_kl") == pytest.approx([(there + back) / 2])


@every_kind
def test_there_is_no_gradient(kind: str) -> None:
    probs = torch.rand(3, 2, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert not uncertainty(probs, kind).requires_grad


@every_kind
@pytest.mark.parametrize("shape", [(3,), (3, 5), (2, 3, 4), (2, 1, 2, 3), (2, 0, 4)])
def test_any_dimensions_after_the_members(kind: str, shape: tuple[int, ...]) -> None:
    probs = np.random.default_rng(3).random(shape)
    expected = oracles.uncertainty(probs, kind, float(np.finfo(np.float64).eps))
    for result in (uncertainty(probs, kind), uncertainty(torch.tensor(probs), kind).numpy()):
        assert result.shape == shape[1:]
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["", "BBMA", "focal", "entropy"])
def test_an_unknown_kind_is_refused(kind: str) -> None:
    with pytest.raises(ArgumentError, match="epistemic_js"):
        uncertainty(np.full((2, 3), 0.5), kind)


def test_the_oracle_for_js_agrees_with_entropies() -> None:
    for p in (0.0, 0.1, 0.5, 1.0):
        for q in (0.0, 0.3, 1.0):
            by_entropy = oracles.entropy((p + q) / 2) - (oracles.entropy(p) + oracles.entropy(q)) / 2
            assert oracles.js(p, q) == pytest.approx(by_entropy, abs=1e-12)


@pytest.mark.parametrize("kind", ["bbma", "gmu", "epistemic_kl", "epistemic_js", "predictive", "aleatoric"])
def test_any_array_will_do(kind: str) -> None:
    """Reversed, read-only, of half precision, of integers: what a user may well have."""
    probs = np.array([[0.0, 0.5, 1.0], [1.0, 0.5, 1.0]])
    expected = uncertainty(probs, kind)
    backwards = probs[::-1]
    np.testing.assert_allclose(uncertainty(backwards, kind), expected, atol=1e-12)
    probs.flags.writeable = False
    np.testing.assert_array_equal(uncertainty(probs, kind), expected)
    half = uncertainty(torch.tensor(probs.tolist()).half(), kind)
    assert half.dtype == torch.float16
    assert half.isfinite().all()
    certain = uncertainty(torch.tensor([[0, 1], [0, 1]]), kind)
    np.testing.assert_allclose(certain.numpy(), 0, atol=1e-5)
