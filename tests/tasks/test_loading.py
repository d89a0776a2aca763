"""Names, paths, members, groups, overrides: what `load_task` finds, and what it says when it
does not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import DatasetError, TaskError, UnknownName
from evalwright.core.samples import Answer, Sample
from evalwright.tasks.loading import load_task, load_tasks, task_from_definition
from tasks.conftest import Write

FILE = "task: {name}\ngroup: [g]\ndataset: {{rows: [{{input: a, target: b}}]}}\n"
SHARED = (
    Path(__file__).resolve().parents[2].parent / "shared" / "data" / "global_mmlu_lite"
)


def test_by_name_from_a_folder_a_variable_or_a_path(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("mine/one.yaml", FILE.format(name="one"))
    assert load_task("one", folders=["mine"]).name == "one"
    assert load_task(path).name == load_task(str(path)).name == "one"
    monkeypatch.setenv("EVALWRIGHT_TASKS", "mine")
    assert load_task("one").name == "one"
    assert load_task("one").source.endswith("one.yaml")


def test_a_group_gives_all_its_members(write: Write) -> None:
    write("mine/one.yaml", FILE.format(name="one"))
    write(
        "mine/two.yaml", FILE.format(name='"two-{{ x }}"') + "for_each: {x: [1, 2]}\n"
    )
    assert [task.name for task in load_tasks("g", folders=["mine"])] == [
        "one",
        "two-1",
        "two-2",
    ]
    assert [task.name for task in load_tasks("two-2", folders=["mine"])] == ["two-2"]
    with pytest.raises(TaskError, match=r"3 tasks \(one, two-1, two-2\)"):
        load_task("g", folders=["mine"])


def test_unknown_names_come_with_the_closest(write: Write) -> None:
    with pytest.raises(UnknownName, match=r"'factul'\. Did you mean 'factual'"):
        load_task("factul")
    path = write(
        "many.yaml", FILE.format(name='"m-{{ x }}"') + "for_each: {x: [art, law]}\n"
    )
    with pytest.raises(
        UnknownName,
        match=r"'m-lwa'. Did you mean 'm-law' or 'm-art'\?.*many.yaml",
    ):
        load_task(f"{path}:m-lwa")
    with pytest.raises(UnknownName, match=r"'mnay.yaml'. Did you mean 'many.yaml'"):
        load_task("mnay.yaml")


def test_two_files_of_one_name_are_not_chosen_between(write: Write) -> None:
    write("mine/a.yaml", FILE.format(name="same"))
    write("mine/b.yaml", FILE.format(name="same"))
    with pytest.raises(
        TaskError,
        match=r"'same' .*'mine/a.yaml' and 'mine/b.yaml'",
    ):
        load_task("same", folders=["mine"])


def test_a_folder_hides_a_bundled_task_of_the_same_name(write: Write) -> None:
    write("mine/a.yaml", FILE.format(name="factual-stress"))
    assert len(load_task("factual-stress", folders=["mine"]).samples) == 1


MMLU = """\
task: "global-mmlu-lite-{{ language }}"
for_each: {language: [en, id, vi]}
dataset: "%s/{{ language }}_test.jsonl"
sample:
  input: "{{ prompts[0].question }}"
  choices: ["{{ prompts[0].option_a }}", "{{ prompts[0].option_b }}", "{{ prompts[0].option_c }}", "{{ prompts[0].option_d }}"]
  target: "{{ label }}"
  metadata: {domain: "{{ metadata.subject_category }}"}
prompt:
  few_shot: {count: 5, dataset: "%s/{{ language }}_dev.jsonl"}
answer: {mode: letter}
metadata: {language: "{{ language }}"}
"""


@pytest.mark.skipif(
    not SHARED.is_dir(),
    reason="the data of Global-MMLU-Lite is not beside the repository",
)
def test_a_real_benchmark(write: Write) -> None:
    path = write("mmlu.yaml", MMLU % (SHARED, SHARED))
    for language in ("en", "id", "vi"):
        task = load_task(f"{path}:{language}", trust=[path.parent])
        assert len(task.samples) == 400
        strategy: object = task.strategy
        prompts = [strategy.render(sample) for sample in task.samples]  # type: ignore[attr-defined]
        shared = prompts[0][: prompts[0].rindex("\n\n")]
        # The shots are the same for every question, so that their computation can be shared.
        assert sum(prompt.startswith(shared) for prompt in prompts) == 400
        assert shared.count("\nAnswer: ") == 5
        assert {sample.metadata["language"] for sample in task.samples} == {language}
        assert "STEM" in {sample.metadata["domain"] for sample in task.samples}
    short = write(
        "wrong.yaml",
        (MMLU % (SHARED, SHARED)).replace("prompts[0].question", "prompts[0].questin"),
    )
    with pytest.raises(DatasetError, match=r"row 1: `sample.input` .*'questin'"):
        load_task(f"{short}:en", trust=[short.parent])


def test_a_definition_takes_samples_and_a_strategy_of_ones_own() -> None:
    """What is scored, and how, stands in the schema; rows and requests are a dialect's."""
    rows = [Sample("one", "2 + 2 =", targets=("4",))]
    definition = {"task": "sums", "scorers": ["exact-match"], "slices": ["language"]}
    made = task_from_definition(
        definition, samples=OwnSamples(rows), strategy=OwnStrategy()
    )
    assert list(made.samples) == rows
    assert isinstance(made.strategy, OwnStrategy)
    assert [scorer.name for scorer in made.scorers] == ["exact-match"]
    assert made.definition["dataset"]["samples"] == 1
    with pytest.raises(TaskError, match="dataset"):
        task_from_definition(
            {**definition, "dataset": {"rows": [{}]}}, samples=OwnSamples(rows)
        )


class OwnSamples(list[Sample]):
    """A source of samples that stand in memory."""

    content_hash = "of one's own"


class OwnStrategy:
    """Says the same to everything."""

    needs = frozenset[Any]()

    async def __call__(self, sample: Sample, ask: Any, draw: int) -> Answer:
        return Answer("4")
