"""Names as tasks: groups, tags, overrides, trust, shots, coercions; and published and corrected
scoring side by side.
"""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import pytest

from evalwright import evaluate
from evalwright.analysis.task_checks.material import preview_requests
from evalwright.compat.lm_eval.tasks.loading import Library, load, read_options
from evalwright.compat.lm_eval.tasks.options import Options
from evalwright.compat.lm_eval.tasks.results import all_results
from evalwright.core.errors import (
    ConfigurationError,
    DatasetError,
    TaskError,
    UnknownName,
)
from evalwright.core.requests import Generate, Request
from evalwright.core.responses import Response
from evalwright.core.tasks import Task
from evalwright.models.scripted import ScriptedModel

from .conftest import Load, Write, work_of

pytest.importorskip("datasets")

ROWS = [
    {"q": f"Is {n} even?", "options": ["no", "yes"], "a": 1 - n % 2} for n in range(6)
]
CHOICE = """
    task: even
    dataset_path: json
    dataset_kwargs: {data_files: {train: tasks/rows.jsonl, test: tasks/rows.jsonl}}
    output_type: multiple_choice
    test_split: test
    doc_to_text: "{{q}}"
    doc_to_choice: options
    doc_to_target: a
    metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
"""


@pytest.fixture(autouse=True)
def _files(write: Write) -> None:
    write("rows.jsonl", ROWS)
    write("even.yaml", CHOICE)


def asked(task: Task, index: int = 0) -> list[Request]:
    return preview_requests(task, index)


def scored(task: Task, answer: Any, **settings: Any) -> dict[str, Any]:
    (run,) = evaluate(task, ScriptedModel(answer, version="1"), **settings)
    assert run.n_missing == 0, run.data["tasks"]
    return {
        metric["label"]: metric["value"] for metric in run.data["tasks"][0]["metrics"]
    }


def test_published_shots_follow_places_and_corrected_ones_rows(
    load: Load, write: Write
) -> None:
    def shots(scoring: str, rows: list[dict[str, Any]]) -> dict[str, str]:
        write("rows.jsonl", rows)
        (task,) = load("even", num_fewshot=2, scoring=scoring)
        texts = [
            str(one.payload()["log_likelihood"])
            for index in range(len(rows))
            for one in asked(task, index)[:1]
        ]
        return {text.rpartition("\n\n")[2]: text for text in texts}

    for rows in (ROWS, ROWS[::-1]):
        found = shots("corrected", rows)
        for question, text in found.items():
            assert text.count(question) == 1, "a question is its own shot"
    assert shots("corrected", ROWS) == shots("corrected", ROWS)
    published = shots("published", ROWS)
    assert any(text.count(question) > 1 for question, text in published.items())


def test_too_few_rows_for_the_shots(load: Load) -> None:
    (task,) = load("even", num_fewshot=6)
    asked_for = r"needs 6 shots, but there are 5 rows"
    with pytest.raises(TaskError, match=asked_for):
        work_of(task).opened.questions(0, ROWS[0])


def test_digits_as_answers(load: Load, write: Write) -> None:
    rows = [
        {"q": "Half of 4?", "options": ["1", "2", "3"], "a": "2"},
        {"q": "Half of 2?", "options": ["1", "9"], "a": "1"},
    ]
    write("rows.jsonl", rows)
    write("digits.yaml", 'include: even.yaml\ntask: digits\ndoc_to_target: "{{a}}"\n')
    script = {"Half of 4?": " 2", "Half of 2?": " 1"}
    assert scored(load("digits")[0], script)["acc"] == 1.0
    assert scored(load("digits", scoring="published")[0], script)["acc"] == 0.0


def test_numbers_as_options(load: Load, write: Write) -> None:
    """A CSV gives numbers, which lm_eval sends as texts and then cannot score."""
    rows = [{"q": "Half of 4?", "right": 2, "wrong": 3.5, "a": 0}]
    write("rows.jsonl", rows)
    write(
        "numbers.yaml",
        "include: even.yaml\ntask: numbers\ndoc_to_target: a\n"
        'doc_to_choice: "{{[right, wrong]}}"\n',
    )
    for scoring in ("corrected", "published"):
        (task,) = load("numbers", scoring=scoring)
        assert scored(task, {"Half of 4?": " 2"})["acc"] == 1.0


def test_several_right_answers_keep_graded_scores_only_when_corrected(
    load: Load, write: Write
) -> None:
    write(
        "half.py",
        "def half(references, predictions):\n    return 0.5 if references[0] == 'b' else 0.0\n",
    )
    write(
        "graded.yaml",
        """
        include: even.yaml
        task: graded
        output_type: generate_until
        doc_to_choice: null
        doc_to_target: "['a', 'b']"
        metric_list: [{metric: !function half.half, aggregation: mean, higher_is_better: true}, {metric: exact_match}]
        """,
    )
    trust = (Path("tasks"),)
    assert scored(load("graded", trust=trust)[0], "b") == {
        "half": 0.5,
        "exact_match": 1.0,
    }
    assert scored(load("graded", trust=trust, scoring="published")[0], "b") == {
        "half": 1.0,
        "exact_match": 1.0,
    }


def test_python_needs_trust(load: Load, write: Write, tmp_path: Path) -> None:
    marked = f"pathlib.Path({str(tmp_path / 'ran')!r}).touch()"
    write(
        "docs.py",
        f"import pathlib\n{marked}\ndef only(t):\n    return t.select([0, 1])\n",
    )
    write(
        "few.yaml", "include: even.yaml\ntask: few\nprocess_docs: !function docs.only\n"
    )
    with pytest.raises(TaskError, match="allow it with --trust"):
        load("few")
    with pytest.raises(TaskError, match="allow it with --trust"):
        load("few", trust=(tmp_path / "elsewhere",))
    assert not (tmp_path / "ran").exists()
    assert len(load("few", trust=(tmp_path / "tasks",))[0].samples) == 2


def test_installed_modules_need_trust_too(load: Load, write: Write) -> None:
    write(
        "system.yaml",
        "include: even.yaml\ntask: system\nprocess_results: !function os.system\n",
    )
    with pytest.raises(TaskError, match="allow it with --trust"):
        load("system")


def test_a_missing_library_is_said_before_anything_is_asked(
    load: Load, write: Write
) -> None:
    write("lacks.py", "import no_such_library\n")
    write(
        "lacks.yaml",
        "include: even.yaml\ntask: lacks\nprocess_docs: !function lacks.f\n",
    )
    (task,) = load("lacks", trust=(Path("tasks"),))
    with pytest.raises(TaskError, match="pip install no_such_library"):
        len(task.samples)


def test_task_modules_have_the_helpers_of_the_package(load: Load, write: Write) -> None:
    code = """
    from lm_eval.api.filter import Filter
    from lm_eval.filters.extraction import RegexFilter
    from lm_eval.utils import general_detokenize, weighted_f1_score

    class Last(Filter):
        def apply(self, resps, docs):
            return [answers[0][-1:] for answers in resps]

    def results(doc, found):
        return {"acc": float(general_detokenize("a .") == "a." and found[0] == "b"), "wf1": (1, 1)}
    """
    write("own.py", code)
    write(
        "own.yaml",
        """
        include: even.yaml
        task: own
        output_type: generate_until
        process_results: !function own.results
        filter_list: [{name: last, filter: [{function: !function own.Last}]}]
        """,
    )
    (task,) = load("own", trust=(Path("tasks"),))
    found = scored(task, "ab")
    assert found["acc,last"] == 1.0 and "wf1,last" in found


@pytest.mark.parametrize("package", ["lm_eval", "evalwright.compat.lm_eval"])
def test_a_filter_that_a_module_registers_is_named_in_a_task(
    package: str, load: Load, write: Write
) -> None:
    """By the released package's name, or by ours, as scripts have it that need no other package."""
    code = f"""
    from {package}.api.filter import Filter
    from {package}.api.metrics import mean, metric_max_over_ground_truths, weighted_mean
    from {package}.api.registry import register_filter
    from {package}.filters.extraction import RegexFilter

    @register_filter("ending of {package}")
    class Ending(Filter):
        def __init__(self, length=1):
            self.length = length

        def apply(self, resps, docs):
            return [[answer[-self.length:] for answer in answers] for answers in resps]

    def results(doc, found):
        same = metric_max_over_ground_truths(lambda a, b: float(a == b), found[0], ["x", "bc"])
        return {{"acc": same, "helpers": mean([1, 2]) == 1.5 and weighted_mean([(1, 2), (2, 2)]) == 0.75}}
    """
    write("own.py", code)
    write(
        "own.yaml",
        f"""
        include: even.yaml
        task: own
        output_type: generate_until
        process_results: !function own.results
        filter_list: [{{name: end, filter: [{{function: ending of {package}, length: 2}}, {{function: take_first}}]}}]
        """,
    )
    (task,) = load("own", trust=(Path("tasks"),))
    found = scored(task, "abc")
    assert found["acc,end"] == 1.0 and found["helpers,end"] == 1.0


def test_the_metrics_that_scripts_import() -> None:
    from evalwright.compat.lm_eval.api import metrics

    assert metrics.mean_stderr([1, 2, 3]) == pytest.approx(3**-0.5)
    assert metrics.median([3, 1, 2, 4]) == 3 and metrics.sample_stddev(
        [1, 3]
    ) == pytest.approx(2**0.5)
    assert metrics.perplexity([math.log(0.5)]) == pytest.approx(2)
    assert metrics.weighted_perplexity([(math.log(0.25), 2)]) == pytest.approx(2)
    assert metrics.bypass_agg([1]) == 999 and metrics.bypass([1]) is None  # type: ignore[func-returns-value]
    assert metrics.f1_score([(1, 1), (0, 1)]) == pytest.approx(2 / 3)
    assert metrics.chrf([("a b c", "a b c")]) == pytest.approx(100)
    assert set(metrics.__all__) <= set(dir(metrics))


def test_rows_that_fail_are_counted_and_not_scored(load: Load, write: Write) -> None:
    write("bad.yaml", 'include: even.yaml\ntask: bad\ndoc_to_target: "{{a + 5}}"\n')
    (run,) = evaluate(
        load("bad")[0],
        ScriptedModel(lambda request: Response(log_likelihood=-1.0, is_greedy=False)),
    )
    assert run.n_missing == len(ROWS)
    published = load("bad", scoring="published")[0]
    (run,) = evaluate(
        published,
        ScriptedModel(lambda request: Response(log_likelihood=-1.0, is_greedy=False)),
    )
    assert run.n_missing == 0 and run.tasks[0].metrics[0].estimate.value == 0.0


def test_generation_settings(load: Load, write: Write) -> None:
    write(
        "write.yaml",
        """
        include: even.yaml
        task: write
        output_type: generate_until
        doc_to_choice: null
        generation_kwargs: {do_sample: true, temperature: 0.5, top_p: 0.9, until: ["."], max_gen_toks: 7}
        repeats: 2
        filter_list: [{name: none, filter: [{function: take_first}]}]
        metric_list: [{metric: exact_match}]
        """,
    )
    (task,) = load("write")
    wanted = {"max_tokens": 7, "temperature": 0.5, "top_p": 0.9, "stop": (".",)}
    assert asked(task) == [
        Generate("Is 0 even?", draw=draw, **wanted)  # type: ignore[arg-type]
        for draw in range(2)
    ]


def test_groups_tags_and_overrides(load: Load, write: Write) -> None:
    write("odd.yaml", "include: even.yaml\ntask: odd\ntag: halves\n")
    write(
        "all.yaml",
        """
        group: all
        group_alias: All of it
        task:
          - even
          - halves
          - {group: inner, task: [{task: even, num_fewshot: 1, task_alias: again}], aggregate_metric_list: {metric: acc}}
        aggregate_metric_list: [{metric: acc, weight_by_size: truez}]
        """,
    )
    library = Library(Options(roots=(Path("tasks").resolve(),), scoring="published"))
    found = library.collect("all")
    assert set(found.tasks) == {"even", "odd"}
    assert found.groups["all"].children == ("even", "odd", "all::inner")
    assert found.groups["all"].findings == (
        "`weight_by_size: truez` is neither true nor false and counts as True.",
    )
    tasks = load("all", scoring="published")
    runs = evaluate(tasks, ScriptedModel(" yes"))
    results = all_results(runs[0])
    assert results["all"]["acc,none"] == 0.5 and results["all"]["sample_len"] == 12
    assert results["all"]["alias"] == "All of it"


def test_misspelt_keys(
    load: Load, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    write("typo.yaml", "include: even.yaml\ntask: typo\ndoc_to_txt: x\n")
    with pytest.raises(UnknownName, match="Did you mean 'doc_to_text'"):
        load("typo")
    write(
        "nested.yaml",
        "include: even.yaml\ntask: nested\nmetric_list: [{metric: acc, high_is_better: true}]\n",
    )
    with caplog.at_level(logging.WARNING, logger="evalwright.lm_eval"):
        (task,) = load("nested", scoring="published")
    assert "Was 'higher_is_better' meant?" in caplog.text
    assert "Was 'higher_is_better' meant?" in task.metadata["notes"][0]


def test_a_split_that_is_not_there(load: Load, write: Write) -> None:
    write("off.yaml", "include: even.yaml\ntask: lost\ntest_split: tset\n")
    with pytest.raises(
        DatasetError, match="have no split 'tset'; they have: test, train"
    ):
        len(load("lost")[0].samples)


def test_settings_from_a_configuration(tmp_path: Path) -> None:
    settings = {"task_root": ["tasks"], "scoring": "published", "num_fewshot": 1}
    (task,) = load("even", settings, chat=True)
    assert task.definition["num_fewshot"] == 1 and "chat" not in task.strategy.needs
    (task,) = load("tasks/even.yaml", {})
    assert task.name == "lm-eval:even"
    with pytest.raises(UnknownName, match="task_root"):
        read_options({"task_rot": ["tasks"]})
    with pytest.raises(ConfigurationError, match="0 or more"):
        read_options({"num_fewshot": -1})


@pytest.mark.parametrize("wanted", [100_000_000, 0, "many", 1.5])
def test_a_file_cannot_want_any_number_of_requests(
    load: Load, write: Write, wanted: Any
) -> None:
    write("often.yaml", f"include: even.yaml\ntask: often\nrepeats: {wanted}\n")
    with pytest.raises(TaskError, match=r"'often'.*`repeats: .*1 to 10,000"):
        load("often")


def test_a_group_in_itself_is_a_sentence(load: Load, write: Write) -> None:
    write("a.yaml", "group: a\ntask: [b]\n")
    write("b.yaml", "group: b\ntask: [{group: a, num_fewshot: 1}]\n")
    with pytest.raises(TaskError, match="group 'a' is a member of itself"):
        load("a")


@pytest.mark.parametrize(
    ("settings", "num_fewshot", "sentences"),
    [
        ("", 0, []),
        ("", 2, ["a question is never its own shot"]),
        (
            'doc_to_target: "{{a}}"',
            0,
            ["answers that are digits are not read as positions"],
        ),
        ('doc_to_target: "{{a}}"\ndoc_to_choice: ["no", "yes"]', 0, []),
    ],
)
def test_only_corrections_that_apply_are_named(
    settings: str,
    num_fewshot: int,
    sentences: list[str],
    load: Load,
    write: Write,
    caplog: pytest.LogCaptureFixture,
) -> None:
    write("mine.yaml", f"include: even.yaml\ntask: mine\n{settings}\n")
    load("mine", num_fewshot=num_fewshot)
    text = caplog.text
    assert ("corrected scoring" in text) == bool(sentences)
    for sentence in sentences:
        assert sentence in text
    assert "graded scores" not in text


def test_a_file_of_the_same_name_lies_beside_the_task(
    load: Load, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = write("rows.jsonl", ROWS).parent
    outer = beside.parent
    (outer / "rows.jsonl").write_text("[]", encoding="utf-8")
    monkeypatch.chdir(outer)
    write("even.yaml", CHOICE.replace("tasks/rows.jsonl", "rows.jsonl"))
    (task,) = load("even")
    with pytest.raises(TaskError) as refused:
        len(task.samples)
    message = str(refused.value)
    assert f"reads '{outer / 'rows.jsonl'}', which is outside its folder" in message
    assert f"to read it, run the command in '{beside}'." in message
    assert "To allow it, trust the task's folder: --trust" in message

    monkeypatch.chdir(beside)
    (task,) = load("even")
    assert len(task.samples) == len(ROWS)
