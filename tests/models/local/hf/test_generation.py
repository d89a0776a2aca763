"""Generation: equal to one by one, each row with its own end, draws that do not depend on the batch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalwright.core.errors import Failure
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response
from evalwright.models.local.hf.model import TransformersModel
from support.local_models import answers, engine_of, greedy_by_hand

pytestmark = pytest.mark.torch

PROMPTS = [
    "The river rises in the hills above the town and runs past",
    "Iron",
    "Question: What is the capital of France? Answer:",
    "1 2 3 4 5",
    "She asked him whether the train had left; he said that it had not, but that it would in 12 minutes.",
]


@pytest.fixture(scope="module", params=["llama", "gpt2", "qwen2"])
def model(request: pytest.FixtureRequest, folders: dict[str, Path]) -> TransformersModel:
    return TransformersModel(str(folders[request.param]), device="cpu", max_tokens=20)


def test_greedy_batches_equal_one_by_one(model: TransformersModel) -> None:
    requests = [Generate(prompt, max_tokens=12 + 3 * i) for i, prompt in enumerate(PROMPTS)]
    together = answers(model, requests)
    alone = [answers(model, [request])[0] for request in requests]
    assert together == alone
    assert model._engine is not None
    for request, response in zip(requests, together, strict=True):
        assert isinstance(request.prompt, str)
        assert request.max_tokens is not None
        tokens = greedy_by_hand(model, request.prompt, request.max_tokens)
        assert response.text == model._engine.loaded.encoder.decode(tokens, True)
        assert response.finish_reason == ("length" if len(tokens) == request.max_tokens else "stop")
    assert len({response.text for response in together}) > 1


def test_a_stop_string_ends_its_row_only(model: TransformersModel) -> None:
    free = answers(model, [Generate(prompt, max_tokens=20) for prompt in PROMPTS])
    stops = [response.text[6:8] for response in free]
    stopped = answers(
        model,
        [
            Generate(prompt, max_tokens=20, stop=(stop, "\n\n\n"))
            for prompt, stop in zip(PROMPTS, stops, strict=True)
        ],
    )
    for before, after, stop in zip(free, stopped, stops, strict=True):
        assert after.text == before.text.split(stop)[0]
        assert after.finish_reason == "stop"
        assert after.usage.output_tokens <= before.usage.output_tokens


def test_limits(model: TransformersModel) -> None:
    default, cut, full = answers(
        model, [Generate("Iron"), Generate("x " * 60, max_tokens=500), Generate("x " * 200, max_tokens=5)]
    )
    assert default.usage.output_tokens <= 20
    assert cut.usage.input_tokens + cut.usage.output_tokens <= 128
    assert isinstance(full, Failure)
    assert "no room for an answer" in full.message


def test_an_empty_prompt_starts_from_the_prefix_token(model: TransformersModel) -> None:
    [response] = answers(model, [Generate("", max_tokens=4)])
    assert isinstance(response, Response)
    assert response.usage.input_tokens == 1


def test_draws_differ_and_repeat(model: TransformersModel) -> None:
    def draws(seed: int | None) -> list[Any]:
        return [
            Generate(
                PROMPTS[i % 2],
                max_tokens=8,
                temperature=1.0,
                seed=seed,
                draw=draw,
                top_p=0.9 if draw % 2 else None,
            )
            for i, draw in enumerate(range(6))
        ]

    first = answers(model, [*draws(1), Generate(PROMPTS[2], max_tokens=8)])
    assert first[:6] == answers(model, draws(1))
    assert first[:6] == [answers(model, [request])[0] for request in draws(1)]
    assert len({response.text for response in first[:6]}) == 6
    assert first[:6] != answers(model, draws(2))
    assert first[6] == answers(model, [Generate(PROMPTS[2], max_tokens=8)])[0], (
        "a greedy row beside sampled ones"
    )


def test_draw_follows_the_distribution() -> None:
    import torch

    from evalwright.models.local.hf.sampling import choose

    def draw(logits: Any, temperature: float, top_p: float | None, uniform: float) -> int | None:
        """The token that a uniform number falls on."""
        request = Generate("", temperature=temperature, top_p=top_p)
        stream = SimpleNamespace(random=lambda: uniform)
        writer: Any = SimpleNamespace(job=SimpleNamespace(request=request), stream=stream)
        [token] = choose(logits[None], [writer])
        return token

    probabilities = torch.tensor([0.1, 0.4, 0.05, 0.3, 0.15])
    logits = probabilities.log()
    count = 2000
    at = [(i + 0.5) / count for i in range(count)]
    found = Counter(draw(logits, 1.0, None, u) for u in at)
    assert {token: found[token] / count for token in range(5)} == pytest.approx(
        dict(enumerate(probabilities.tolist())), abs=1e-3
    )
    sharp = Counter(draw(logits, 0.5, None, u) for u in at)
    squares = probabilities**2 / (probabilities**2).sum()
    assert {token: sharp[token] / count for token in range(5)} == pytest.approx(
        dict(enumerate(squares.tolist())), abs=1e-3
    )
    nucleus = Counter(draw(logits, 1.0, 0.7, u) for u in at)
    assert set(nucleus) == {1, 3}
    assert nucleus[1] / count == pytest.approx(4 / 7, abs=1e-3)
    assert {draw(logits, 1.0, 0.0, u) for u in at} == {1}
    assert draw(logits, 1.0, None, 1.0) == 4


def test_the_checkpoints_own_sampling_settings_do_not_apply(folders: dict[str, Path], tmp_path: Path) -> None:
    import json
    import shutil

    folder = tmp_path / "opinionated"
    shutil.copytree(folders["llama"], folder)
    settings = {
        "do_sample": True,
        "temperature": 5.0,
        "repetition_penalty": 3.0,
        "bos_token_id": 0,
        "eos_token_id": [1, 3],
    }
    (folder / "generation_config.json").write_text(json.dumps(settings))
    theirs, ours = (
        TransformersModel(str(folder), device="cpu"),
        TransformersModel(str(folders["llama"]), device="cpu"),
    )
    requests = [Generate(prompt, max_tokens=10) for prompt in PROMPTS]
    assert [r.text for r in answers(theirs, requests)] == [r.text for r in answers(ours, requests)]
    assert theirs._engine is not None
    assert theirs._engine.loaded.end_tokens == {1, 3}


def test_end_tokens_end_an_answer_and_are_no_part_of_it(folders: dict[str, Path]) -> None:
    from dataclasses import replace

    model = TransformersModel(str(folders["plain"]), device="cpu")
    [free] = answers(model, [Generate("Iron", max_tokens=10)])
    engine = engine_of(model)
    tokens = greedy_by_hand(model, "Iron", 10)
    end = next(token for place, token in enumerate(tokens) if place and token not in tokens[:place])
    engine.generator.decoder._loaded = replace(engine.loaded, end_tokens=frozenset({end}))
    [ended] = answers(model, [Generate("Iron", max_tokens=10)])
    assert ended.text == engine.loaded.encoder.decode(tokens[: tokens.index(end)], True)
    assert ended.finish_reason == "stop"
    assert ended.usage.output_tokens == tokens.index(end) + 1
    assert free.finish_reason == "length"


def test_not_a_number_is_a_failure(folders: dict[str, Path]) -> None:
    model = TransformersModel(str(folders["llama"]), device="cpu")
    model.load()
    assert model._engine is not None
    model._engine.loaded.model.lm_head.weight.data.fill_(float("nan"))
    found = answers(model, [Generate("a", max_tokens=3), Generate("a", max_tokens=3, temperature=1.0)])
    assert [type(answer) for answer in found] == [Failure, Failure]
    assert "not numbers" in found[0].message


def test_chat_and_prefill(folders: dict[str, Path]) -> None:
    model = TransformersModel(str(folders["llama"]), device="cpu", max_tokens=8)
    asked = (Message("system", "Be brief."), Message("user", "Hi"))
    text = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    chat, prefilled = answers(model, [Generate(asked), Generate((*asked, Message("assistant", "Well, ")))])
    assert model._engine is not None
    rules = model._engine.loaded.reader.rules
    model._engine.loaded.encoder.tokenizer.chat_template = None
    # The rendered text as a plain prompt, without the BOS that a plain prompt gets.
    bare = TransformersModel(str(folders["llama"]), device="cpu", max_tokens=8, add_special_tokens=False)
    plain, longer = answers(bare, [Generate(text), Generate(text + "Well, ")])
    assert rules.add_special_tokens
    assert (chat, prefilled) == (plain, longer)
