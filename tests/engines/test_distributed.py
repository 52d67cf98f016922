"""One training in several processes gives what one process gives; and what becomes of it when one of them is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from rarenode import Run, __version__, make_hierarchical
from rarenode._io.arrays import read_note
from rarenode.engines import make_engine, selection, several_processes, torchrun
from rarenode.engines.fused_engine import FusedEngine
from rarenode.engines.share import Share
from rarenode.errors import ArgumentError
from rarenode.models import initial_parameters
from rarenode.objective.uncertainties import UNCERTAINTIES, joint_uncertainty, uncertainty
from rarenode.training.checkpoint import FILE
from tests.engines import in_processes
from tests.engines.problem import ADAM, objective_of, shape_of

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node"]
ROOT = Path(__file__).parents[2]


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}


def free_port() -> str:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return str(listening.getsockname()[1])


def by_hand(processes: int, command: list[str]) -> None:
    """Start processes as another launcher than torchrun does, by the environment variables alone."""
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": str(processes)}
    started = [
        subprocess.Popen(
            [sys.executable, *command],
            env=environment(**where, RANK=str(rank), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(processes)),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    errors = [each.communicate(timeout=120)[1] for each in started]
    assert [each.returncode for each in started] == [0] * processes, "".join(errors)


@pytest.fixture(scope="module", params=[2, 4])
def divided(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What processes found together; with them, a training that one process began, and one for it to go on with."""
    folder: Path = tmp_path_factory.mktemp(f"in {request.param}")
    in_processes.training(folder / "alone", stop_after=20)
    command = ["-m", "tests.engines.in_processes", str(folder)]
    if request.param == 2:
        run = [*TORCHRUN, "2", "--master-port", free_port(), *command]
        ended = subprocess.run(run, env=environment(), check=False, capture_output=True, text=True, timeout=120)
        assert ended.returncode == 0, ended.stderr
    else:
        by_hand(4, command)
    return folder


def assert_same(found: dict[str, Any], expected: dict[str, Any], tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        atol = tolerance * float(np.abs(value).max(initial=0))
        np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=atol, err_msg=name)


@pytest.mark.parametrize("case", in_processes.CASES)
def test_several_processes_find_what_one_finds(divided: Path, case: str) -> None:
    found, expected = load_file(divided / case), in_processes.CASES[case]()
    assert_same(found, expected, tolerance=2e-4 if case == "training" else 3e-5)
    if case == "members fused None":  # nothing crosses between processes but the loss and the mean of members
        shared = {"losses", "probs"}
        for name in expected.keys() - shared:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def test_batch_statistics_are_those_of_each_process(divided: Path) -> None:
    found, expected = load_file(divided / "batch statistics"), in_processes.encoder("mean", False)
    assert found.keys() == expected.keys()
    assert all(np.isfinite(array).all() for array in found.values())
    means = "encoder.module.1.running_mean"
    np.testing.assert_allclose(found[means], expected[means], atol=0.1)
    assert (found[means] != expected[means]).any()


def test_a_training_is_resumed_with_another_number_of_processes(divided: Path) -> None:
    expected = in_processes.training()
    assert_same(load_file(divided / "resumed here"), expected, tolerance=2e-4)
    assert_same(in_processes.training(divided / "several", resume=True), expected, tolerance=2e-4)


@pytest.mark.parametrize("kind", UNCERTAINTIES)
@pytest.mark.parametrize("cuts", [[3], [1, 4], [0, 2, 2, 5]])
def test_a_joint_uncertainty_is_that_of_all_members(kind: str, cuts: list[int]) -> None:
    logits = torch.tensor(np.random.default_rng(0).normal(0, 4, (5, 3, 40)), dtype=torch.float32)
    logits[:, 0] = logits[0, 0]  # members that agree
    logits[:, 1, :5] *= 100
    probs = logits.sigmoid()
    parts = [range(first, stop) for first, stop in zip([0, *cuts], [*cuts, 5], strict=True)]

    def summand(part: range) -> torch.Tensor:
        """What one process adds: `joint_uncertainty` asks for the sum once."""
        asked: list[torch.Tensor] = []

        def total(value: torch.Tensor) -> torch.Tensor:
            asked.append(value.clone())
            return value

        joint_uncertainty(probs[part.start : part.stop], kind, total, 5, part.start)
        assert len(asked) == 1
        return asked[0]

    everything = torch.stack([summand(part) for part in parts]).sum(0)
    for part in parts:
        found = joint_uncertainty(probs[part.start : part.stop], kind, lambda _: everything, 5, part.start)
        torch.testing.assert_close(found, uncertainty(probs, kind), rtol=2e-4, atol=2e-6)
    crossing = everything.numel() / everything[..., 0, 0].numel() / probs[0].numel()
    assert crossing == 1 or kind == "epistemic_js"


def test_rows_of_a_batch_are_divided_without_rest() -> None:
    for processes in range(1, 6):
        for batch in range(1, 12):
            shares = [Share(lambda _: _, 1, process=place, row_processes=processes) for place in range(processes)]
            slices = [share.rows(batch) for share in shares]
            assert [row for part in slices for row in range(batch)[part]] == list(range(batch))
            assert slices[0].stop > 0


# --- what is divided, and what is not ------------------------------------------------------------------------------


class GroupOfThree:
    """As far as it is asked before anything is said."""

    size = 3


@pytest.fixture
def leading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchrun, "_group", GroupOfThree())


@pytest.mark.usefixtures("leading")
@pytest.mark.parametrize("changes", [{"members": 1}, {"members": 4, "ensemble": "dropout"}])
def test_a_single_network_is_trained_by_one_process(changes: dict[str, Any]) -> None:
    shape = shape_of(in_processes.DATA, **changes)
    with pytest.warns(RuntimeWarning, match="2 other processes of torchrun will wait: only members of an ensemble"):
        engine = make_engine("auto", shape, initial_parameters(shape, 0), objective_of(in_processes.DATA), ADAM, 0)
    assert engine.processes == 1


def test_processes_take_a_gpu_each(monkeypatch: pytest.MonkeyPatch, leading: None) -> None:
    shape = shape_of(in_processes.DATA, members=4)
    monkeypatch.setattr(selection, "resolve_device", lambda device: device)
    with pytest.raises(ArgumentError, match="cpu or on cuda, a GPU for each, not on 'cuda:1'"):
        make_engine(
            "torch", shape, initial_parameters(shape, 0), objective_of(in_processes.DATA), ADAM, 0, device="cuda:1"
        )


def test_the_fused_engine_has_no_rows_to_share() -> None:
    shape = shape_of(in_processes.DATA, members=4)
    share = Share(lambda value: value, 4, row_processes=2)
    with pytest.raises(ArgumentError, match="choose engine 'torch'"):
        FusedEngine(shape, initial_parameters(shape, 0), objective_of(in_processes.DATA), ADAM, 0, share=share)


def test_alone_there_is_nothing_to_wait_for() -> None:
    with several_processes() as is_first:
        assert is_first


# --- the end of processes --------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Path:
    data = make_hierarchical(200, nodes=12, depth=3, features=5).train
    names = [f"f{place}" for place in range(5)]
    lines = [",".join([*names, "labels"])]
    for row, labels in zip(data.X, data.hierarchy.decode(data.Y), strict=True):
        lines.append(",".join([*(f"{value:.4f}" for value in row), ";".join(labels)]))
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines))
    edges = [f"{data.hierarchy.nodes[a]},{data.hierarchy.nodes[b]}" for a, b in zip(
        data.hierarchy.edge_parents, data.hierarchy.edge_children, strict=True
    )]  # fmt: skip
    (tmp_path / "edges.csv").write_text("\n".join(["parent,child", *edges]))
    return path


def fit_command(table: Path, out: Path, *options: str) -> list[str]:
    return [
        *("-m", "rarenode", "fit", str(table), "--labels", "labels", "--hierarchy", str(table.with_name("edges.csv"))),
        *("--out", str(out), "--model", "mlp", "--holdout", "0.2", "--n-members", "4", "--hidden-size", "10"),
        *("--checkpoint-epochs", "1", "--patience", "0", "--focus", "gmu", *options),
    ]


def start(processes: int, command: list[str], out: Path) -> tuple[subprocess.Popen[str], dict[int, int]]:
    """Begin a training, and wait for its first checkpoint; also the process ids by rank."""
    run = [*TORCHRUN, str(processes), "--master-port", free_port(), *command, "--epochs", "100000"]
    begun = subprocess.Popen(run, env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not (out / "checkpoint.safetensors").exists():
        assert begun.poll() is None, begun.communicate()[1]
        time.sleep(0.05)
    children = Path(f"/proc/{begun.pid}/task/{begun.pid}/children").read_text().split()
    ranks: dict[int, int] = {}
    for child in children:
        variables = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        ranks |= {int(each[5:]): int(child) for each in variables if each.startswith(b"RANK=")}
    return begun, ranks


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("rank", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_a_killed_process_ends_the_run_and_nothing_is_lost(rank: int, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    begun, ranks = start(2, fit_command(table, out), out)
    os.kill(ranks[rank], signal.SIGKILL)
    _, errors = begun.communicate(timeout=60)
    assert begun.returncode != 0
    assert "with the fused engine in 2 processes: " in errors
    assert errors.count("rarenode: rank") == 1
    assert f"rarenode: rank {rank} of 2, process {ranks[rank]} on {socket.gethostname()}, ended without" in errors
    assert "start the same command again with --resume" in errors
    assert not [pid for pid in ranks.values() if Path(f"/proc/{pid}").exists()]
    assert Run(out).files.is_begun
    assert json.loads(read_note(out / FILE))["position"]["epoch"] >= 1  # what resuming begins with


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_a_request_to_end_saves_a_checkpoint(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    begun, _ = start(2, fit_command(table, out), out)
    begun.send_signal(signal.SIGTERM)  # the leader takes it for Ctrl-C
    _, errors = begun.communicate(timeout=60)
    assert errors.count("A checkpoint is saved in") == 1
    assert "rarenode: rank" not in errors


@pytest.mark.slow
def test_a_process_that_fails_says_why(tmp_path: Path) -> None:
    """Here because it has another rarenode."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\n"
        "from rarenode.engines import torchrun\n"
        "if os.environ['RANK'] == '1':\n"
        "    torchrun.__version__ = '0.0.1'\n"
        "from tests.engines.in_processes import members\n"
        "with torchrun.several_processes() as is_first:\n"
        "    if is_first:\n"
        "        members('torch', 'gmu')\n"
    )
    run = [*TORCHRUN, "2", "--master-port", free_port(), str(program)]
    ended = subprocess.run(run, env=environment(), check=False, capture_output=True, text=True, timeout=120)
    assert ended.returncode != 0
    assert f"failed: it has rarenode 0.0.1, and the first process {__version__}" in ended.stderr
    assert "LostProcessError: rank 1 of 2" in ended.stderr


def can_make_networks() -> bool:
    """Whether this user may make a network namespace."""
    if shutil.which("ip") is None:
        return False
    made = subprocess.run(["ip", "netns", "add", "rarenode-probe"], check=False, capture_output=True).returncode == 0
    subprocess.run(["ip", "netns", "del", "rarenode-probe"], check=False, capture_output=True)
    return made


@pytest.fixture
def two_hosts() -> Iterator[dict[str, str]]:
    """Two network namespaces that a cable joins: name -> the interface of each."""
    hosts = {f"rarenode-{os.getpid()}-{place}": f"rn{os.getpid() % 100000}{place}" for place in "ab"}
    (first, there), (second, back) = hosts.items()

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True)

    try:
        for name in hosts:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", there, "netns", first, "type", "veth", "peer", "name", back, "netns", second)
        for number, (name, interface) in enumerate(hosts.items(), start=1):
            ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", interface)
            ip("-n", name, "link", "set", interface, "up")
        yield hosts
    finally:
        for name in hosts:
            subprocess.run(["ip", "netns", "del", name], check=False)


@pytest.mark.slow
@pytest.mark.skipif(not can_make_networks(), reason="needs iproute2, and the right to make network namespaces")
def test_two_hosts_of_which_one_has_the_data(two_hosts: dict[str, str], table: Path, tmp_path: Path) -> None:
    out, port = tmp_path / "run", free_port()
    started = []
    for rank, (name, interface) in enumerate(two_hosts.items()):
        rows = table if rank == 0 else tmp_path / "not here.csv"
        where = ["--nnodes", "2", "--node-rank", str(rank), "--master-addr", "10.77.0.1", "--master-port", port]
        command = [*TORCHRUN, "1", *where, *fit_command(rows, out, "--epochs", "2")]
        started.append(
            subprocess.Popen(
                ["ip", "netns", "exec", name, *command],
                env=environment(GLOO_SOCKET_IFNAME=interface),
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    errors = [each.communicate(timeout=120)[1] for each in started]
    assert [each.returncode for each in started] == [0, 0], errors
    assert "with the fused engine in 2 processes: " in errors[0]
    assert Run(out).model.parts[0].n_features == 5
