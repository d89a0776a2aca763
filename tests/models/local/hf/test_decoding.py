"""The generation loop: what it computes once, who leaves when, what it refuses, and that nothing is lost."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import Failure
from evalwright.core.requests import Generate
from evalwright.core.responses import Response
from evalwright.models.local.hf.model import TransformersModel
from support.local_models import answers, engine_of, greedy_by_hand
from support.tiny_models import Unusual, make_unusual_model

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

SHOTS = "Question: How many legs has a spider? Answer: eight. " * 3
PROMPTS = [
    SHOTS + "Question: What is the capital of France? Answer:",
    SHOTS + "Iron melts at",
    SHOTS + "1 2 3 4 5",
    SHOTS + "The committee",
    "Iron",
    "The river rises in the hills above the town",
]


def opened(folder: Path, **options: Any) -> TransformersModel:
    model = TransformersModel(str(folder), device="cpu", max_tokens=20, **options)
    model.load()
    return model


def by_hand(model: TransformersModel, request: Generate) -> str:
    """The text of the greedy tokens."""
    tokens = greedy_by_hand(model, str(request.prompt), request.max_tokens or 0)
    return str(engine_of(model).loaded.encoder.decode(tokens, True))


class Watched:
    """Stands before a model's forward and notes the shape (rows, tokens) of every pass."""

    def __init__(self, model: TransformersModel) -> None:
        base = engine_of(model).loaded.model.base_model
        self.passes: list[tuple[int, int]] = []
        self._forward = base.forward
        base.forward = self

    def __call__(self, *args: Any, **given: Any) -> Any:
        self.passes.append(tuple(given["input_ids"].shape))
        return self._forward(*args, **given)


@pytest.fixture
def few_tokens_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Families from few tokens and few members on, as tiny models have short contexts."""
    from evalwright.models.local.hf import families

    monkeypatch.setattr(families, "WORTH", 8)
    monkeypatch.setattr(families, "LEAST", 2)
    monkeypatch.setattr(families, "ENOUGH", 2)


@pytest.fixture(scope="module")
def unusual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    root = tmp_path_factory.mktemp("unusual")
    torch.set_num_threads(1)
    made: dict[tuple[Unusual, int], Path] = {}

    def make(kind: Unusual, window: int) -> Path:
        if (kind, window) not in made:
            made[kind, window] = make_unusual_model(root / f"{kind}{window}", kind, window=window)
        return made[kind, window]

    yield make


@pytest.mark.usefixtures("few_tokens_share")
@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen2"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_shared_beginnings_change_no_greedy_answer(
    folders: dict[str, Path], kind: str, attention: str
) -> None:
    model = opened(folders[kind], attn_implementation=attention)
    requests = [Generate(prompt, max_tokens=5 + 4 * i) for i, prompt in enumerate(PROMPTS * 2)]
    requests = [Generate(r.prompt, max_tokens=min(r.max_tokens or 0, 20)) for r in requests]
    found = answers(model, requests)
    assert [response.text for response in found] == [by_hand(model, each) for each in requests]
    decoder = engine_of(model).generator.decoder
    assert decoder.refusal is None
    assert decoder.cascading is (attention == "sdpa")
    assert len({response.text for response in found}) > 3


@pytest.mark.parametrize(
    ("kind", "window"), [("gemma2", 1000), ("gemma2", 16), ("cohere", 16), ("gpt_neo", 1000), ("mamba", 16)]
)
def test_other_architectures(
    unusual: Any, kind: Unusual, window: int, caplog: pytest.LogCaptureFixture
) -> None:
    model = opened(unusual(kind, window))
    requests = [Generate(prompt, max_tokens=4 + i) for i, prompt in enumerate(PROMPTS[3:])]
    with caplog.at_level(logging.WARNING, logger="evalwright"):
        found = answers(model, requests) + answers(model, requests)
    said = [record.getMessage() for record in caplog.records if "own loop" in record.getMessage()]
    assert [response.text for response in found] == 2 * [by_hand(model, each) for each in requests]
    by_transformers = kind == "mamba" or (kind == "gemma2" and window == 16)
    assert len(said) == by_transformers, "one line, however often it is asked"


def test_who_is_done_leaves_and_who_waits_comes_in(folders: dict[str, Path]) -> None:
    model = opened(folders["llama"], batch_size=4)
    requests = [Generate(f"{i} legs", max_tokens=20 if i == 0 else 2 + i % 3) for i in range(10)]
    expected = [answers(model, [request])[0] for request in requests]
    watched = Watched(model)
    found = list(model.answer_batch(requests))
    assert dict(found) == dict(enumerate(expected))
    assert max(rows for rows, _ in watched.passes) <= 4
    steps = [rows for rows, tokens in watched.passes if tokens == 1]
    written = sum(response.usage.output_tokens for response in expected)
    assert sum(steps) == written - len(requests), (
        "no row is computed after its end; prompts give the first token"
    )
    order = [index for index, _ in found]
    assert order[-1] == 0, "the others do not wait for the longest"
    arrived: list[int] = []
    for index, _ in model.answer_batch(requests):
        arrived.append(len(watched.passes))
        assert index >= 0
    assert len(set(arrived)) > 3, "answers come as their rows end"


@pytest.mark.usefixtures("few_tokens_share")
def test_every_prompt_token_is_computed_once(folders: dict[str, Path]) -> None:
    model = opened(folders["llama"])
    answers(model, [Generate("a", max_tokens=1)])
    encode = engine_of(model).loaded.encoder.encode
    watched = Watched(model)
    draws = [Generate(PROMPTS[0], max_tokens=3, temperature=1.0, draw=draw) for draw in range(8)]
    answers(model, draws)
    prompts = sum(rows * tokens for rows, tokens in watched.passes if (rows, tokens) != (8, 1))
    assert prompts == len(encode(PROMPTS[0], True))
    watched.passes.clear()
    answers(model, [Generate(prompt, max_tokens=1) for prompt in PROMPTS[:4] * 2])
    texts = [encode(prompt, True) for prompt in PROMPTS[:4]]
    shots = len(encode(SHOTS, True))
    longest = max(len(text) for text in texts) - shots
    assert sum(rows * tokens for rows, tokens in watched.passes) <= shots + 4 * (longest + 2)


def test_draws_are_the_same_in_any_batch(folders: dict[str, Path]) -> None:
    model = opened(folders["llama"])
    requests = [
        Generate(PROMPTS[i % 3], max_tokens=8, temperature=1.0, top_p=0.9 if i % 2 else None, draw=i, seed=3)
        for i in range(12)
    ]
    together = answers(model, requests)
    assert together == [answers(model, [request])[0] for request in requests]
    assert together == answers(opened(folders["llama"], batch_size=5), requests)
    # Nothing is left of the loop when transformers writes the same answers.
    other = opened(folders["llama"])
    engine_of(other).generator.decoder.refusal = "it is not asked"
    assert together == answers(other, requests)
    assert len({response.text for response in together}) > 8


def test_a_row_that_is_not_a_number_fails_alone(folders: dict[str, Path]) -> None:
    model = opened(folders["llama"])
    loaded = engine_of(model).loaded
    requests = [
        Generate(text, max_tokens=6) for text in ("Iron", "naïve", "1 2 3", "A baker", "東京", "gold")
    ]
    expected = answers(model, requests)
    bad = loaded.encoder.encode("東京", False)[-1]
    others = [
        token
        for place in (0, 1, 2, 3, 5)
        for token in loaded.encoder.encode(str(requests[place].prompt), True)
    ]
    assert bad not in others
    written = " ".join(response.text for place, response in enumerate(expected) if place != 4)
    assert bad not in loaded.encoder.encode(written, True)
    loaded.model.get_input_embeddings().weight.data[bad] = float("nan")
    for _ in range(2):
        found = answers(model, requests)
        assert isinstance(found[4], Failure)
        assert "not numbers" in found[4].message
        assert found[:4] + found[5:] == expected[:4] + expected[5:]


def test_no_answer_is_lost_when_memory_runs_out(folders: dict[str, Path]) -> None:
    model = opened(folders["llama"])
    requests = [Generate(f"{i} legs", max_tokens=2 + 3 * (i % 4)) for i in range(12)]
    expected = answers(model, requests)
    forward = engine_of(model).loaded.model.base_model.forward
    refused: list[int] = []
    finished: list[int] = []

    def cramped(*args: Any, **given: Any) -> Any:
        rows = given["input_ids"].shape[0]
        if rows > 5 and given["input_ids"].shape[1] == 1:
            refused.append(len(finished))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(*args, **given)

    engine_of(model).loaded.model.base_model.forward = cramped
    found = []
    for each in model.answer_batch(requests):
        finished.append(each[0])
        found.append(each)
    assert refused
    assert sorted(finished) == list(range(12))
    assert [response for _, response in sorted(found, key=lambda each: each[0])] == expected
    count = len(refused)
    assert answers(model, requests) == expected
    assert len(refused) == count, "the smaller size is kept"


def test_one_request_at_fault_fails_alone(folders: dict[str, Path]) -> None:
    model = opened(folders["llama"])
    requests = [Generate(text, max_tokens=6) for text in ("Iron", "1 2 3", "gold")]
    expected = answers(model, requests)
    forward = engine_of(model).loaded.model.base_model.forward
    bad = engine_of(model).loaded.encoder.encode("1 2 3", True)[-1]

    def broken(*args: Any, **given: Any) -> Any:
        if given["input_ids"].shape[1] > 1 and bool((given["input_ids"] == bad).any()):
            raise IndexError("no such token")
        return forward(*args, **given)

    engine_of(model).loaded.model.base_model.forward = broken
    found = answers(model, requests)
    assert isinstance(found[1], Failure)
    assert "IndexError" in found[1].message
    assert [found[0], found[2]] == [expected[0], expected[2]]


def test_a_model_whose_logits_come_out_differently_is_left_to_transformers(
    folders: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    model = opened(folders["llama"])
    requests = [Generate(prompt, max_tokens=6) for prompt in PROMPTS[:3]]
    expected = answers(opened(folders["llama"]), requests)
    rotary = engine_of(model).loaded.model.model.rotary_emb
    forward = rotary.forward

    def from_zero(x: Any, position_ids: Any) -> Any:
        """As a model that knows no positions but those of a whole text."""
        if position_ids.shape[1] == 1:
            return forward(x, torch.zeros_like(position_ids))
        return forward(x, position_ids)

    rotary.forward = from_zero
    with caplog.at_level(logging.WARNING, logger="evalwright"):
        found = answers(model, requests)
    assert all(isinstance(each, Response) for each in [*found, *expected])
    assert engine_of(model).generator.decoder.refusal == "its logits differ"
    assert sum("own loop" in record.getMessage() for record in caplog.records) == 1
