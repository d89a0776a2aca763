"""`vllm-local/` against a stand-in that has the real module's parameters: vLLM itself needs a
GPU.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import (
    ConfigurationError,
    MissingExtra,
    ModelError,
    UnknownName,
)
from evalwright.core.requests import (
    Generate,
    LogLikelihood,
    Message,
    Request,
    RollingLogLikelihood,
)
from evalwright.models.model_interface import LocalModel
from evalwright.models.registry import open_model
from support.local_models import answers
from support.tiny_models import make_tiny_model
from support.vllm_stand_in import RECORDED, install, interface_of

pytestmark = pytest.mark.torch

TEXT = "The river runs past the old mill and the town beyond it. " * 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(
        tmp_path_factory.mktemp("vllm") / "model", chat=True, context=96
    )


@pytest.fixture
def vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    install(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("vllm", None)


def opened(name: str, **given: Any) -> LocalModel:
    model = open_model(name, given)
    assert isinstance(model, LocalModel)
    return model


@pytest.mark.usefixtures("vllm")
def test_it_answers_as_hf_does(folder: Path) -> None:
    model = opened(f"vllm-local/{folder}", dtype="float32")
    model.check()
    assert model.abilities == {"generate", "chat", "log-likelihood", "rolling"}
    asked: list[Request] = [
        LogLikelihood("The capital of Peru is", " Lima"),
        LogLikelihood("", "A whole text."),
        LogLikelihood(TEXT * 4, " and more"),  # too long: it loses its left side
        RollingLogLikelihood(TEXT * 2),
        Generate("The capital of Peru is", max_tokens=8, top_logprobs=2),
        Generate((Message("user", "Hello"),), max_tokens=6, stop=("e",)),
    ]
    found = answers(model, asked)
    there = answers(
        opened(f"hf/{folder}", dtype="float32", device="cpu", max_length=94), asked
    )
    for mine, theirs in zip(found[:4], there[:4], strict=True):
        assert mine.log_likelihood == pytest.approx(theirs.log_likelihood, abs=1e-3)
        assert (mine.tokens_scored, mine.is_greedy) == (
            theirs.tokens_scored,
            theirs.is_greedy,
        )
    assert found[2].finish_reason == "truncated"
    for mine, theirs in zip(found[4:], there[4:], strict=True):
        assert (mine.text, mine.finish_reason) == (theirs.text, theirs.finish_reason)
    assert [(token.text, len(token.alternatives)) for token in found[4].tokens] == [
        (token.text, len(token.alternatives)) for token in there[4].tokens
    ]
    assert found[4].usage.as_dict()["output_tokens"] == 8
    model.unload()
    assert answers(model, asked[:1])[0].log_likelihood == found[0].log_likelihood


@pytest.mark.usefixtures("vllm")
def test_after_the_death_of_vllms_process_the_next_batch_starts_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened(f"vllm-local/{folder}", dtype="float32")
    asked: list[Request] = [Generate("The capital of Peru is", max_tokens=4)]
    [expected] = answers(model, asked)

    class EngineDeadError(Exception):
        """As vllm.v1.engine.exceptions has it."""

    from vllm import LLM

    generate, dead = LLM.generate, {id(model._answering._llm)}  # type: ignore[attr-defined]

    def mortal(llm: Any, *given: Any, **more: Any) -> Any:
        if id(llm) in dead:
            raise EngineDeadError("EngineCore encountered an issue.")
        return generate(llm, *given, **more)

    monkeypatch.setattr(LLM, "generate", mortal)
    kept = model._answering  # type: ignore[attr-defined] # so that no other has its id
    with pytest.raises(EngineDeadError):
        answers(model, asked)
    assert answers(model, asked) == [expected]
    assert kept is not None


@pytest.mark.usefixtures("vllm")
def test_the_fingerprint_is_of_the_weights_and_of_what_changes_answers(
    folder: Path, tmp_path: Path
) -> None:
    plain = opened(f"vllm-local/{folder}").fingerprint
    assert (
        plain
        == opened(
            f"vllm-local/{folder}", tensor_parallel_size=2, enable_prefix_caching=False
        ).fingerprint
    )
    other = make_tiny_model(tmp_path / "other", chat=True, context=96, seed=1)
    changed = [
        opened(f"vllm-local/{other}").fingerprint,
        opened(f"vllm-local/{folder}", quantization="fp8").fingerprint,
        opened(f"vllm-local/{folder}", engine={"kv_cache_dtype": "fp8"}).fingerprint,
        opened(f"vllm-local/{folder}", max_length=32).fingerprint,
    ]
    assert len({plain, *changed}) == 5


@pytest.mark.usefixtures("vllm")
def test_what_cannot_be_used(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="replicas=N"):
        opened(f"vllm-local/{folder}", data_parallel_size=2)
    with pytest.raises(ConfigurationError, match="engine must be a mapping"):
        opened(f"vllm-local/{folder}", engine="fast")
    with pytest.raises(ConfigurationError, match="must be true or false"):
        opened(f"vllm-local/{folder}", enable_prefix_caching="perhaps")
    with pytest.raises(ConfigurationError, match="more than the 96 tokens"):
        opened(f"vllm-local/{folder}", max_length=97)
    for name in ("tensor_parallel", "data_parallel"):
        with pytest.raises(
            UnknownName, match="Did you mean 'tensor_parallel_size'"
        ) as refused:
            opened(f"vllm-local/{folder}", **{name: 2})
        assert "data_parallel_size" not in str(refused.value)
    with pytest.raises(
        UnknownName, match="Unknown argument 'data_parallel' of"
    ) as refused:
        opened(f"vllm-local/{folder}", engine={"data_parallel": 2}).check()
    assert not {"data_parallel_size", "tensor_parallel_size"} & set(
        refused.value.suggestions
    )
    wrong = opened(f"vllm-local/{folder}", engine={"gpu_memory": 1})
    with pytest.raises(
        UnknownName,
        match=r"'gpu_memory'.*Did you mean .*gpu_memory_utilization",
    ):
        wrong.check()
    with pytest.raises(ModelError, match=r"vLLM cannot load .*gpu_memory"):
        wrong.load()


@pytest.mark.usefixtures("vllm")
@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("model", "other", "named after"),
        ("dtype", "float16", r"Leave out 'engine\.'"),
        ("max_model_len", 50, "max_length"),
        ("data_parallel_size", 2, "replicas=N"),
        ("logprobs_mode", "raw_logits", "no log-probabilities"),
    ],
)
def test_an_engine_argument_that_makes_a_record_untrue_is_refused(
    folder: Path, name: str, value: object, why: str
) -> None:
    with pytest.raises(ConfigurationError, match=why):
        opened(f"vllm-local/{folder}", engine={name: value})


def test_without_vllm_the_message_says_what_to_install(folder: Path) -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'evalwright\[vllm\]'"):
        opened(f"vllm-local/{folder}")


def test_without_a_gpu_it_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path)
    (tmp_path / "vllm-0.33.0+cpu.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: vllm\nVersion: 0.33.0\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("evalwright.models.local.hf.options._has_gpu", lambda: False)
    with pytest.raises(ConfigurationError, match="needs a GPU"):
        opened(f"vllm-local/{folder}").check()


def test_the_recorded_interface_is_that_of_the_wheel() -> None:
    wheel = os.environ.get("EVALWRIGHT_VLLM_WHEEL")
    if not wheel:
        pytest.skip("$EVALWRIGHT_VLLM_WHEEL names no wheel of vllm")
    assert (
        interface_of(Path(wheel))
        == json.loads(RECORDED.read_text(encoding="utf-8"))["interface"]
    )
