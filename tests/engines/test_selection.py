"""Which engine and which device are used; encoders; limits on threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from rarenode.data.dataset import DatasetSplits
from rarenode.engines import EngineName, make_engine, resolve_device
from rarenode.errors import ArgumentError
from rarenode.models import MlpEnsemble, initial_parameters
from tests.engines.problem import ADAM, objective_of, shape_of, steps


def test_the_engine_is_chosen_by_name_and_encoder(data: DatasetSplits) -> None:
    shape, objective = shape_of(data), objective_of(data)
    parameters = initial_parameters(shape, 0)
    encoder = torch.nn.Identity()
    assert make_engine("auto", shape, parameters, objective, ADAM, 0).name == "fused"
    assert make_engine("torch", shape, parameters, objective, ADAM, 0).name == "torch"
    assert make_engine("auto", shape, parameters, objective, ADAM, 0, encoder=encoder).name == "torch"
    with pytest.raises(ArgumentError, match="encoder"):
        make_engine("fused", shape, parameters, objective, ADAM, 0, encoder=encoder)
    with pytest.raises(ArgumentError, match="warp"):
        make_engine("warp", shape, parameters, objective, ADAM, 0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="n_jobs"):
        make_engine("auto", shape, parameters, objective, ADAM, 0, n_jobs=0)


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"), [(0, False, "cpu"), (0, True, "mps"), (2, False, "cuda"), (1, True, "cuda")]
)
def test_devices(monkeypatch: pytest.MonkeyPatch, cuda: int, mps: bool, expected: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert resolve_device("auto") == expected
    assert resolve_device("cpu") == "cpu"
    present = {"cpu"} | ({"mps"} if mps else set()) | ({"cuda"} if cuda else set()) | {f"cuda:{i}" for i in range(cuda)}
    for device in ("cpu", "mps", "cuda", "cuda:0", "cuda:1", "cuda:2", "warp", ""):
        if device in present:
            assert resolve_device(device) == device
        else:
            with pytest.raises(ArgumentError, match=f"{device}.*choose auto, .*cpu"):
                resolve_device(device)


def test_the_fused_engine_runs_on_the_cpu_only(data: DatasetSplits, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = shape_of(data)
    with pytest.raises(ArgumentError, match="not available"):
        make_engine("fused", shape, initial_parameters(shape, 0), objective_of(data), ADAM, 0, device="warp")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    with pytest.raises(ArgumentError, match="runs on the cpu"):
        make_engine("fused", shape, initial_parameters(shape, 0), objective_of(data), ADAM, 0, device="mps")


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.skipif(not blas_threads(), reason="threadpoolctl does not know this BLAS library")
@pytest.mark.parametrize("name", ["fused", "torch"])
def test_predictions_stay_within_n_jobs(data: DatasetSplits, name: EngineName) -> None:
    shape = shape_of(data)
    seen: list[tuple[set[int], int]] = []

    class Noting(np.ndarray[Any, Any]):
        def __getitem__(self, key: Any) -> Any:
            seen.append((blas_threads(), torch.get_num_threads()))
            return np.asarray(self)[key]

    X = np.asarray(data.train.X, dtype=np.float32).view(Noting)
    with threadpool_limits(2, user_api="blas"):
        before = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            for n_jobs in (None, 1):
                parameters = initial_parameters(shape, 0)
                make_engine(name, shape, parameters, objective_of(data), ADAM, 0, n_jobs=n_jobs).logits(X)
            assert (blas_threads(), torch.get_num_threads()) == ({2}, 2)
        finally:
            torch.set_num_threads(before)
    assert ({2}, 2) in seen
    assert seen[-1] == ({1}, 1)


def test_torch_stays_within_n_jobs(data: DatasetSplits) -> None:
    class Noting(torch.nn.Module):
        def forward(self, X: torch.Tensor) -> torch.Tensor:
            seen.append(torch.get_num_threads())
            return X

    seen: list[int] = []
    shape = shape_of(data)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for n_jobs in (None, 1):
            engine = make_engine(
                "auto", shape, initial_parameters(shape, 0), objective_of(data), ADAM, 0, "cpu", Noting(), n_jobs
            )
            steps(engine, data, 1)
            engine.logits(data.test.X)
        assert seen == [2, 2, 1, 1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("frozen", [True, False])
def test_heads_behind_an_encoder(data: DatasetSplits, frozen: bool) -> None:
    """One encoder, many heads, as for images: a frozen encoder stays as it is, another one learns."""
    torch.manual_seed(0)
    linear, norm = torch.nn.Linear(9, 12), torch.nn.BatchNorm1d(12)
    encoder = torch.nn.Sequential(linear, norm, torch.nn.Tanh()).requires_grad_(not frozen)
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    shape = MlpEnsemble(12, len(data.hierarchy), hidden=16, members=3)
    start, objective = initial_parameters(shape, 0), objective_of(data, focus="gmu")
    engine = make_engine("auto", shape, start, objective, ADAM, 0, encoder=encoder)
    losses = [engine.step(data.train.X, data.train.Y) for _ in range(60)]
    assert losses[-1] < 0.9 * losses[0]
    for name, value in encoder.state_dict().items():
        assert torch.equal(value, before[name]) == frozen, name
    logits = engine.logits(data.test.X)
    assert logits.shape == (3, len(data.test), len(data.hierarchy))

    learned = engine.parameters()
    expected = set() if frozen else {f"encoder.{name}" for name in before}
    assert learned.keys() == shape.parameter_shapes.keys() | expected

    other = torch.nn.Sequential(torch.nn.Linear(9, 12), torch.nn.BatchNorm1d(12), torch.nn.Tanh())
    other.load_state_dict(before)
    again = make_engine("torch", shape, start, objective, ADAM, 0, encoder=other.requires_grad_(not frozen))
    again.restore(engine.state())
    np.testing.assert_array_equal(again.logits(data.test.X), logits)
    assert [e.step(data.train.X, data.train.Y) for e in (engine, engine)] == [
        e.step(data.train.X, data.train.Y) for e in (again, again)
    ]
