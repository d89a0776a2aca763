"""Classes of a folder's own, which no table knows: refused by file, class and flag, and run
where a person trusts them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from compat.sea_helm.small_tree import entry, rows, spoken, write
from evalwright.cli import main
from evalwright.compat.sea_helm import foreign
from evalwright.compat.sea_helm.config import read_tree
from evalwright.compat.sea_helm.sea_task import SeaTask
from evalwright.core.errors import TaskError

METRIC = """
from pathlib import Path

from seahelm_tasks.mine.helping import wanted
from src.base_logger import get_logger
from src.dataloaders.base_dataloader import AbstractDataloader
from src.metrics.seahelm_metric import SeaHelmMetric
from src.task_config import TaskConfig

Path("{mark}").write_text("ran")
logger = get_logger(__name__)


class MyMetric(SeaHelmMetric):
    def __init__(self, dataloader: AbstractDataloader, task_config: TaskConfig) -> None:
        super().__init__(dataloader=dataloader, task_config=task_config)
        tag = task_config.config["languages"][self.lang]["prompt_template"]["answer_tag"]
        self.regex_string = tag + r"\\s*(.*)"

    def calculate_metrics(self) -> dict:
        frame = self.dataloader.dataframe
        hits = [wanted(self, said, label) for said, label in zip(frame[self.postprocessed_response_column], frame["label"])]
        self.dataloader.update_individual_scores([{{"mine": 100.0 * hit}} for hit in hits])
        return {{"mine": 100 * self.normalize_score(sum(hits) / len(hits), 0.5, 1), "n": len(hits)}}
"""
HELPING = """
def wanted(metric, said, label):
    return metric.normalize_answer(said) == label.lower()
"""
LOADER = """
import json

from src.dataloaders.huggingface_dataloader import HuggingFaceDataloader


class MyLoader(HuggingFaceDataloader):
    def load_dataset(self, limit=None):
        with open(self.specific_task_config["filepath"]) as file:
            self.dataset = [{**json.loads(line), "label": "B"} for line in file]

    def load_example_dataset(self, limit=None):
        self.example_dataset = self.dataset
"""


@pytest.fixture
def root(own_folder: Path) -> Iterator[Path]:
    folder = own_folder / "tree"
    mine = folder / "seahelm_tasks" / "mine"
    write(mine / "metric.py", METRIC.format(mark=own_folder / "mark"))
    write(mine / "helping.py", HELPING)
    write(mine / "loader.py", LOADER)
    write(mine / "id.jsonl", rows(4))
    more = {
        "metric_file": "seahelm_tasks/mine/metric.py", "metric_class": "MyMetric", "metric": "mine",
        "dataloader_file": "seahelm_tasks/mine/loader.py", "dataloader_class": "MyLoader",
    }  # fmt: skip
    write(
        mine / "config.yaml",
        {"mine": entry("mine", {"id": spoken("mine", "id")}, **more)},
    )
    known = {"known": entry("known", {"id": spoken("mine", "id")})}
    write(folder / "seahelm_tasks" / "known" / "config.yaml", known)
    write(folder / "seahelm_tasks" / "task_config.yaml", {"all": {"id": "all"}})
    yield folder
    foreign.end_workers()


def run(root: Path, *more: str) -> int:
    return main(
        [
            "run",
            "sea-helm:mine",
            "--task-root",
            str(root),
            "--model",
            "scripted/constant",
            *more,
        ]
    )


def test_they_run_once_trusted_and_their_numbers_stand(
    root: Path, own_folder: Path
) -> None:
    pytest.importorskip("pandas", reason="the extra `pandas` is not installed")
    before = set(sys.modules)
    assert (
        run(root, "-M", "text=Jawaban: B.", "--trust", str(root), "--name", "one") == 0
    )
    assert (own_folder / "mark").read_text() == "ran"
    data = json.loads((own_folder / "runs" / "one" / "run.json").read_text())
    (task,) = data["tasks"]
    assert {one["label"]: one["value"] for one in task["metrics"]} == {
        "mine": 100,
        "mean_individual_score": 100,
    }
    assert not {
        name
        for name in set(sys.modules) - before
        if name.partition(".")[0] in ("src", "seahelm_tasks")
    }
    again = {"mine": {"metric": "normalized_mine"}}
    write(root / "seahelm_tasks" / "zz" / "config.yaml", again)
    write(
        root / "seahelm_tasks" / "mine" / "metric.py",
        METRIC.format(mark=own_folder / "mark").replace(
            '"mine":', '"normalized_mine":'
        ),
    )
    foreign.end_workers()
    both = [
        "sea-helm:known",
        "-M",
        "text=Jawaban: B.",
        "--trust",
        str(root),
        "--name",
        "both",
    ]
    assert run(root, *both) == 0
    data = json.loads((own_folder / "runs" / "both" / "run.json").read_text())
    assert [one["metrics"][0]["value"] for one in data["tasks"]] == [1, 0]
    (total,) = (one for one in data["groups"] if one["label"] == "id")
    assert total["metrics"][0]["value"] == 0.5
    write(root / "seahelm_tasks" / "zz" / "config.yaml", {"mine": {"metric": "mine"}})
    write(
        root / "seahelm_tasks" / "mine" / "metric.py",
        METRIC.format(mark=own_folder / "mark"),
    )
    foreign.end_workers()
    assert (
        run(root, "-M", "text=Jawaban: A", "--trust", str(root), "--name", "two") == 0
    )
    data = json.loads((own_folder / "runs" / "two" / "run.json").read_text())
    assert [one["value"] for one in data["tasks"][0]["metrics"]] == [0, 0]
    # What a run trusted counts for nothing when its answers are scored again.
    assert main(["score", "one", "--name", "again"]) == 2
    assert main(["score", "one", "--name", "again", "--trust", str(root)]) == 0


def test_without_trust_nothing_runs_and_file_class_and_flag_are_named(
    root: Path, own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in ((), ("--trust", str(own_folder / "tree" / "seahelm_tasks" / "known"))):
        assert run(root, *more) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert (
            "class MyLoader of 'seahelm_tasks/mine/loader.py', which is not known here"
            in said
        )
        assert f"--trust '{root}'" in said
    only = str(root / "seahelm_tasks" / "mine" / "loader.py")
    assert run(root, "--trust", only) == 2
    assert "class MyMetric of 'seahelm_tasks/mine/metric.py'" in " ".join(
        capsys.readouterr().err.split()
    )
    assert not (own_folder / "mark").exists()
    assert (
        main(
            [
                "run",
                "sea-helm:known",
                "--task-root",
                str(root),
                "--model",
                "scripted/hash",
                "--trust",
                str(root),
            ]
        )
        == 2
    )
    assert "--trust has no effect" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("seahelm_tasks/mine/loader.py", "raise SystemExit(0)", "SystemExit: 0"),
        ("seahelm_tasks/mine/loader.py", "1 / 0", "ZeroDivisionError"),
        (
            "seahelm_tasks/mine/loader.py",
            "class Other: pass",
            "has no attribute 'MyLoader'",
        ),
        ("../outside.py", "", "no Python file in src or seahelm_tasks"),
        (
            "seahelm_tasks/../../outside.py",
            "",
            "no Python file in src or seahelm_tasks",
        ),
        ("json.py", "", "no Python file in src or seahelm_tasks"),
        ("seahelm_tasks/mine/link.py", "", "no Python file in src or seahelm_tasks"),
        (
            "seahelm_tasks/mine/loader.py",
            LOADER + "\n    @staticmethod\n    def prompt_formatter(row): return row\n",
            "its own `prompt_formatter` makes prompts",
        ),
        (
            "seahelm_tasks/mine/loader.py",
            LOADER.replace('"label": "B"', '"prompts": 3'),
            "no list of mappings",
        ),
    ],
)
def test_broken_and_hostile_classes_end_in_a_sentence(
    root: Path,
    own_folder: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    text: str,
    said: str,
) -> None:
    (own_folder / "outside.py").write_text("open('pwned', 'w')\n" + LOADER)
    (root / "seahelm_tasks" / "mine" / "link.py").symlink_to(own_folder / "outside.py")
    if text:
        write(root / file, text)
    whole = json.loads((root / "seahelm_tasks" / "mine" / "config.yaml").read_text())
    whole["mine"]["dataloader_file"] = file
    write(root / "seahelm_tasks" / "mine" / "config.yaml", whole)
    assert run(root, "--trust", str(root)) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (own_folder / "pwned").exists()


def test_a_metric_that_raises_fails_the_sample_and_not_the_run(
    root: Path, own_folder: Path
) -> None:
    pytest.importorskip("pandas", reason="the extra `pandas` is not installed")
    write(
        root / "seahelm_tasks" / "mine" / "helping.py",
        "def wanted(*given): raise ValueError('no')\n",
    )
    for scoring, value in (("corrected", None), ("published", 0)):
        assert (
            run(root, "--trust", str(root), "--name", scoring, "--scoring", scoring)
            == 1
        )
        (task,) = json.loads((own_folder / "runs" / scoring / "run.json").read_text())[
            "tasks"
        ]
        assert (
            task["metrics"][0]["value"] == value
            and "ValueError: no" in task["metrics"][0]["method"]
        )


def test_a_class_that_never_ends_is_told_given_up_and_not_asked_again(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("pandas", reason="the extra `pandas` is not installed")
    hanging = "from pathlib import Path\ndef wanted(*given):\n    open('asked', 'a').write('x')\n    while True: pass\n"
    write(root / "seahelm_tasks" / "mine" / "helping.py", hanging)
    made = SeaTask(
        "mine",
        "id",
        read_tree(root.resolve()).tasks["mine"],
        root.resolve(),
        trust=(str(root),),
    )
    foreign.check_trusted(made, made.scored_by, ())
    monkeypatch.setattr(foreign, "_SECONDS", 5.0)
    monkeypatch.setattr(foreign, "_TOLD", 0.0)
    for _ in range(3):
        with pytest.raises(
            TaskError,
            match=r"MyMetric, which fails: .*more than",
        ):
            foreign.foreign_numbers(made, [{**rows(1)[0], "responses": ["Jawaban: A"]}])
    assert (root / "asked").read_text() == "x"
    assert "The class MyMetric of 'mine' has been at work" in caplog.text


def test_they_run_in_a_process_of_their_own_without_keys(
    root: Path,
    own_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("pandas", reason="the extra `pandas` is not installed")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdefghijklmnop")
    seen = "import json, os\nprint('noise')\njson.dump([os.getpid(), os.getcwd(), dict(os.environ)], open('seen', 'w'))\n"
    write(root / "seahelm_tasks" / "mine" / "helping.py", seen + HELPING)
    assert (
        run(root, "-M", "text=Jawaban: B.", "--trust", str(root), "--name", "one") == 0
    )
    process, folder, variables = json.loads((root / "seen").read_text())
    assert process != os.getpid() and Path(folder) == root
    assert "OPENAI_API_KEY" not in variables and "noise" not in capsys.readouterr().out
    # One that ends its process fails its task, and not the run.
    write(
        root / "seahelm_tasks" / "mine" / "helping.py",
        "import os\ndef wanted(*given): os._exit(0)\n",
    )
    os.utime(root / "seahelm_tasks" / "mine" / "config.yaml")
    foreign.end_workers()
    assert run(root, "--trust", str(root), "--name", "two") == 1
    (task,) = json.loads((own_folder / "runs" / "two" / "run.json").read_text())[
        "tasks"
    ]
    assert (
        task["metrics"][0]["value"] is None
        and "its process ended" in task["metrics"][0]["method"]
    )


def test_one_that_never_ends_is_ended_with_the_run(
    root: Path, own_folder: Path
) -> None:
    pytest.importorskip("pandas", reason="the extra `pandas` is not installed")
    endless = "import os\nfrom pathlib import Path\ndef wanted(*given):\n    Path('looping').write_text(str(os.getpid()))\n    while True: pass\n"
    write(root / "seahelm_tasks" / "mine" / "helping.py", endless)
    command = [
        "run",
        "sea-helm:mine",
        "--task-root",
        str(root),
        "--model",
        "scripted/constant",
        "--trust",
        str(root),
    ]
    for number, code in ((signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)):
        (root / "looping").unlink(missing_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "evalwright", *command],
            cwd=own_folder,
            stderr=subprocess.DEVNULL,
        )
        until(
            lambda: (
                (root / "looping").is_file() and (root / "looping").read_text() != ""
            )
        )
        inner = int((root / "looping").read_text())
        process.send_signal(number)
        assert process.wait(600) == code
        status = Path(f"/proc/{inner}/status")
        until(partial(ended, status))


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 600
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def ended(status: Path) -> bool:
    """Whether a process is gone, or waits only for its parent to notice."""
    try:
        return "State:\tZ" in status.read_text()
    except OSError:
        return True


HELD = """
import numpy as np
from src.metrics.seahelm_metric import SeaHelmMetric

class Held(SeaHelmMetric):
    regex_string = "(B)?"

    def evaluate_responses(self, drop_error_response=True):
        self.drop_error_responses()
        self.replace_error_responses("none")
        self.postprocess_responses()
        said = self.dataloader.dataframe[self.postprocessed_response_column]
        return {self.task: {"normalized_held": np.float64(25), "counts": np.array([len(said)])}}

    def extract_response(self, response):
        return super().extract_response(response, return_original_response_on_failure=False)

class Tuple(Held):
    def evaluate_responses(self):
        return {self.task: (1, 2)}
"""


def test_what_classes_are_written_against_is_there(
    root: Path, own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas", reason="the extra `pandas` is not installed")
    write(root / "seahelm_tasks" / "mine" / "metric.py", HELD)
    for name, code in (("Held", 0), ("Tuple", 1)):
        change = {"mine": {"metric_class": name, "metric": "normalized_held"}}
        write(root / "seahelm_tasks" / "zz" / "config.yaml", change)
        foreign.end_workers()
        assert run(root, "-M", "text=x", "--trust", str(root), "--name", name) == code
    data = json.loads((own_folder / "runs" / "Held" / "run.json").read_text())
    assert [one["value"] for one in data["tasks"][0]["metrics"]] == [0.25, 0.25]
    first = json.loads(
        (own_folder / "runs" / "Tuple" / "samples.jsonl").read_text().splitlines()[0]
    )
    assert "it gives a tuple, and no number 'normalized_held'" in json.dumps(
        first["score_failures"]
    )


def test_images_come_over_as_bytes() -> None:
    assert json.loads(json.dumps([b"\x89PNG"], default=foreign._plain)) == ["iVBORw=="]
