"""A local model in several processes: its own answers, whatever happens to a process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, Failure, ModelError, UsageError
from evalwright.core.images import Image
from evalwright.core.requests import (
    Classify,
    Embed,
    Generate,
    LogLikelihood,
    Message,
    Request,
    Reward,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition
from evalwright.models.local.processes import (
    ProcessWorker,
    request_as_json,
    request_from,
)
from evalwright.models.local.replica_set import ReplicaSet
from evalwright.models.model_interface import LocalModel
from evalwright.models.registry import open_model
from support.command import record, records, write_questions
from support.local_models import agree, answers
from support.tiny_models import make_tiny_model
from support.typed import typed


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    make_tiny_model(folder, "llama", chat=True)
    return f"hf/{folder}"


@pytest.fixture
def opened() -> Iterator[Any]:
    """Opens models that are unloaded at the end."""
    made: list[LocalModel] = []

    def open_one(name: str, **given: Any) -> LocalModel:
        model = open_model(name, given)
        assert isinstance(model, LocalModel)
        made.append(model)
        model.load()
        return model

    yield open_one
    for model in made:
        model.unload()


def requests(chat: bool) -> list[Request]:
    """Of every kind that a language model answers; many share their beginnings."""
    found: list[Request] = [
        LogLikelihood(f"The river {'rises ' * (number % 5)}and", f" {word}")
        for number in range(30)
        for word in ("yes", "no")
    ]
    found += [
        Generate(f"Question {number}", max_tokens=6, stop=("\n\n",))
        for number in range(20)
    ]
    if chat:
        found += [
            Generate((Message("user", f"Say {number}"),), max_tokens=4)
            for number in range(5)
        ]
    found += [
        RollingLogLikelihood(f"Iron melts at {number} degrees.") for number in range(6)
    ]
    return found


def workers_of(model: LocalModel) -> list[ProcessWorker]:
    assert isinstance(model, ReplicaSet)
    found = [slot.worker for slot in model._slots]
    assert all(isinstance(one, ProcessWorker) for one in found)
    return [one for one in found if isinstance(one, ProcessWorker)]


def kill(worker: ProcessWorker) -> None:
    """Kill its process; one that is just being started again is let be."""
    process = worker._process
    if process is not None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def test_answers_are_the_models_own(opened: Any, tiny: str) -> None:
    alone = opened(tiny)
    several = opened(tiny, replicas=2)
    assert several.fingerprint == alone.fingerprint
    asked = requests(chat=True)
    agree(answers(several, asked), answers(alone, asked), 1e-4)
    said = several.describe()["replicas"]
    assert [one["name"].partition(" on")[0] for one in said] == [
        "process 1",
        "process 2",
    ]
    assert sum(one["requests"] for one in said) == len(asked)


def test_nothing_is_lost_with_a_process_that_is_killed(opened: Any) -> None:
    several = opened("demo/small", replicas=2)
    asked = requests(chat=False) * 3
    expected = answers(opened("demo/small"), asked)
    found: dict[int, Response | Failure] = {}
    for index, answer in several.answer_batch(asked):
        assert index not in found
        found[index] = answer
        # Two: the third process that dies of one group makes it a failure.
        if len(found) in (1, 150):
            # The one at work, or the one that waits; its last answers may be on their way.
            kill(workers_of(several)[len(found) % 2])
    agree([found[place] for place in range(len(asked))], expected, 1e-4)
    # Who died after the last group is started again for the next batch.
    for worker in workers_of(several):
        kill(worker)
    agree(answers(several, asked), expected, 1e-4)
    said = several.describe()["replicas"]
    assert sum(one["requests"] - one["failures"] for one in said) == 2 * len(asked)


def test_a_model_that_cannot_be_loaded_says_why(tmp_path: Path, tiny: str) -> None:
    folder = tmp_path / "broken"
    make_tiny_model(folder, "llama")
    model = open_model(f"hf/{folder}", {"replicas": 1})
    for weights in folder.glob("*.safetensors"):
        weights.write_bytes(b"no weights")
    assert isinstance(model, LocalModel)
    with pytest.raises(ModelError):
        model.load()


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("demo/small", {"replicas": 0}, "replicas must be a number above 0"),
        ("demo/small", {"replicas": -1}, "replicas must be a number above 0"),
        ("demo/small", {"replicas": 10**6}, "more than the 128"),
        ("demo/small", {"replicas": 2.5}, "replicas must be a number of processes"),
        ("demo/small", {"replicas": True}, "replicas must be a number of processes"),
        ("demo/small", {"replicas": 2, "replicas_differ": True}, "no effect"),
        ("demo/small", {"replicas": 2, "thread": 2}, "Did you mean 'threads'"),
        ("hf/m", {"replicas": "auto"}, "not auto. -M devices=all has one on each"),
        ("hf/m", {"replicas": "two"}, "such as replicas=2, not two"),
        ("hf/m", {"replicas": ""}, "such as replicas=2, not ''"),
        ("hf/m", {"replicas": "http://a/v1"}, "which has no addresses"),
        ("demo/small", {"devices": "all"}, "which computes on the CPU"),
        ("openai/m", {"devices": "all"}, "which a server computes"),
        ("openai/m", {"devices_per_replica": 2}, "devices_per_replica has no effect"),
        ("openai/m", {"replicas": 2}, "'openai/m', which a server computes"),
        ("hf/m", {"parallel": 4}, "-M devices=all puts a copy"),
        ("hf/m", {"parallelize": True}, "-M device_map=auto spreads one copy"),
        ("hf/m", {"data_parallel_size": 4}, "-M devices=all puts a copy"),
        (
            "openai/m",
            {"devices": "all", "replicas": "http://a/v1,http://b/v1"},
            "leave one of them out",
        ),
    ],
)
def test_what_cannot_be_is_said(name: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        open_model(name, given)


def test_a_plug_ins_model_is_refused() -> None:
    from evalwright import model as registered
    from evalwright.models.scripted import ScriptedLocalModel

    registered("ownlocal")(lambda name: ScriptedLocalModel("x", name=name))
    with pytest.raises(ConfigurationError, match="is a plug-in's"):
        open_model("ownlocal/x", {"replicas": 2})


@pytest.mark.skipif(not find_spec("ray"), reason="needs Ray (the extra 'ray')")
def test_on_a_cluster_the_replicas_are_the_clusters(tmp_path: Path) -> None:
    write_questions(tmp_path, 2)
    command = [
        "run",
        "questions.yaml",
        "--model",
        "demo/small",
        "--format",
        "text",
        "--on",
        "ray",
    ]
    done = typed(*command, "-M", "replicas=2", folder=tmp_path)
    assert done.code == 2 and "leave out -M replicas" in done.err


def test_requests_keep_all_that_they_carry() -> None:
    image = Image(b"\x89PNG", "image/png", "a.png")
    turns = (
        Message("system", "Be\ud800 kind"),
        Message("user", ("Look: ", image, "!")),
    )
    whole: list[Request] = [
        Generate(
            turns,
            8,
            0.7,
            0.9,
            ("a", "b"),
            3,
            2,
            40,
            0.1,
            2,
            5,
            "high",
            None,
            '{"a": 1}',
            0.5,
            "never",
        ),
        Generate("text", reasoning_budget=100),
        Generate(
            (
                Message(
                    "assistant",
                    "",
                    tool_calls=(ToolCall("look", "{broken", "c1"),),
                    reasoning="Hm.",
                    provider_content="{}",
                ),
                Message(
                    "tool", "no", tool_call_id="c1", tool_name="look", is_error=True
                ),
            ),
            tools=(ToolDefinition("look", "Look."),),
            tool_choice="look",
            parallel_tool_calls=True,
        ),
        LogLikelihood(turns, " yes"),
        LogLikelihood("", ""),
        RollingLogLikelihood("text"),
        Embed("text"),
        Classify("a", "b"),
        Reward(turns, "reply", "reference"),
    ]
    for request in whole:
        back = request_from(json.loads(json.dumps(request_as_json(request))))
        assert back == request and type(back) is type(request)


def test_a_run_in_processes_is_the_run(tmp_path: Path) -> None:
    write_questions(tmp_path, 40)
    command = [
        "run",
        "questions.yaml",
        "--model",
        "demo/small",
        "--format",
        "text",
        "--quiet",
    ]
    for name, more in (("alone", []), ("several", ["-M", "replicas=2"])):
        done = typed(
            *command,
            *more,
            "--name",
            name,
            folder=tmp_path,
            extra={"EVALWRIGHT_HOME": name},
        )
        assert done.code == 0, done.text
    runs = tmp_path / "runs"
    assert records(runs / "alone") == records(runs / "several")
    alone = record(runs / "alone")
    several = record(runs / "several")
    assert alone["tasks"] == several["tasks"]
    assert alone["model"]["fingerprint"] == several["model"]["fingerprint"]
    assert sum(replica["requests"] for replica in several["model"]["replicas"]) == 40


def test_a_worker_whose_starter_is_gone_ends_with_what_it_computes() -> None:
    group = [
        request_as_json(Generate(f"Question {number}", max_tokens=256))
        for number in range(200)
    ]
    worker = subprocess.Popen(
        [sys.executable, "-P", "-m", "evalwright.models.local.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdin is not None and worker.stdout is not None
    worker.stdin.write(
        json.dumps({"name": "demo/small", "arguments": {}, "sharers": 2})
        + "\n"
        + json.dumps(group)
        + "\n"
    )
    worker.stdin.flush()
    assert "fingerprint" in worker.stdout.readline()
    left, _ = (
        worker.communicate()
    )  # which ends its input, as the end of its starter does
    assert (worker.returncode, len(left.splitlines()) < len(group)) == (0, True)
