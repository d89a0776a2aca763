"""Presets: each as the readers of its original know it, and refused where runs do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compat.hhem.hhem_trees import REFUSAL, Line, Model, text_of
from evalwright.analysis.board import Board, make_board
from evalwright.analysis.extra_columns import MeasuredModel, fact_text
from evalwright.analysis.measured_columns import BUILDERS, make_extra_columns
from evalwright.compat.hhem.importing import import_hhem
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.reports.document import Table
from evalwright.reports.documents.preset_board import preset_readme, slice_tables
from evalwright.reports.markdown import to_markdown
from evalwright.reports.plot_view import OTHER_GROUP, plot_view
from evalwright.reports.presets import (
    _FITS,
    apply_preset,
    find_preset,
    presets,
)
from evalwright.runs.reader import Run, open_run
from support.runs import edited, make_run

CATEGORIES = ("law", "sport")


def hallucination_runs(folder: Path) -> list[Run]:
    """Three models over 40 articles of two categories; refused: 0, 1 and 10."""
    (folder / "articles.csv").write_text(
        "article_id,text,category,text_type\n"
        + "".join(
            f"{i},x,{CATEGORIES[i % 2]},{'standard_text' if i % 4 else 'intensive_text'}\n"
            for i in range(1, 41)
        )
    )
    for name, refused, wrong in (
        ("acme/gpt-one", 0, 30),
        ("beta/qwen-two-7B", 1, 2),
        ("acme/shy", 10, 1),
    ):
        lines = [
            Line(
                i,
                REFUSAL if i <= refused else text_of(i),
                0.1 if i > 40 - wrong else 0.9,
            )
            for i in range(1, 41)
        ]
        Model(name=name).write(folder / "tree", lines)
    runs, _ = import_hhem(
        folder / "tree", folder / "runs", articles=folder / "articles.csv"
    )
    return list(runs)


def shown(runs: list[Run], name: str) -> Board:
    return apply_preset(make_board(runs), runs, find_preset(name))


def test_the_table_of_presets_is_whole() -> None:
    assert list(presets()) == ["hhem", "sea-helm", "hret", "open-llm", "factual"]
    for preset in presets().values():
        assert preset.fits in _FITS
        assert preset.about and preset.needs and preset.title
        kinds = {name for name in preset.extra if not name.startswith("fact:")}
        assert kinds <= BUILDERS.keys()


def test_an_unknown_preset_comes_with_the_closest_one() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'sea-helm'"):
        find_preset("sea-hlem")


@pytest.mark.parametrize("name", ["hhem", "sea-helm", "hret", "factual", "open-llm"])
def test_runs_that_do_not_fit_are_refused_with_what_is_needed(
    tmp_path: Path, name: str
) -> None:
    run = make_run(tmp_path, scores=[1, 0, 1])
    with pytest.raises(ConfigurationError) as caught:
        shown([run], name)
    message = str(caught.value)
    assert message.startswith(f"The preset '{name}' needs runs")
    assert message.endswith("These runs show factual (accuracy).")


def test_the_readme_of_hhem_has_the_columns_of_the_original(tmp_path: Path) -> None:
    runs = hallucination_runs(tmp_path)
    document = preset_readme(shown(runs, "hhem"), runs, picture="img/plot.png")
    assert document is not None
    text = to_markdown(document, 0)
    lines = text.splitlines()
    assert lines[0] == "Last updated on January 02, 2026"
    assert lines[2].startswith("![Leaderboard: a bar for each model")
    head = (
        "| Model | Hallucination Rate | Factual Consistency Rate | Answer Rate"
        " | Average Summary Length (Words) | Rank | Judged | Missing |"
    )
    assert lines[4] == head
    first = lines[6].split(" | ")
    assert first[0] == "| `acme/shy`"
    assert first[1].startswith("3.3 % [")
    assert first[3].startswith("75.0 % [")
    assert first[4] == "15.0 [n/a]"
    assert "share a letter" not in text
    assert "## By category" in text
    assert "## By text type" in text


def test_tables_by_slice_have_the_runs_own_numbers(tmp_path: Path) -> None:
    runs = hallucination_runs(tmp_path)
    board = shown(runs, "hhem")
    _heading, table, *_ = slice_tables(board, runs)
    assert isinstance(table, Table)
    assert [column.title for column in table.columns] == ["Model", "law", "sport"]
    task = board.tasks[0].name
    for row, cells in zip(board.rows, table.rows, strict=True):
        slices = runs[row.run_index].task(task).slices["category"]
        for value, cell in zip(CATEGORIES, cells[1:], strict=True):
            assert cell.estimate == slices[value][0].estimate  # type: ignore[union-attr]


def test_without_a_preset_there_is_no_other_form(tmp_path: Path) -> None:
    runs = hallucination_runs(tmp_path)
    assert preset_readme(make_board(runs), runs) is None
    assert not list(slice_tables(make_board(runs), runs))


def test_bars_are_coloured_by_family(tmp_path: Path) -> None:
    runs = hallucination_runs(tmp_path)
    board = shown(runs, "hhem")
    view = plot_view(board, "T", least_answered=95, colour_by="family")
    assert [row.label for row in view.rows] == ["beta/qwen-two-7B", "acme/gpt-one"]
    assert [row.group for row in view.rows] == ["Qwen", "GPT"]
    assert view.groups == ("Qwen", "GPT")
    everything = plot_view(board, "T", colour_by="family")
    assert everything.groups == ("Qwen", "GPT", OTHER_GROUP)
    with pytest.raises(ConfigurationError, match="coloured by 'licence': no drawn"):
        plot_view(board, "T", colour_by="licence")


def test_only_the_largest_groups_have_a_colour(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, name=f"r{i}", model=f"maker{i // 2}/m{i}", scores=[1, 0, 1])
        for i in range(20)
    ]
    board = apply_preset(make_board(runs), runs, None)
    view = plot_view(board, "T", colour_by="provider")
    assert len(view.groups) == 8
    assert view.groups[-1] == OTHER_GROUP
    assert {row.group for row in view.rows} == {*view.groups}


def measured(run: Run, **facts: Any) -> MeasuredModel:
    return MeasuredModel(run, facts)


def with_record(folder: Path, **record: Any) -> Run:
    run = make_run(folder, scores=[1.0, 0.0, 1.0])
    with edited(run.folder) as data:
        data |= record
    return open_run(run.folder)


def test_speed_and_memory_are_those_of_the_record(tmp_path: Path) -> None:
    hardware = {
        "model": {"local": True, "device": "cpu"},
        "machine": {"cpu": "A processor", "gpus": []},
        "throughput": {"answers": 40, "output_tokens_per_second": 12.5},
        "memory": {"peak_rss_bytes": 3 * 2**29, "gpu_peak_bytes": None},
    }
    model = measured(with_record(tmp_path, hardware=hardware))
    machine, speed, memory = make_extra_columns(("machine", "speed", "memory"), [model])
    assert machine.texts == ("A processor",)
    assert speed.value_of(0)["value"] == 12.5
    assert speed.reasons[0] == "no interval: measured once over 40 answers"
    assert (memory.name, memory.value_of(0)["value"]) == ("memory", 1.5)


def test_waiting_times_of_stored_answers_are_no_speed(tmp_path: Path) -> None:
    hardware = {"model": {"local": True, "device": "cpu"}, "throughput": None}
    model = measured(with_record(tmp_path, hardware=hardware))
    (column,) = BUILDERS["speed"]([model])
    reason = "no answer was made in the run: all came from the store"
    assert column.value_of(0) == {"value": None, "reason": reason}


def test_a_remote_model_has_no_memory(tmp_path: Path) -> None:
    hardware = {
        "model": {"local": False},
        "machine": {},
        "memory": {"peak_rss_bytes": 2**30},
    }
    model = measured(with_record(tmp_path, hardware=hardware))
    assert make_extra_columns(("memory",), [model]) == ()


@pytest.mark.parametrize("hardware", [{}, {"model": {}, "memory": {}}])
def test_what_is_not_recorded_has_no_column(
    tmp_path: Path, hardware: dict[str, Any]
) -> None:
    run = make_run(tmp_path, scores=[1.0, 0.0])
    with edited(run.folder) as data:
        data["hardware"] = hardware
    names = ("machine", "speed", "memory", "cost", "rewrites", "cutoff")
    assert make_extra_columns(names, [measured(open_run(run.folder))]) == ()


def test_facts_as_texts() -> None:
    assert fact_text("size", 0.135) == "135M"
    assert fact_text("size", 8.03) == "8.03B"
    assert fact_text("context", 128_000.0) == "128k"
    assert fact_text("price_in", 0.15) == "$0.15"
    assert fact_text("open", False) == "no"
    assert fact_text("stars", 4.0) == "4"
    assert fact_text("stars", None) == ""


def test_the_preferred_metric_is_shown_if_all_tasks_have_it(tmp_path: Path) -> None:
    from evalwright.reports.presets import preferred_metric

    preset = find_preset("open-llm")
    run = make_run(tmp_path, scores={"a": [1, 0], "b": [1, 0]})
    assert preferred_metric(preset, [run]) is None
    normalised = {"kind": "chance-normalised", "label": "above-chance"}
    with edited(run.folder) as data:
        for task in data["tasks"]:
            task["metrics"].append({**task["metrics"][0], **normalised})
    assert preferred_metric(preset, [open_run(run.folder)]) == "above-chance"
    with edited(run.folder) as data:
        for task in data["tasks"]:
            task["metrics"].reverse()
    assert preferred_metric(preset, [open_run(run.folder)]) is None


def test_json_of_extra_columns(tmp_path: Path) -> None:
    from evalwright.reports.board_files import board_json, board_rows

    run = make_run(tmp_path, scores={"a": [1.0, 0.0], "b": [1.0, 0.0]}, model="x/m-8B")
    board = shown([run], "open-llm")
    record = json.loads(json.dumps(board_json(board, "T")))
    assert record["preset"] == "open-llm"
    assert record["extra_columns"] == [
        {
            "name": "size",
            "title": "Size",
            "scale": "text",
            "lower_is_better": None,
            "note": "",
        }
    ]
    (model,) = record["models"]
    assert model["extra"] == {"size": "8B"}
    assert model["facts"] == {"provider": "x", "size": 8.0}
    assert model["fact_sources"] == {"provider": "the name", "size": "the name"}
    assert board_rows(board)[0]["size"] == "8B"
    assert "From the name: the size of x/m-8B." in board.notes
