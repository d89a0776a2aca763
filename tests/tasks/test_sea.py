"""The tasks of languages of Southeast Asia: each renders, and reads the answer in the form that its own prompt asks for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.asking import Ask
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.tasks import Task
from evalwright.evaluation.configuration_file import read_configuration
from evalwright.evaluation.running import evaluate_sample
from evalwright.metrics.tree import Node, read_tree
from evalwright.models.scripted import ScriptedModel
from evalwright.scorers.text import marks
from evalwright.tasks.datasets import copies
from evalwright.tasks.index import TaskIndex
from evalwright.tasks.loading import load_task
from support.typed import typed

FILES = [entry for entry in TaskIndex().files() if "/sea/" in entry.path]
NAMES = [name for entry in FILES for name in entry.members]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COMMIT = "0123456789abcdef0123456789abcdef01234567"

TURN = {
    "text": "teks", "question": "tanya", "choice1": "satu", "choice2": "dua", "choice3": "tiga", "choice4": "empat", "phrase": "frasa",
    "premise": "premis", "question_translated": "SEBAB", "sentence1": "pertama", "sentence2": "kedua", "sentence_pair": "A: ini\nB: itu",
    "conclusion": "simpulan", "metaphor": "kiasan", "explanation": "arti", "mcq": "A: w\nB: x\nC: y\nD: z",
}  # fmt: skip
LABELS = {
    "sea-sentiment": {"id": "Negatif", "jv": "Negatif", "lo": "ແງ່ລົບ", "ms": "Negatif", "my": "အပျက်သဘော", "su": "Negatip", "ta": "எதிர்மறை", "th": "แง่ลบ", "tl": "Negatibo", "vi": "Tiêu cực"},
    "sea-toxicity": {"id": "Kasar", "ms": "Benci", "my": "မုန်းတီးမှု", "th": "N", "tl": "Mapoot", "vi": "Công kích"},
    "sea-pragmatics-pair": {"id": "Salah", "ta": "பொய்"},
    "sea-pragmatics-single": {"id": "Tidak Ambigu", "ta": "பொய்"},
    "sea-metaphor": {"ta": "பொய்"},
}  # fmt: skip


def row_of(name: str) -> dict[str, Any]:
    """A row of the form that the data have, whose answer is the second option."""
    family, _, language = name.rpartition("-")
    label = LABELS.get(family, {}).get(language, "ခ" if language == "my" else "B")
    if family in ("sea-qa", "sea-summary") or family.startswith("sea-translation"):
        label = "kalimat yang benar"
    single = {"id": "Ambigu atau Tidak Ambigu", "ta": "உண்மை அல்லது பொய்"}.get(language, "")
    row = {
        "id": "1",
        "label": label,
        "prompts": [{**TURN, "choices_translated": single}],
        "metadata": {"linguistic_phenomenon": "klitik"},
    }
    options = {
        f"option_{letter}": text
        for letter, text in zip("abcd", ("satu", "dua", "tiga", "empat"), strict=True)
    }
    exam = {
        "question": "tanya",
        "a": "หนึ่ง",
        "b": "สอง",
        "c": "สาม",
        "d": "สี่",
        "e": "",
        "answer": "b",
        "sample_id": "x/1",
    }
    return {**row, **options, **exam, "subject_category": "STEM", "cultural_sensitivity_label": "CA"}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str, str | None, str]]]:
    asked: list[tuple[str, str, str | None, str]] = []
    rows: dict[str, dict[str, Any]] = {}

    def hub_rows(
        repository: str, revision: str, config: str | None, split: str
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        asked.append((repository, revision, config, split))
        yield f"{repository}, row 1", rows["row"]

    monkeypatch.setattr(copies, "_hub_rows", hub_rows)
    monkeypatch.setattr("evalwright.tasks.compiling.first_fetched", lambda repository: COMMIT)
    hub_rows.rows = rows  # type: ignore[attr-defined]
    yield asked


def loaded(name: str) -> Task:
    copies._hub_rows.rows["row"] = row_of(name)  # type: ignore[attr-defined]
    return load_task(name, chat=True)


def said(task: Task, reply: str) -> tuple[str, float]:
    """What is asked, and what the reply is worth."""
    model = ScriptedModel(lambda request: reply)

    async def ask(role: str, request: Request) -> Response:
        return await model.answer(request)

    door: Ask = ask
    record = asyncio.run(evaluate_sample(task, 0, task.samples[0], 0, door))
    assert record.answer is not None, record.failure
    prompt = record.answer.prompt
    text = prompt if isinstance(prompt, str) else "\n".join(str(message.content) for message in prompt)
    return text, record.scores[task.metrics[0].scorer].value if record.scores else float("nan")


@pytest.mark.parametrize("name", NAMES)
def test_a_task_reads_the_answer_in_the_form_that_it_asks_for(
    name: str, hub: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path))
    task = loaded(name)
    assert task.definition["dataset"]["revision"] == hub[0][1]
    sample = task.samples[0]
    text, _ = said(task, "")
    assert "{{" not in text and "WHAT" not in text and "CHOICES" not in text
    assert sample.input in text
    if not sample.choices:
        assert sample.target == "kalimat yang benar"
        if "rouge" not in task.scorers[0].kind:
            assert said(task, sample.target)[1] == pytest.approx(100 if "chrf" in task.scorers[0].kind else 1)
        return
    assert sample.gold == (1,)
    (mark,) = re.findall(r"[\"“「]([^\"”」]+[:：៖])[\"”」]", text)
    assert re.fullmatch(marks.alternatives("label"), mark[:-1].lower()), mark
    letters = "lettered" in str(task.definition["prompt"]["user"]) or "reply_letter" in str(
        task.definition["prompt"]["user"]
    )
    for place, value in ((1, 1.0), (0, 0.0)):
        option = "AB"[place] if letters else sample.choices[place]
        assert option in text
        assert said(task, f"{mark} {option}")[1] == value, (mark, option)


def test_every_file_says_what_it_is() -> None:
    assert len(NAMES) > 90
    for entry in FILES:
        assert not entry.problem
        assert entry.description and "{{" not in entry.description


def test_the_suite_is_of_these_tasks_and_its_tree_has_all_of_them() -> None:
    found = read_configuration(EXAMPLES / "sea.yaml", None, None)
    root = read_tree(found.tree)
    beside = {str(name) for name in found.tasks if "translation" in str(name)}
    assert {str(name) for name in found.tasks} == {*root.tasks, *beside} <= set(NAMES)
    assert next(part.name for part in root.parts if isinstance(part, Node)) == "Indonesian"


def test_the_commit_of_the_first_fetch_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="the extra `hub` is not installed")
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path))
    commits = iter(["first", "second", "third"])

    class Info:
        def dataset_info(self, repository: str) -> Any:
            return type("Found", (), {"sha": next(commits)})

    monkeypatch.setattr(hub, "HfApi", Info)
    assert [copies.first_fetched(one) for one in ("a/x", "a/x", "a/y", "a/x")] == [
        "first",
        "first",
        "second",
        "first",
    ]
    kept = tmp_path / "datasets" / "revisions.json"
    kept.write_text("{broken")
    assert copies.first_fetched("a/x") == "third"


def test_what_cannot_be_fetched_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    done = typed("tasks", "show", "sea-qa-id")
    assert done.code == 2 and "aisingapore/NLU-Question-Answering" in done.err and "Traceback" not in done.err
