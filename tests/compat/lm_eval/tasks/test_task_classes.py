"""Tasks that are Python classes: by the released package's own runner and by ours, to the last
digit.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from compat.lm_eval.tasks import golden
from compat.lm_eval.tasks.conftest import Load, Write
from evalwright.compat.lm_eval.tasks.task_classes import Conversation, as_prompt
from evalwright.core.errors import ConfigurationError, TaskError
from evalwright.core.requests import Message

pytest.importorskip("datasets")

ROWS = [
    {
        "question": f"Is {i} odd?",
        "answer": ("ja", "nein")[(i + 1) % 2],
        "choices": ["ja", "nein"],
    }
    for i in range(12)
]
FILES = {
    "odd.yaml": "task: odd\nclass: !function odd.Odd\n",
    "words.yaml": "task: words\nclass: !function odd.Words\n",
    "odd.py": """
        import json
        from pathlib import Path

        import datasets
        import numpy as np
        from lm_eval.api.instance import Instance
        from lm_eval.api.metrics import mean, median, weighted_perplexity
        from lm_eval.api.task import ConfigurableTask, Task

        FILE = str(Path(__file__).with_name("rows.jsonl"))
        ROWS = [json.loads(line) for line in open(FILE)]


        def longest(items):
            return max(len(text) for text, _ in items)


        class Validation:
            def has_training_docs(self):
                return False

            def has_validation_docs(self):
                return True

            def has_test_docs(self):
                return False


        class Odd(Validation, ConfigurableTask):
            VERSION = 3

            def __init__(self, config=None):
                super().__init__(config={"metadata": {"version": self.VERSION}})

            def download(self, *arguments, **more):
                self.dataset = {"validation": datasets.load_dataset("json", data_files=FILE, split="train")}

            def validation_docs(self):
                return self.dataset["validation"]

            def doc_to_text(self, doc, own=None):
                return "Question: " + doc["question"] + " Answer:"

            def doc_to_target(self, doc, own=None):
                return " " + doc["answer"]

            def construct_requests(self, doc, ctx, chat_template=None, apply_chat_template=False, **more):
                asked = [
                    Instance(request_type="loglikelihood", doc=doc, arguments=(ctx, " " + one), idx=i, **more)
                    for i, one in enumerate(doc["choices"])
                ]
                said = Instance(
                    request_type="generate_until",
                    doc=doc,
                    arguments=(ctx, {"until": ["\\n"], "max_gen_toks": 8}),
                    idx=9,
                    **more,
                )
                return [said, *asked]

            def process_results(self, doc, results):
                *likelihoods, text = results
                values = [value for value, _ in likelihoods]
                right = doc["choices"].index(doc["answer"])
                return {
                    "acc": float(np.argmax(values) == right),
                    "miss": float(text != doc["answer"]),
                    "middle": values[right],
                    "longest": (text, doc["answer"]),
                }

            def aggregation(self):
                return {"acc": mean, "miss": np.mean, "middle": median, "longest": longest}

            def higher_is_better(self):
                return {"acc": True, "miss": False, "middle": True, "longest": True}


        class Words(Validation, Task):
            VERSION = 1

            def download(self, *arguments, **more):
                self.dataset = None

            def validation_docs(self):
                return ROWS

            def doc_to_text(self, doc):
                return ""

            def doc_to_target(self, doc):
                return doc["question"]

            def construct_requests(self, doc, ctx, apply_chat_template=False, chat_template=None, **more):
                text = self.doc_to_target(doc)
                return Instance(request_type="loglikelihood_rolling", doc=doc, arguments=(text,), idx=0, **more)

            def process_results(self, doc, results):
                (likelihood,) = results
                return {"word_perplexity": (likelihood, self.count_words(self.doc_to_target(doc)))}

            def aggregation(self):
                return {"word_perplexity": weighted_perplexity}

            def higher_is_better(self):
                return {"word_perplexity": False}
    """,
}


CASES = [
    ("odd", 0, "text"),
    ("odd", 3, "text"),
    ("odd", 2, "chat"),
    ("words", 0, "text"),
]
"""Task, shots, and how prompts are rendered."""


@lru_cache(maxsize=1)
def package() -> Path | None:
    """The folder in which the released package can be imported, with all that it imports; None
    where there is none.
    """
    shipped = golden.shipped_folder()
    if shipped is None:
        return None
    folder = shipped.parent.parent
    found = child(folder, "-c", "import lm_eval.evaluator")
    return folder if found.returncode == 0 else None


def child(
    folder: Path, *arguments: str, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([*(part for part in sys.path if part), str(folder)])
    home = {"EVALWRIGHT_HOME": str(cwd / "home")} if cwd else {}
    environment = {
        **os.environ,
        **home,
        "PYTHONPATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "HF_HUB_OFFLINE": "1",
    }
    return subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=1800,
    )


def write_files(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).write_text(dedent(text), encoding="utf-8")
    rows = "".join(json.dumps(row) + "\n" for row in ROWS)
    (folder / "rows.jsonl").write_text(rows, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks").mkdir()
    write_files(tmp_path / "tasks")
    return tmp_path / "tasks"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What one child process found for every case."""
    there = package()
    if there is None:
        pytest.skip(
            "the released package cannot be imported here: it needs requests, certifi and urllib3"
        )
    folder = tmp_path_factory.mktemp("classes")
    write_files(folder)
    script = str(Path(__file__).with_name("class_child.py"))
    done = child(there, script, str(folder), json.dumps(CASES), cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()[-len(CASES) :]]


@pytest.mark.parametrize(
    "case", range(len(CASES)), ids=lambda case: "-".join(map(str, CASES[case]))
)
def test_a_class_gives_the_numbers_of_its_own_runner(
    runs: list[dict[str, Any]], case: int
) -> None:
    (task, shots, _), found = CASES[case], runs[case]
    assert found["failed"] == 0
    assert found["ours"]["n"] == found["theirs"]["n"] == len(ROWS)
    wanted = found["theirs"]["results"]
    assert set(found["ours"]["results"]) == set(wanted)
    assert len(wanted) == (8 if task == "odd" else 2)
    for key, value in wanted.items():
        ours = found["ours"]["results"][key]
        assert ours == value or math.isclose(ours, value, rel_tol=1e-9), (
            key,
            ours,
            value,
        )
    assert found["again"] == found["metrics"]
    if task == "odd":
        check_corrected(found, shots)


def check_corrected(found: dict[str, Any], shots: int) -> None:
    assert found["better"]["miss"] is False
    metrics = {metric["label"]: metric for metric in found["corrected"]}
    assert metrics["miss"]["low"] < metrics["miss"]["value"] < metrics["miss"]["high"]
    assert metrics["acc"]["n"] == len(ROWS)
    for question, prompt in found["prompts"]:
        asked = [row["question"] for row in ROWS if row["question"] in prompt]
        assert prompt.count(question) == 1 and len(asked) == shots + 1


def test_a_class_needs_trust_and_the_package(folder: Path, load: Load) -> None:
    with pytest.raises(TaskError, match=r"runs Python code .* --trust"):
        load("odd")
    if golden.package_spec() is not None:
        pytest.skip("the package is installed here")
    with pytest.raises(
        ConfigurationError,
        match=r"pip install 'evalwright\[lm-eval\]'",
    ):
        load("odd", trust=(folder,))


def test_a_class_that_is_none(write: Write, load: Load) -> None:
    write("text.yaml", "task: text\nclass: odd.Odd\n")
    with pytest.raises(TaskError, match=r"in the form `!function module\.Name`"):
        load("text")


def test_messages_pass_through_a_class_or_are_refused() -> None:
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Why?"},
    ]
    made = Conversation.of(turns, add_generation_prompt=True)
    assert as_prompt(made, "odd") == (
        Message("system", "Be brief."),
        Message("user", "Why?"),
    )
    assert as_prompt("Why?", "odd") == "Why?"
    with pytest.raises(TaskError, match=r"adds to its prompt .* --format text"):
        as_prompt(f"{made} Because", "odd")
    with pytest.raises(TaskError, match="a prompt of type list in place of text"):
        as_prompt([made], "odd")
