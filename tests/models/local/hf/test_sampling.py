"""Further options of requests: beams are transformers' own, samplers keep the tokens that
transformers keeps, log-probabilities are those of one plain forward, and the checkpoint's own
sampling is used where the request leaves it to the model.
"""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response
from evalwright.models.local.answering import settle_sampling
from evalwright.models.local.hf.transformers_model import TransformersModel
from support.local_models import answers, engine_of
from support.tiny_models import make_two_sided_model

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

PROMPTS = [
    "The river rises",
    "Question: What is the capital of France? Answer:",
    "Iron melts at 1538",
    "1 2 3",
]


def opened(folder: Path, **options: Any) -> TransformersModel:
    return TransformersModel(str(folder), device="cpu", max_tokens=20, **options)


def generated(model: TransformersModel, prompt: str, **how: Any) -> list[int]:
    """The new tokens that `model.generate` writes, up to the end token."""
    loaded = engine_of(model).loaded
    ids = torch.tensor([loaded.encoder.encode(prompt, True)])
    with torch.inference_mode():
        found = loaded.model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            pad_token_id=loaded.pad_token,
            eos_token_id=sorted(loaded.end_tokens),
            do_sample=False,
            decoder_start_token_id=loaded.start_tokens[0]
            if loaded.start_tokens
            else None,
            **how,
        )[0].tolist()
    new = (
        found[len(loaded.start_tokens) :]
        if loaded.start_tokens
        else found[ids.shape[1] :]
    )
    ends = [place for place, token in enumerate(new) if token in loaded.end_tokens]
    return list(new[: ends[0]] if ends else new)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen2", "t5", "bart"])
def test_beams_are_those_of_transformers(
    folders: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    folder = folders.get(kind) or make_two_sided_model(tmp_path / kind, kind)  # type: ignore[arg-type]
    model = opened(folder)
    differing = 0
    for beams in (2, 3, 5):
        requests = [
            Generate(prompt, max_tokens=12, num_beams=beams) for prompt in PROMPTS
        ]
        plain = answers(model, [Generate(prompt, max_tokens=12) for prompt in PROMPTS])
        for prompt, found, greedy in zip(
            PROMPTS, answers(model, requests), plain, strict=True
        ):
            tokens = generated(model, prompt, num_beams=beams, max_new_tokens=12)
            assert found.text == engine_of(model).loaded.encoder.decode(tokens, True)
            assert found.usage.output_tokens in (len(tokens), len(tokens) + 1)
            differing += found.text != greedy.text
    assert differing, "beams that always give the greedy answer would show nothing"


@pytest.mark.parametrize("kind", ["llama", "gpt2", "t5"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"repetition_penalty": 1.8},
        {"no_repeat_ngram_size": 2, "min_new_tokens": 8},
        {"suppress_tokens": list(range(20, 200)), "num_beams": 3},
        {"bad_words_ids": [[token] for token in range(50, 200)]},
    ],
)
def test_arguments_of_generate_are_passed_on(
    folders: dict[str, Path], tmp_path: Path, kind: str, arguments: dict[str, Any]
) -> None:
    folder = folders.get(kind) or make_two_sided_model(tmp_path / kind, kind)  # type: ignore[arg-type]
    model = opened(folder)
    beams = arguments.get("num_beams", 1)
    written = json.dumps(
        {name: value for name, value in arguments.items() if name != "num_beams"}
    )
    requests = [
        Generate(prompt, max_tokens=12, num_beams=beams, generation_arguments=written)
        for prompt in PROMPTS
    ]
    plain = answers(
        model, [Generate(prompt, max_tokens=12, num_beams=beams) for prompt in PROMPTS]
    )
    differing = 0
    for prompt, found, usual in zip(
        PROMPTS, answers(model, requests), plain, strict=True
    ):
        tokens = generated(model, prompt, max_new_tokens=12, **arguments)
        assert found.text == engine_of(model).loaded.encoder.decode(tokens, True)
        differing += found.text != usual.text
    assert differing, "arguments that change nothing would show nothing"


def test_what_narrows_a_drawn_token_is_as_in_transformers(
    folders: dict[str, Path],
) -> None:
    """Where the mass that is kept is tiny, one token is left: the answer is the same in every
    draw.
    """
    model = opened(folders["llama"])
    written = json.dumps({"typical_p": 1e-9})
    requests = [
        Generate(
            PROMPTS[0],
            max_tokens=8,
            temperature=1.0,
            top_p=0.99,
            draw=draw,
            generation_arguments=written,
        )
        for draw in range(4)
    ]
    assert len({answer.text for answer in answers(model, requests)}) == 1
    free = [
        Generate(PROMPTS[0], max_tokens=8, temperature=1.0, draw=draw)
        for draw in range(4)
    ]
    assert len({answer.text for answer in answers(model, free)}) > 1
    unknown = Generate(
        PROMPTS[0], generation_arguments='{"custom_generate": "stranger/code"}'
    )
    assert "does not take custom_generate" in str(model.refuses(unknown))


@pytest.mark.parametrize("early", [False, True, "never"])
@pytest.mark.parametrize("penalty", [-1.0, 0.0, 2.0])
def test_beams_with_a_length_penalty_and_early_stopping_are_those_of_transformers(
    folders: dict[str, Path], penalty: float, early: bool | str
) -> None:
    model = opened(folders["qwen2"])
    loaded = engine_of(model).loaded
    # Half of the vocabulary ends an answer, so that beams of several lengths compete.
    object.__setattr__(loaded, "end_tokens", frozenset(range(0, 400, 2)))
    differing = 0
    for most in (3, 9, 16):
        requests = [
            Generate(
                prompt,
                max_tokens=most,
                num_beams=3,
                length_penalty=penalty,
                early_stopping=early,
            )
            for prompt in PROMPTS
        ]
        plain = answers(
            model,
            [Generate(prompt, max_tokens=most, num_beams=3) for prompt in PROMPTS],
        )
        for prompt, found, other in zip(
            PROMPTS, answers(model, requests), plain, strict=True
        ):
            how = {"num_beams": 3, "length_penalty": penalty, "early_stopping": early}
            tokens = generated(model, prompt, max_new_tokens=most, **how)
            assert found.text == loaded.encoder.decode(tokens, True)
            differing += found.text != other.text
    assert differing or early or penalty > 0


def test_beams_and_others_in_one_batch_each_get_their_own(
    folders: dict[str, Path],
) -> None:
    model = opened(folders["llama"])
    requests = [
        Generate(
            prompt, max_tokens=8, num_beams=beams, stop=("e",) if beams == 2 else ()
        )
        for prompt in PROMPTS
        for beams in (1, 2, 3)
    ]
    together = answers(model, requests)
    assert [answers(model, [request])[0].text for request in requests] == [
        each.text for each in together
    ]
    assert all(
        "e" not in each.text
        for each, request in zip(together, requests, strict=True)
        if request.stop
    )
    why = model.refuses(Generate("x", num_beams=2, temperature=0.5))
    assert why is not None and why.startswith(
        f"'{model.name}' draws no beams: set the temperature to 0"
    )


def log_probabilities(model: TransformersModel, prompt: str, answer: list[int]) -> Any:
    """Of every token at every place of the answer, by one plain forward: (places, vocabulary)."""
    loaded = engine_of(model).loaded
    tokens = loaded.encoder.encode(prompt, True)
    with torch.inference_mode():
        logits = loaded.model(torch.tensor([tokens + answer]), use_cache=False).logits[
            0
        ]
    return torch.log_softmax(logits[len(tokens) - 1 : -1].float(), dim=-1)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen2"])
def test_log_probabilities_are_those_of_a_plain_forward(
    folders: dict[str, Path], kind: str, beams: int
) -> None:
    model = opened(folders[kind])
    decode = engine_of(model).loaded.encoder.decode
    requests = [
        Generate(p, max_tokens=10, num_beams=beams, top_logprobs=3) for p in PROMPTS
    ]
    for request, found in zip(requests, answers(model, requests), strict=True):
        prompt = str(request.prompt)
        wanted = generated(model, prompt, num_beams=beams, max_new_tokens=10)
        logs = log_probabilities(model, prompt, wanted)
        assert "".join(token.text for token in found.tokens) == found.text
        assert len(found.tokens) == len(wanted)
        for token, place, row in zip(found.tokens, wanted, logs, strict=True):
            assert token.log_prob == pytest.approx(float(row[place]), abs=1e-4)
            best = row.topk(3)
            assert [value for _, value in token.alternatives] == pytest.approx(
                best.values.tolist(), abs=1e-4
            )
            if best.values[0] - best.values[1] > 1e-3:
                assert token.alternatives[0][0] == decode([int(best.indices[0])], False)
    plain = answers(
        model, [Generate(p, max_tokens=10, num_beams=beams) for p in PROMPTS]
    )
    assert all(each.tokens == () for each in plain)
    [bare] = answers(model, [Generate(PROMPTS[0], max_tokens=10, top_logprobs=0)])
    assert bare.tokens and all(token.alternatives == () for token in bare.tokens)


def test_log_probabilities_stop_where_the_answer_is_cut(
    folders: dict[str, Path],
) -> None:
    model = opened(folders["llama"])
    [whole] = answers(model, [Generate(PROMPTS[0], max_tokens=16, top_logprobs=0)])
    stop = whole.text[5]
    [cut] = answers(
        model, [Generate(PROMPTS[0], max_tokens=16, top_logprobs=0, stop=(stop,))]
    )
    assert cut.text == whole.text[: whole.text.index(stop)]
    texts = "".join(token.text for token in cut.tokens)
    assert texts.startswith(cut.text) and len(cut.tokens) < len(whole.tokens)


def warped(logits: Any, temperature: float, **how: Any) -> list[float]:
    """The distribution that transformers draws from."""
    from transformers import LogitsProcessorList
    from transformers.generation import logits_process as process

    some: list[Any] = [process.TemperatureLogitsWarper(temperature)]
    some += [process.TopKLogitsWarper(how["top_k"])] if "top_k" in how else []
    some += [process.TopPLogitsWarper(how["top_p"])] if "top_p" in how else []
    some += [process.MinPLogitsWarper(how["min_p"])] if "min_p" in how else []
    found: list[float] = torch.softmax(LogitsProcessorList(some)(None, logits), dim=-1)[
        0
    ].tolist()
    return found


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"top_p": 0.7},
        {"top_p": 0.0},
        {"top_k": 3},
        {"top_k": 1},
        {"top_k": 1000},
        {"min_p": 0.3},
        {"top_k": 5, "top_p": 0.6},
        {"top_k": 6, "top_p": 0.9, "min_p": 0.2},
    ],
    ids=str,
)
@pytest.mark.parametrize("temperature", [0.7, 1.5])
def test_samplers_draw_from_what_transformers_draws_from(
    how: dict[str, Any], temperature: float
) -> None:
    from evalwright.models.local.hf.sampling import _draw_rows

    logits = torch.randn(1, 12, generator=torch.Generator().manual_seed(3)) * 2
    logits[0, 4] = logits[0, 7]  # of equal ones top_k keeps all
    wanted = warped(logits.clone(), temperature, **how)
    # A share is off by one step of this grid at most, half of the tolerance below.
    at = [(n + 0.5) / 1000 for n in range(1000)]
    request = Generate("", temperature=temperature, **how)
    rows = logits.expand(len(at), -1)
    counter = Counter(_draw_rows(rows, [request] * len(at), at))
    assert {token for token, share in enumerate(wanted) if share > 1e-3} <= set(counter)
    for token, share in enumerate(wanted):
        assert counter[token] / len(at) == pytest.approx(share, abs=2e-3)
    assert wanted[_draw_rows(logits, [request], [1.0])[0]] > 0, (
        "rounding leads to no token that cannot come"
    )


def test_a_temperature_of_none_is_the_checkpoints_own(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    own = {"do_sample": True, "temperature": 1.7, "top_k": 4, "top_p": 0.95}
    folder = shutil.copytree(folders["llama"], tmp_path / "own")
    path = folder / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **own}))
    model = opened(folder)
    plain = opened(folders["llama"])
    draws = [
        Generate(PROMPTS[0], max_tokens=8, temperature=None, seed=5, draw=n)
        for n in range(6)
    ]
    said = [
        Generate(
            PROMPTS[0],
            max_tokens=8,
            temperature=1.7,
            top_k=4,
            top_p=0.95,
            seed=5,
            draw=n,
        )
        for n in range(6)
    ]
    found = [answer.text for answer in answers(model, draws)]
    assert (
        found == [answer.text for answer in answers(plain, said)]
        and len(set(found)) > 1
    )
    # A checkpoint that says nothing of it is greedy, as transformers is.
    [greedy] = answers(plain, [Generate(PROMPTS[0], max_tokens=8)])
    assert {answer.text for answer in answers(plain, draws)} == {greedy.text}
    # What the request says itself wins.
    one = [
        Generate(PROMPTS[0], max_tokens=8, temperature=None, top_k=1, seed=5, draw=n)
        for n in range(6)
    ]
    assert {answer.text for answer in answers(model, one)} == {greedy.text}
    assert model.fingerprint != plain.fingerprint


def test_what_a_generation_config_leaves_open_is_transformers_default() -> None:
    request = Generate("x", temperature=None)
    assert settle_sampling(
        request, {"do_sample": True, "temperature": None}
    ) == Generate("x", temperature=1.0, top_k=50)
    assert (
        settle_sampling(request, {"temperature": 0.5})
        == settle_sampling(request, {})
        == Generate("x")
    )
    kept = Generate("x", temperature=0.3)
    assert settle_sampling(kept, {"do_sample": True, "top_k": 4}) is kept


def test_what_the_backend_does_not_take_is_a_sentence(folders: dict[str, Path]) -> None:
    model = opened(folders["llama"])
    for request, name in (
        (Generate("x", json_schema="{}"), "json_schema"),
        (Generate("x", reasoning_effort="low"), "reasoning_effort"),
        (Generate("x", reasoning_budget=9), "reasoning_budget"),
    ):
        why = model.refuses(request)
        assert why is not None and why.startswith(
            f"'{model.name}' does not take {name} (it takes: early_stopping, generation_arguments, length_penalty, min_p, num_beams, "
        )
    assert model.refuses(Generate((Message("user", "x"),), top_k=5)) is None


def test_values_are_finite_and_texts_whole_characters(folders: dict[str, Path]) -> None:
    """Byte-level tokens are parts of characters: the texts of tokens together are the answer all
    the same.
    """
    for kind in ("gpt2", "llama"):
        model = opened(folders[kind])
        requests = [
            Generate(
                "東京 Москва Łódź",
                max_tokens=20,
                temperature=2.0,
                seed=n,
                draw=n,
                top_logprobs=2,
            )
            for n in range(8)
        ]
        for answer in answers(model, requests):
            assert isinstance(answer, Response)
            assert "".join(token.text for token in answer.tokens) == answer.text
            assert all(
                math.isfinite(token.log_prob) and token.log_prob <= 0
                for token in answer.tokens
            )
