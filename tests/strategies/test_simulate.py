"""Simulations: their worth is what was asked for, they say what they are, and nothing of them
reaches a prompt or the store.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from evalwright import evaluate
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.models.registry import open_model
from evalwright.runs.reader import Run, open_run
from support.typed import typed

pytestmark = pytest.mark.usefixtures("own_folder")

CHOICES = [
    {"id": f"c{n}", "question": f"Which is {n}?", "choices": [str(n + k) for k in range(4)], "answer": 0} for n in range(30)
]  # fmt: skip


def choice_task(mode: str) -> str:
    Path("c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in CHOICES))
    path = Path(f"{mode}.yaml")
    path.write_text(
        f"task: t-{mode}\ndataset: c.jsonl\n"
        'sample: {input: "{{ question }}", choices: "{{ choices }}", target: "{{ answer }}"}\n'
        'prompt: {user: "{{ input }}\\n{{ lettered }}\\nAnswer:"}\n'
        f"answer: {{mode: {mode}}}\nscorers: [choice]\n"
    )
    return str(path)


def value(run: Run, task: str) -> float:
    return run.task(task).metrics[0].estimate.value


@pytest.mark.parametrize(
    "task", ["factual-closed-book", "factual-grounded", "factual-stress"]
)
def test_gold_and_wrong_on_bundled_tasks(task: str) -> None:
    gold, wrong = evaluate(task, ["oracle/gold", "oracle/wrong"], limit=60)
    assert (value(gold, task), value(wrong, task)) == (1.0, 0.0)
    assert (gold.n_missing, wrong.n_missing) == (0, 0)
    assert gold.simulated and gold.label == "oracle/gold (SIMULATION)"


@pytest.mark.parametrize("mode", ["likelihood", "letter", "generate"])
def test_gold_and_wrong_among_options(mode: str) -> None:
    gold, wrong = evaluate(choice_task(mode), ["oracle/gold", "oracle/wrong"])
    assert (value(gold, f"t-{mode}"), value(wrong, f"t-{mode}")) == (1.0, 0.0)


def test_a_share_is_chosen_by_id_and_seed() -> None:
    def right(**arguments: Any) -> set[str]:
        words = [
            word for key, one in arguments.items() for word in ("-M", f"{key}={one}")
        ]
        name = "-".join(map(str, arguments.values())) or "all"
        done = typed(
            "run",
            "factual-closed-book",
            "--model",
            "oracle/gold",
            *words,
            "--name",
            name,
            "--limit",
            "80",
            "--quiet",
        )
        assert done.code == 0
        rows = open_run(Path("runs") / name).rows()
        return {
            row["id"]
            for row in rows
            if row["scores"].get("short-answer", {}).get("value") == 1.0
        }

    everything = right()
    some = right(share=0.7)
    other = right(share=0.7, seed=1)
    more = right(share=0.8)
    n = len(everything)
    # Four standard deviations of a binomial share.
    assert abs(len(some) / n - 0.7) < 4 * (0.21 / n) ** 0.5
    assert some < more < everything and some != other
    label = open_run(Path("runs/0.7")).label
    assert label == "oracle/gold share=0.7 (SIMULATION)"


def test_prompts_are_those_of_every_model_and_nothing_is_stored() -> None:
    gold, echo = evaluate(
        "factual-closed-book", ["oracle/gold", "scripted/echo"], limit=20
    )
    prompts = [[row["prompt"] for row in run.rows()] for run in (gold, echo)]
    assert prompts[0] == prompts[1]
    assert gold.data["usage"]["asked"] == gold.data["usage"]["stored"] == 0
    stored = list(Path("home").rglob("*.sqlite*"))
    assert stored
    for row in gold.rows():
        assert not any(target in row["input"] for target in row["targets"][:1])
    with sqlite3.connect(
        f"file:{next(one for one in stored if one.suffix in ('.sqlite', '.sqlite3', '.db'))}?mode=ro",
        uri=True,
    ) as base:
        tables = [
            name
            for (name,) in base.execute(
                "select name from sqlite_master where type = 'table'"
            )
        ]
        held = {name: list(base.execute(f'select * from "{name}"')) for name in tables}
    assert all("oracle" not in repr(rows) for rows in held.values())


def test_a_simulation_stands_on_no_board_with_models_unless_it_is_asked_for() -> None:
    evaluate("factual-closed-book", "oracle/gold", limit=10, name="sim")
    evaluate("factual-closed-book", "scripted/echo", limit=10, name="real")
    done = typed("leaderboard", "sim", "real")
    assert done.code == 2 and "'sim' were made from the gold answers" in done.err
    done = typed(
        "leaderboard",
        "sim",
        "real",
        "--with-simulations",
        "--html",
        "b.html",
        "--markdown",
        "b.md",
    )
    assert done.code == 0 and "(SIMULATION)" in done.out
    assert (
        "(SIMULATION)" in Path("b.html").read_text()
        and "SIMULATION" in Path("b.md").read_text()
    )
    assert typed("leaderboard", "sim").code == 0
    assert "SIMULATION" in typed("runs", "show", "sim").out


def test_what_an_oracle_is_not() -> None:
    with pytest.raises(UnknownName, match="'gold'"):
        open_model("oracle/golden")
    with pytest.raises(ConfigurationError, match="from 0 to 1"):
        open_model("oracle/gold", {"share": 1.5})
    done = typed(
        "run",
        "factual-closed-book",
        "--model",
        "scripted/echo",
        "--role",
        "judge=oracle/gold",
    )
    assert done.code == 2 and "cannot be the model for the role 'judge'" in done.err
    rows = [{"id": "a", "text": "A page."}]
    Path("pages.jsonl").write_text(json.dumps(rows[0]) + "\n")
    Path("pages.yaml").write_text(
        'task: pages\ndataset: pages.jsonl\nsample: {input: "{{ text }}"}\nanswer: {mode: perplexity}\n'
    )
    done = typed("run", "pages.yaml", "--model", "oracle/gold")
    assert done.code == 2
