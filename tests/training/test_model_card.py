"""The card: blocks as Markdown, what the card of a model says, and that names in it stay names."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Summary
from rarenode.models import Blend
from rarenode.thresholds import Thresholds
from rarenode.training import TrainedModel, train_model
from rarenode.training.model_card import Card, Code, Heading, Paragraph, Table, code, plain, table, to_markdown
from tests.training.problem import rows, settings

HOSTILE = "a`b|c\n# no <script>[x](y) \u202e\x1b[2J"


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    return train_model(rows(), settings(n_members=2, model="mlp+forest", n_trees=3))


def paragraphs(card: Card) -> str:
    return "\n".join(block.text for block in card if isinstance(block, Paragraph))


def tables(card: Card) -> dict[tuple[str, ...], dict[str, str]]:
    return {block.head: dict(block.rows) for block in card if isinstance(block, Table)}  # type: ignore[arg-type]


def codes(card: Card) -> list[str]:
    return [block.text for block in card if isinstance(block, Code)]


class TestMarkdown:
    def test_every_kind_of_block(self) -> None:
        card = (
            Paragraph("Words."),
            Heading("Part"),
            Code("a = 1\nb = 2", "python"),
            table(["what", "value"], [["one", "`1`"], ("two", "2")]),
        )
        assert to_markdown("Title", card) == (
            "# Title\n\nWords.\n\n## Part\n\n```python\na = 1\nb = 2\n```\n\n"
            "| what | value |\n| --- | --- |\n| one | `1` |\n| two | 2 |\n"
        )

    def test_tables_are_of_tuples(self) -> None:
        assert table(["a"], [["b"], ["c"]]) == Table(("a",), (("b",), ("c",)))

    @given(st.text())
    def test_plain_text_ends_neither_its_line_nor_its_cell_nor_its_code(self, text: str) -> None:
        shown = plain(text)
        assert len(shown) == len(text)
        assert shown.isprintable()
        assert not set(shown) & set("|`<>[]")
        assert code(text) == f"`{shown}`"
        for before, after in zip(text, shown, strict=True):
            assert after in (before, " ")
            if before.isalnum():
                assert after == before


class TestModelCard:
    def test_what_it_is(self, model: TrainedModel) -> None:
        text = paragraphs(model.card())
        assert "the 20 nodes of a hierarchy with" in text
        assert "2 members (independent)" in text
        assert "blended with a forest of 3 trees" in text
        assert isinstance(model.model, Blend)
        mlp, forest = model.model.models
        assert "Left out, as held-out rows were predicted as well without: forest." in paragraphs(
            replace(model, model=mlp).card()
        )
        assert "Left out" not in text
        weighted = replace(model, model=Blend((mlp, forest), (0.75, 0.25), np.full(20, 0.5)))
        assert "learned from held-out rows: mlp 0.75, forest 0.25." in paragraphs(weighted.card())
        assert "from 8 features: a forest of 3 trees." in paragraphs(replace(model, model=forest).card())
        single = train_model(rows(), settings(epochs=1))
        assert "from 8 features: a single network of 3 linear layers with 16 hidden units." in paragraphs(single.card())

    def test_settings_versions_and_fingerprints(self, model: TrainedModel) -> None:
        found = tables(model.card())
        assert found["setting", "value"] == {name: f"`{value}`" for name, value in model.settings.to_dict().items()}
        what = found["what", "value"]
        assert what["rarenode"] == f"`{model.versions['rarenode']}`"
        assert what["hierarchy"] == f"`{model.hierarchy.fingerprint}`"
        assert set(what) == {*model.versions, *model.fingerprints}

    def test_how_many_nodes_are_how_rare(self, model: TrainedModel) -> None:
        counts = np.array([0, 0, 0, 1, 4, 5, 19, 20, 99, 100, *[1234] * 10])
        bands = tables(replace(model, training_positives=counts).card())["training rows of a node", "nodes"]
        assert bands == {"0": "3", "1-4": "2", "5-19": "2", "20-99": "2", "100+": "11"}

    def test_nodes_that_are_not_scored_are_not_counted_among_them(self, model: TrainedModel) -> None:
        counts = np.array([0, 0, 0, 1, 4, 5, 19, 20, 99, 100, *[1234] * 10])
        scored = np.array([column not in (0, 4, 5, 6, 19) for column in range(20)])
        few = replace(model, training_positives=counts, scored=scored)
        bands = tables(few.card())["training rows of a node", "nodes"]
        assert bands == {"0": "2", "1-4": "1", "5-19": "0", "20-99": "2", "100+": "10"}

    def test_how_it_decides(self, model: TrainedModel) -> None:
        def text_of(values: Any, rule: Any = "add_ancestors") -> str:
            return paragraphs(model.with_thresholds(Thresholds(np.array(values), rule, "by hand")).card())

        assert "at least 0.5." in paragraphs(model.card())
        assert "its probability is at least 0.25 (`by hand`)" in text_of([0.25] * 20)
        own = "Every node has its own threshold (`by hand`); decisions are made coherent by `drop_orphans`."
        assert own in text_of([0.25] * 19 + [0.5], "drop_orphans")
        assert own in text_of([np.inf] * 20, "drop_orphans")

    def test_whether_features_are_raw(self, model: TrainedModel) -> None:
        assert "`X` is raw" in paragraphs(model.card())
        assert "must be prepared" in paragraphs(replace(model, preparation=None).card())

    def test_where_its_rows_came_from_and_how_to_reproduce_it(self, model: TrainedModel) -> None:
        known = replace(model, source="my data.arff").card()
        assert "Its rows came from `my data.arff`." in paragraphs(known)
        assert codes(known)[-1] == "rarenode fit 'my data.arff' --settings settings.toml --out RUN"
        for nothing in ("", " "):
            unknown = replace(model, source=nothing).card()
            assert "not recorded" in paragraphs(unknown)
            assert codes(unknown)[-1] == "rarenode fit DATA --settings settings.toml --out RUN"

    def test_how_the_training_ended(self, model: TrainedModel) -> None:
        loss = model.history[-1].loss
        assert f"After 3 epochs with the {model.engine} engine the loss was {loss:.5g}." in paragraphs(model.card())
        assert "No epoch was recorded." in paragraphs(replace(model, history=()).card())

    def test_the_best_epoch_is_named_where_it_was_kept(self, model: TrainedModel) -> None:
        scores = [(0.1, 0.2), (0.3, 0.4), (0.3, 0.5)]
        history = tuple(
            epoch.model_copy(update={"valid": Summary(f1, 0, 0, 0, ap, nodes=1, nodes_predicted=1, nodes_found=1)})
            for epoch, (ap, f1) in zip(model.history, scores, strict=True)
        )
        watched = replace(model, history=history)
        assert "on validation rows AP 30.00 % and F1 50.00 %." in paragraphs(watched.card())
        stopped = replace(watched, settings=settings(patience=2))
        assert "those of epoch 2, with the best AP on validation rows: 30.00 %, and F1 40.00 %" in paragraphs(
            stopped.card()
        )

    def test_it_says_its_limits(self, model: TrainedModel) -> None:
        headings = [block.text for block in model.card() if isinstance(block, Heading)]
        assert headings == ["Use", "Training data", "Limits", "Training", "Reproducing it"]

    def test_names_from_anywhere_stay_in_their_place(self, model: TrainedModel) -> None:
        usual = replace(model, source="s", engine="e", versions={"v": "1"})
        hostile = replace(model, source=HOSTILE, engine=HOSTILE, versions={HOSTILE: HOSTILE})
        lines, shown_lines = (to_markdown("t", each.card()).splitlines() for each in (usual, hostile))
        shown = plain(HOSTILE)
        assert len(shown_lines) == len(lines)
        for line, instead in zip(lines, list(shown_lines), strict=True):
            assert instead.startswith("#") == line.startswith("#")
            if line.startswith("rarenode fit "):  # a line of code may hold anything that does not end it
                shown_lines.remove(instead)
                continue
            assert instead.count("|") == line.count("|")
            assert instead.count("`") == line.count("`")
        assert f"| {shown} | `{shown}` |" in shown_lines
        assert f"Its rows came from `{shown}`." in shown_lines
        assert any(f"with the {shown} engine" in line for line in shown_lines)
        assert not set("".join(shown_lines)) & set("<>[]\u202e\x1b")

    @given(st.text(alphabet="ab '\"$`;|&<>\\\n-é"))
    def test_the_command_has_one_word_for_the_data(self, model: TrainedModel, source: str) -> None:
        """Whatever the path, a shell that gets the line takes nothing of it for a command, and opens that very path."""
        (command,) = [text for text in codes(replace(model, source=source).card()) if text.startswith("rarenode fit")]
        word = source.replace("\n", " ") if source.strip() else "DATA"
        assert shlex.split(command) == ["rarenode", "fit", word, "--settings", "settings.toml", "--out", "RUN"]
        assert "\n" not in command

    def test_a_shell_takes_it_for_one_word(self, model: TrainedModel) -> None:
        source = 'it\'s $(echo 1) `echo 2` "$HOME" ; echo 3 | cat > /dev/null & \\ ~ * -x é'
        (command,) = [text for text in codes(replace(model, source=source).card()) if text.startswith("rarenode fit")]
        script = f"rarenode() {{ printf '%s\\n' \"$@\"; }}\n{command}"
        done = subprocess.run(["sh", "-c", script], capture_output=True, check=True, timeout=60)
        arguments = done.stdout.decode("utf-8").splitlines()
        assert arguments == ["fit", source, "--settings", "settings.toml", "--out", "RUN"]
