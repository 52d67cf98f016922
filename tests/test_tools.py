"""The help of tools that measure something: it names the command, and nothing is measured."""

from __future__ import annotations

from types import ModuleType

import pytest
from tools import measure_blend_weights, measure_guarantees, measure_output_bias, measure_rarest_nodes

TOOLS = (measure_blend_weights, measure_guarantees, measure_output_bias, measure_rarest_nodes)


@pytest.mark.parametrize("tool", TOOLS)
def test_help(tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["tool", "--help"])
    with pytest.raises(SystemExit) as ended:
        tool.main()
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert all(words in printed for words in ("python tools/measure_", "DATASET", "cellcycle_FUN"))
