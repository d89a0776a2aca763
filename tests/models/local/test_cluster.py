"""Replicas on Ray: what is refused, how many fit, and that they answer as the model does,
whatever becomes of them.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_stack

import pytest

from evalwright.cli.arguments import load_plugins
from evalwright.core.errors import ConfigurationError, Failure, ModelError
from evalwright.core.requests import (
    Generate,
    LogLikelihood,
    Message,
    Request,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response
from evalwright.models.local.cluster import Cluster, Placement, share_out
from evalwright.models.model_interface import LocalModel
from evalwright.models.registry import open_model
from support.command import evalwright
from support.local_models import agree, answers
from support.ray_cluster import cluster

needs_ray = pytest.mark.skipif(
    not find_spec("ray"), reason="needs Ray (the extra 'ray')"
)


def test_places() -> None:
    assert Placement.parse(None) is None
    assert Placement.parse("ray:10.0.0.1:6379", "4", 0.5) == Placement(
        "10.0.0.1:6379", 4, 0.5
    )
    assert Placement.parse("ray:auto", "auto") == Placement("auto")
    for wrong, why in {
        ("slurm", None, None): "'slurm' is not a place to run on: use ray",
        ("ray:", None, None): "'ray:' is not a place to run on",
        (
            "ray:ray://head:10001",
            None,
            None,
        ): "Run the command on a machine of the cluster",
        (
            "ray",
            "0",
            None,
        ): "--replicas must be 'auto' or a whole number from 1, not '0'",
        ("ray", "many", None): "not 'many'",
        (
            "ray",
            None,
            1.5,
        ): "--gpus-per-replica must be a share below 1 or a whole number, not 1.5",
        ("ray", None, -1.0): "not -1",
        (None, "2", None): "can only be used with on",
    }.items():
        with pytest.raises(ConfigurationError) as refused:
            Placement.parse(*wrong)
        assert why in str(refused.value)


def test_the_address_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.2:6379")
    assert Placement.parse("ray") == Placement("10.0.0.2:6379")


@pytest.mark.parametrize(
    "nodes, replicas, gpus, wanted",
    [
        ([(8, 0), (4, 0)], None, 0, (2, 4)),  # one on each node
        ([(8, 0), (4, 0)], 3, 0, (3, 4)),
        ([(2, 0)], 2, 0, (2, 1)),
        ([(64, 8), (64, 8), (4, 0)], None, 1, (16, 8)),  # one on each GPU
        ([(64, 8)], None, 2, (4, 16)),
        ([(64, 8)], None, 0.5, (16, 4)),
        ([(64, 8)], 3, 0.1, (3, 21)),
    ],
)
def test_how_many_fit(
    nodes: list[tuple[float, float]],
    replicas: int | None,
    gpus: float,
    wanted: tuple[int, int],
) -> None:
    assert share_out(nodes, replicas, gpus) == wanted


def test_more_than_there_are() -> None:
    with pytest.raises(ConfigurationError) as refused:
        share_out([(8, 2), (8, 1)], 5, 1)
    assert (
        "5 replicas with 1 GPU and a core each do not fit: a model can use 16 cores and 3 GPUs on 2 nodes. Use --replicas 3 or fewer"
        in str(refused.value)
    )
    with pytest.raises(
        ConfigurationError,
        match=r"2 GPUs.*--gpus-per-replica 0",
    ):
        share_out([(8, 1)], None, 2)


def test_a_cluster_that_does_not_let_us_in(address: str, tmp_path: Path) -> None:
    for token in ("0" * 64, ""):
        extra = {
            "RAY_AUTH_TOKEN": token,
            "RAY_AUTH_MODE": "token" if token else "disabled",
        }
        done = evalwright(
            "run",
            "factual-choice",
            "--model",
            "demo/small",
            "--on",
            f"ray:{address}",
            folder=tmp_path,
            extra=extra,
        )
        assert done.code == 2 and done.err.startswith(
            f"Error: Ray cannot be joined at '{address}': "
        )
        assert (
            done.err.count("\n") == 1 and "RAY_AUTH_TOKEN must be set here" in done.err
        )


@needs_ray
def test_an_address_that_cannot_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    for address, why in {
        f"127.0.0.1:{port}": f"No Ray cluster can be reached at '127.0.0.1:{port}'",
        "head-node": "'head-node' is not an address of a Ray cluster: use HOST:PORT",
    }.items():
        with (
            Cluster(Placement(address)) as there,
            pytest.raises(ConfigurationError, match=why),
        ):
            there.ray()


PLUGIN = '''
import os, time
from evalwright.core.requests import Generate
from evalwright.core.responses import Response, Usage
from evalwright.models.model_interface import LocalModel
from evalwright.models.registry import model

@model("deadly")
class Deadly(LocalModel):
    """Answers with the end of the prompt; some prompts end the process."""
    abilities = frozenset({"generate"})

    def __init__(self, name):
        self.fingerprint = f"deadly {name}"

    def answer_batch(self, requests):
        for index, request in enumerate(requests):
            if "deadly" in request.prompt:
                os.kill(os.getpid(), 9)
            if "raises" in request.prompt:
                raise ValueError("an error of its own")
            yield index, Response(text=request.prompt[-4:], finish_reason="stop")
'''


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not find_spec("ray"):
        pytest.skip("needs Ray (the extra 'ray')")
    with cluster() as there:
        yield there


@pytest.fixture
def on(address: str, tmp_path: Path) -> Iterator[Cluster]:
    """A connection, with a plug-in that every worker loads."""
    (tmp_path / "deadly.py").write_text(PLUGIN)
    prepare = partial(load_plugins, [str(tmp_path / "deadly.py")])
    prepare()
    with Cluster(Placement(address, 2, 0.0, prepare)) as there:
        yield there


def every_kind() -> list[Request]:
    """Requests of every kind, with shared contexts, long and short ones, and some that cannot be
    answered.
    """
    texts = [
        f"The river rises in the hills above town {number % 5}"
        + " and runs" * (number % 9)
        for number in range(40)
    ]
    options = [
        LogLikelihood(text, option)
        for text in texts[:12]
        for option in (" Paris", " eight", " to the sea.")
    ]
    chat = (
        Message("system", "Be brief."),
        Message("user", "How many legs has a spider?"),
    )
    return [
        *options,
        LogLikelihood(chat, "eight"),
        *(RollingLogLikelihood(text) for text in texts[:10]),
        RollingLogLikelihood("1 2 3 " * 200),
        *(Generate(text, max_tokens=6 + number % 5, stop=(".",)) for number, text in enumerate(texts[:16])),
        *(Generate(text, max_tokens=5, temperature=1.0, seed=1, draw=draw) for text in texts[:3] for draw in range(3)),
        *(Generate(chat, max_tokens=number) for number in range(1, 6)),
        Generate("Light " * 4000, max_tokens=3),
    ]  # fmt: skip


@pytest.mark.torch
def test_every_kind_of_request_is_answered_as_here(on: Cluster, tmp_path: Path) -> None:
    from support.tiny_models import make_tiny_model

    folder = make_tiny_model(tmp_path / "tiny", "llama", chat=True)
    here = open_model(f"hf/{folder}")
    assert isinstance(here, LocalModel)
    there = on.open(f"hf/{folder}", {}, here)
    assert (there.fingerprint, there.abilities, there.name) == (
        here.fingerprint,
        here.abilities,
        here.name,
    )
    there.load()
    agree(answers(there, every_kind()), answers(here, every_kind()))
    said = there.describe()["replicas"]
    assert len(said) == 2 and all(one["requests"] for one in said)
    assert sum(one["requests"] for one in said) == len(every_kind())
    assert sum(one["failures"] for one in said) == 1, "the one prompt that does not fit"
    there.unload()


def test_a_model_opens_where_its_gpu_is(on: Cluster) -> None:
    here = open_model("demo/small")
    assert isinstance(here, LocalModel)
    on.on = Placement(
        on.on.address
    )  # one replica on each of the two that this cluster says it has
    there = on.open("demo/small", {}, here)
    assert len(there.replicas) == 2
    there.load()
    requests: list[Request] = [
        LogLikelihood(f"Question {number}:", " yes") for number in range(40)
    ]
    agree(answers(there, requests), answers(here, requests))
    there.unload()
    on.on = Placement(on.on.address, 3)
    with pytest.raises(
        ConfigurationError,
        match=r"3 replicas with 1 GPU.*2 GPUs on 1 node",
    ):
        on.open("demo/small", {}, here)
    on.on = Placement(on.on.address)
    with pytest.raises(
        ConfigurationError,
        match=r"'demo/tiny'.*Known: large, small",
    ):
        on.open("demo/tiny", {}, here)


def test_what_kills_its_replica_three_times_has_failed_and_nothing_else(
    on: Cluster,
) -> None:
    here = open_model("deadly/one")
    assert isinstance(here, LocalModel)
    there = on.open("deadly/one", {}, here)
    there.load()
    prompts = [f"Question {number:04}" for number in range(200)]
    prompts[77] = "deadly 0077"
    found = answers(there, [Generate(prompt, max_tokens=4) for prompt in prompts])
    lost = [
        prompt
        for prompt, answer in zip(prompts, found, strict=True)
        if isinstance(answer, Failure)
    ]
    assert "deadly 0077" in lost and len(lost) < 20
    assert (
        found[77].attempts == 3 and "workers died of this request" in found[77].message
    )
    texts = {prompt[-4:] for prompt in prompts if prompt not in lost}
    assert {answer.text for answer in found if isinstance(answer, Response)} == texts
    prompts[77] = "raises 0077"
    [failed] = answers(there, [Generate(prompts[77], max_tokens=4)])
    assert (
        failed.message == "The model deadly/one failed: ValueError: an error of its own"
    )
    there.unload()


def test_a_replica_whose_files_differ_is_refused(
    on: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = open_model("demo/small", {"max_length": 64})
    assert isinstance(here, LocalModel)
    there = on.open("demo/small", {"max_length": 128}, here)
    with pytest.raises(ModelError, match="not answer as 'demo/small'"):
        there.load()


SLOW = """
import time
from pathlib import Path
from evalwright.models.model_interface import LocalModel
from evalwright.models.registry import model

@model("slow")
class Slow(LocalModel):
    \"\"\"Is loaded once its file is there.\"\"\"
    abilities = frozenset({"generate"})

    def __init__(self, name):
        self.fingerprint = f"slow {name}"

    def load(self):
        here = Path(__file__)
        here.with_name("loading").touch()
        while not here.with_name("go").exists():
            time.sleep(0.02)

    def answer_batch(self, requests):
        yield from ()
"""


def test_how_long_a_model_loads_says_nothing_of_its_place(
    address: str, tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    prepare = partial(load_plugins, [str(tmp_path / "slow.py")])
    prepare()
    here = open_model("slow/one")
    assert isinstance(here, LocalModel)
    with Cluster(Placement(address, 1, 0.0, prepare)) as there:
        loading = threading.Thread(target=there.open("slow/one", {}, here).load)
        loading.start()

        def waits_for_loading() -> bool:
            """Whether a thread waits for the model, its actor being placed."""
            frames = [
                found
                for frame in sys._current_frames().values()
                for found, _ in walk_stack(frame)
            ]
            return any(frame.f_code.co_qualname == "RayWorker._got" for frame in frames)

        until = time.monotonic() + 600
        while (
            not ((tmp_path / "loading").exists() and waits_for_loading())
            and time.monotonic() < until
        ):
            time.sleep(0.05)
        waited = waits_for_loading()
        (tmp_path / "go").touch()
        loading.join()
    assert waited


def test_nothing_is_started_once_the_run_has_ended(address: str) -> None:
    import ray

    here = open_model("demo/small")
    assert isinstance(here, LocalModel)
    with Cluster(Placement(address, 1, 0.0)) as there:
        made = there.open("demo/small", {}, here)
        made.load()
    # As the threads of a batch that an interruption ended do.
    with pytest.raises(ModelError):
        answers(made, [Generate("A late question")])
    made.unload()
    assert not ray.is_initialized()


def test_signals_stay_what_they_were(on: Cluster) -> None:
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    on.ray()
    assert before == [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    assert "RAY_USAGE_STATS_ENABLED" in os.environ  # the fixture's
