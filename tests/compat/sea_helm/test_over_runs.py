"""The numbers of SEA-HELM's notebook as a flag: of its result folders and of runs of ours, equal
to what the notebook's own code makes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from compat.sea_helm.sea_results import write_results, write_tree
from compat.sea_helm.small_tree import TREE
from evalwright.cli import main
from evalwright.compat.sea_helm.over_runs import write_over_runs
from evalwright.compat.sea_helm.results import find_runs

NOTEBOOK = TREE / "helpers" / "results_aggregation.ipynb"
RECORDED = {
    "mean": 37.222222222222214,
    "stderr": 2.581164376007997,
    "sea_mean": 37.222222222222214,
}
"""What the notebook's own code made of `theirs` below (numpy 2.4.6, scikit-learn 1.9.1)."""


def theirs(root: Path) -> Path:
    """Three runs of a model: one has a request without a reply, and a task whose code raised; a
    task has one run alone.
    """
    return write_results(
        root / "acme", "acme/tiny", ["AAB-AB", "AABBBA", "BABBAA"], raised=[0]
    )


def test_of_a_result_folder(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs(own_folder / "results")
    assert main(["import", "sea-helm", "results", "--name", "r", "--over-runs"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "acme/tiny over 3 runs, as SEA-HELM's notebook: all languages 37.22, SEA 37.22, id 23.33, tl 51.11."
        in said
    )
    found = yaml.safe_load((own_folder / "runs" / "acme--tiny_scores.yaml").read_text())
    assert {name: found[name] for name in RECORDED} == pytest.approx(RECORDED)
    assert found["tl"]["nlu"]["tasks"]["colours"]["mean"] == pytest.approx(
        51.111111111111114
    )
    assert len(found["mean_list"]) == 30
    # Without the flag there is no such file, and a run of ours is no other for it.
    assert main(["import", "sea-helm", "results", "--name", "s", "--out", "plain"]) == 0
    assert not list((own_folder / "plain").glob("*.yaml"))


def test_of_runs_of_ours_beside_their_export(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(write_tree(own_folder / "tree"))
    run = ["run", "sea-helm:mine", "--task-root", root, "-D", "runs=3", "--quiet"]
    assert (
        main(
            [
                *run,
                "--model",
                "scripted/hash",
                "--scoring",
                "published",
                "--name",
                "own",
            ]
        )
        == 0
    )
    assert main(["export", "sea-helm", "own", "--out", "exp"]) == 0
    assert not list(Path("exp").rglob("*_scores.yaml"))
    capsys.readouterr()
    assert main(["export", "sea-helm", "own", "--out", "exp", "--over-runs"]) == 0
    assert (
        "scripted/hash over 3 runs, as SEA-HELM's notebook: all languages"
        in capsys.readouterr().err
    )
    (file,) = Path("exp").rglob("*_scores.yaml")
    assert file == Path("exp/scripted/hash/hash_scores.yaml")
    found = yaml.safe_load(file.read_text())
    assert {"id", "tl", "mean", "stderr", "sea_mean"} <= found.keys()


def test_without_a_language_of_the_sea_average_the_rest_is_written(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = theirs(own_folder / "results")
    for config in folder.rglob("configs/*.yaml"):
        text = config.read_text().replace('"id"', '"jv"').replace('"tl"', '"su"')
        config.write_text(text)
    for run in folder.glob("run_*"):
        for before, after in (("id", "jv"), ("tl", "su")):
            place = run / "inferences" / before
            for file in place.rglob("*.jsonl"):
                file.rename(
                    file.with_name(file.name.replace(f"_{before}", f"_{after}", 1))
                )
            place.rename(run / "inferences" / after)
    assert main(["import", "sea-helm", "results", "--name", "r", "--over-runs"]) == 0
    assert "none of its languages is in the SEA average" in " ".join(
        capsys.readouterr().out.split()
    )
    found = yaml.safe_load((own_folder / "runs" / "acme--tiny_scores.yaml").read_text())
    assert found["mean"] == pytest.approx(RECORDED["mean"])
    assert "sea_mean" not in found


# -- beside the notebook's own code
# ---------------------------------------------------------------------------------------


@pytest.fixture
def notebook(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[Path, int], dict[str, Any]]]:
    """The notebook's numbers of a model's folder over so many runs, by its own cells."""
    if not NOTEBOOK.is_file():
        pytest.skip("SEA_HELM_TREE names no checkout of SEA-HELM")
    for library in ("pandas", "sklearn", "tqdm"):
        pytest.importorskip(library)
    monkeypatch.setitem(sys.modules, "ujson", json)  # the same functions
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"][:4]
    module = ModuleType("results_aggregation")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(
        compile(
            "\n\n".join("".join(cell["source"]) for cell in cells),
            str(NOTEBOOK),
            "exec",
        ),
        vars(module),
    )

    class Pool:
        def starmap(
            self, function: Callable[..., Any], many: Sequence[Any]
        ) -> list[Any]:
            return [function(*each) for each in many]

    def numbers(folder: Path, runs: int) -> dict[str, Any]:
        configs, data = module.load_task_scores(
            str(folder.parent), folder.name, runs, Pool()
        )
        scores, _ = module.aggregate_scores(configs, data, n_bootstraps=30)
        found: dict[str, Any] = json.loads(json.dumps(scores))
        return found

    yield numbers


def test_every_number_is_the_notebooks(
    own_folder: Path, notebook: Callable[[Path, int], Mapping[str, Any]]
) -> None:
    folder = theirs(own_folder / "results")
    assert main(["import", "sea-helm", "results", "--name", "r", "--over-runs"]) == 0
    ours = yaml.safe_load((own_folder / "runs" / "acme--tiny_scores.yaml").read_text())
    assert dict(flat(ours)) == pytest.approx(dict(flat(notebook(folder, 3))), abs=1e-9)
    root = str(write_tree(own_folder / "tree"))
    run = ["run", "sea-helm:mine", "--task-root", root, "-D", "runs=8", "--quiet"]
    for scoring in ("published", "corrected"):
        assert (
            main(
                [
                    *run,
                    "--model",
                    "scripted/hash",
                    "--scoring",
                    scoring,
                    "--name",
                    scoring,
                ]
            )
            == 0
        )
        assert (
            main(
                [
                    "export",
                    "sea-helm",
                    scoring,
                    "--out",
                    f"exp/{scoring}",
                    "--over-runs",
                ]
            )
            == 0
        )
        (file,) = Path(f"exp/{scoring}").rglob("*_scores.yaml")
        ours = yaml.safe_load(file.read_text())
        assert dict(flat(ours)) == pytest.approx(
            dict(flat(notebook(file.parent, 8))), abs=1e-9
        )


def flat(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping | list):
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, part in pairs:
            yield from flat(part, f"{where}/{key}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield where, value


def test_runs_of_other_sizes_are_named_before_anything_is_written(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = write_results(Path("out"), "acme/tiny", ["AABBAB", "AABBBA"])
    path = next(place.glob("run_1/inferences/id/colours/*s_id.jsonl"))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
    assert main(["import", "sea-helm", "out", "--over-runs"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "of colours/id run_0 has 6, run_1 has 4 rows" in said
    assert not Path("runs").exists()


def test_one_label_has_no_number_where_the_notebook_divides_by_zero(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = write_results(Path("out"), "acme/tiny", ["AABBAB"])
    path = next(place.glob("run_0/inferences/id/colours/*s_id.jsonl"))
    path.write_text(path.read_text().replace('"label": "B"', '"label": "A"'))
    (several,) = find_runs(Path("out"))
    told = write_over_runs(several, Path("scores.yaml"))
    assert "all languages n/a" in told[0]
    assert "colours/id has one label in the data" in told[1]
    assert "ZeroDivisionError" in told[1]
