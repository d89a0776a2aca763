"""A library that a task's Python lacks is named with what installs it, also where the module has
words of its own, or none.
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest

from evalwright.compat.lm_eval.tasks import functions, squad_metrics
from evalwright.compat.lm_eval.tasks.functions import (
    EXTRAS,
    advice,
    imported_by,
    install_command,
)
from evalwright.core.errors import TaskError

from .conftest import Load, Write

ROOT = Path(__file__).parents[4]
OF_SCRIPTS = {
    "bigbench",
    "bs4",
    "html2text",
    "httpx",
    "lang_libs",
    "langcodes",
    "pytest",
}
"""What only scripts beside the tasks import, which made their files or test them."""
WITH_THE_REST = {
    "datasets",
    "numpy",
    "scipy",
    "yaml",
    "tqdm",
    "jinja2",
    "packaging",
    "typing_extensions",
    "huggingface_hub",
    "psutil",
}
"""What comes with evalwright, or with datasets and transformers."""


def test_every_extra_that_is_named_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    extras = project["optional-dependencies"]
    assert set(EXTRAS) <= set(extras)
    page = (ROOT / "docs" / "reference" / "lm-eval-tasks.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in extras if name.startswith("lm-eval-"))


def test_the_table_knows_all_that_shipped_tasks_import() -> None:
    home = os.environ.get("LM_EVAL_TASKS")
    if not home:
        pytest.skip("the released package is not here (make test has it)")
    known = {library for libraries in EXTRAS.values() for library in libraries}
    found: dict[str, Path] = {}
    for file in Path(home).rglob("*/*.py"):
        beside = {path.stem for path in file.parent.glob("*.py")}
        found |= {
            name: file
            for name in imported_by(file)
            if name not in sys.stdlib_module_names | beside
        }
    left = set(found) - known - OF_SCRIPTS - WITH_THE_REST
    assert left == {"tinyBenchmarks", "radgraph"}, (
        "of which neither is in an extra: one is not on PyPI, the other needs BLEURT, which is not"
    )


def test_what_installs_a_library() -> None:
    assert (
        install_command("rouge_score.rouge_scorer")
        == "pip install 'evalwright[lm-eval]'"
    )
    assert install_command("no_such") == "pip install no_such"
    assert install_command("tinyBenchmarks").startswith("pip install git+https://")
    for error, said in (
        (
            ModuleNotFoundError("please install lm_eval[japanese_leaderboard]"),
            "evalwright[lm-eval-japanese-leaderboard]",
        ),
        (AssertionError('pip install lm_eval["math"]'), "evalwright[lm-eval]"),
        (
            Exception("Please install unitxt via 'pip install unitxt'."),
            "evalwright[lm-eval-unitxt]",
        ),
        (
            OSError("[E050] Can't find model 'ca_core_news_sm'."),
            "python -m spacy download ca_core_news_sm",
        ),
    ):
        assert said in advice(error)
    assert advice(ValueError("no")) == ""


def test_reworded_and_caught_errors(
    load: Load, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    monkeypatch.setitem(sys.modules, "pymorphy3", None)
    write("rows.jsonl", [{"q": "?"}])
    head = "dataset_path: json\ndataset_kwargs: {data_files: {test: tasks/rows.jsonl}}\ntest_split: test\ndoc_to_text: q\ndoc_to_target: q\n"
    for name, code in (
        (
            "reworded",
            "try:\n    import jieba\nexcept ImportError:\n    raise ImportError('install something')\n",
        ),
        (
            "caught",
            "try:\n    import pymorphy3\nexcept ImportError:\n    print('it is missing')\ndef f(table):\n    return table\n",
        ),
    ):
        write(f"{name}_code.py", code)
        write(
            f"{name}.yaml",
            f"{head}task: {name}\nprocess_docs: !function {name}_code.f\n",
        )
    for name, extra in (("reworded", "lm-eval-longbench"), ("caught", "lm-eval-libra")):
        (task,) = load(name, trust=(tmp_path / "tasks",))
        with pytest.raises(TaskError, match=rf"pip install 'evalwright\[{extra}\]'"):
            len(task.samples)


def test_squad_as_transformers_had_it() -> None:
    pytest.importorskip("transformers")
    functions.install([])
    import transformers.data.metrics.squad_metrics as found

    assert found.compute_f1("The cat sat.", "a cat ran") == 0.5
    assert squad_metrics.compute_exact("An  Apple!", "apple") == 1
    assert squad_metrics.compute_f1("the", "") == 1
    assert squad_metrics.compute_f1("cat", "") == 0
    assert squad_metrics.compute_f1("b b c", "b b b") == pytest.approx(2 / 3)
