"""Generation: the numbers of a plain forward, what is computed once, who leaves when, and that
nothing is lost.
"""

from __future__ import annotations

import json
import logging
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import Failure
from evalwright.core.requests import Generate, LogLikelihood, Message
from evalwright.models.local.hf.transformers_model import TransformersModel
from support.local_models import answers, engine_of, greedy_by_hand
from support.tiny_models import Unusual, make_unusual_model

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from evalwright.models.local.hf import decoding, packed_products  # noqa: E402
from evalwright.models.local.hf import engine as engine_module  # noqa: E402
from evalwright.models.local.hf.step_attention import StepAttention  # noqa: E402

packed_only = pytest.mark.skipif(
    not packed_products.are_supported(), reason="this processor has no such products"
)

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


def by_hand(model: TransformersModel, request: Generate) -> tuple[str, str]:
    """The text of the greedy tokens, and why it ends."""
    assert request.max_tokens is not None
    tokens = greedy_by_hand(model, str(request.prompt), request.max_tokens)
    text = str(engine_of(model).loaded.encoder.decode(tokens, True))
    return text, "length" if len(tokens) == request.max_tokens else "stop"


def passes_of(model: TransformersModel) -> list[tuple[int, int]]:
    """The shape (rows, tokens) of every pass from now on."""
    passes: list[tuple[int, int]] = []
    replaced(
        model, lambda forward, given: passes.append(tuple(given["input_ids"].shape))
    )
    return passes


def replaced(model: TransformersModel, before: Any) -> None:
    """Let `before(forward, arguments)` stand before every pass."""
    base = engine_of(model).loaded.model.base_model
    inner = base.forward

    def forward(*args: Any, **given: Any) -> Any:
        before(inner, given)
        return inner(*args, **given)

    base.forward = forward


@pytest.fixture
def few_tokens_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Families from few tokens and few members on, as tiny models have short contexts."""
    for name, value in (
        ("MIN_EXTRA_SHARED_TOKENS", 8),
        ("MIN_SHARED_TOKENS", 2),
        ("MIN_FAMILY_PROMPTS", 2),
    ):
        monkeypatch.setattr(decoding, name, value)


@pytest.mark.usefixtures("few_tokens_share")
@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen2"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_greedy_answers_are_those_of_a_plain_forward(
    folders: dict[str, Path], kind: str, attention: str
) -> None:
    model = opened(folders[kind], attn_implementation=attention)
    requests = [
        Generate(prompt, max_tokens=min(5 + 4 * i, 20))
        for i, prompt in enumerate(PROMPTS * 2)
    ]
    found = answers(model, requests)
    assert [(each.text, each.finish_reason) for each in found] == [
        by_hand(model, request) for request in requests
    ]
    decoder = engine_of(model).decoder
    assert decoder.refusal is None
    assert decoder.forward.cascading is (attention == "sdpa")
    assert len({response.text for response in found}) > 3


@pytest.mark.parametrize(
    ("kind", "window"),
    [
        ("gemma2", 1000),
        ("gemma2", 16),
        ("cohere", 16),
        ("gpt_neo", 1000),
        ("mamba", 16),
    ],
)
def test_other_architectures(
    kind: Unusual, window: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = opened(make_unusual_model(tmp_path, kind, window=window))
    requests = [
        Generate(prompt, max_tokens=4 + i) for i, prompt in enumerate(PROMPTS[3:])
    ]
    with caplog.at_level(logging.WARNING, logger="evalwright"):
        found = answers(model, requests) + answers(model, requests)
    said = [
        record.getMessage()
        for record in caplog.records
        if "own loop" in record.getMessage()
    ]
    assert [(each.text, each.finish_reason) for each in found] == 2 * [
        by_hand(model, request) for request in requests
    ]
    by_transformers = kind == "mamba" or (kind == "gemma2" and window == 16)
    assert len(said) == by_transformers, "one line, however often it is asked"


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen2"])
def test_a_stop_string_ends_its_row_only_and_limits_are_kept(
    folders: dict[str, Path], kind: str
) -> None:
    model = opened(folders[kind])
    free = [(prompt, *answers(model, [Generate(prompt)])) for prompt in PROMPTS]
    long_ones = [
        (prompt, before, before.text[6:8])
        for prompt, before in free
        if len(before.text) > 8
    ]
    cut = [Generate(prompt, stop=(stop, "\n\n\n")) for prompt, _, stop in long_ones]
    for (_, before, stop), after in zip(long_ones, answers(model, cut), strict=True):
        assert (after.text, after.finish_reason) == (before.text.split(stop)[0], "stop")
        assert after.usage.output_tokens <= before.usage.output_tokens <= 20
    assert len(long_ones) > 2
    long, full, empty = answers(
        model,
        [
            Generate("x " * 60, max_tokens=500),
            Generate("x " * 200, max_tokens=5),
            Generate("", max_tokens=4),
        ],
    )
    assert long.usage.input_tokens + long.usage.output_tokens <= 128
    assert "no room for an answer" in full.message
    assert empty.usage.input_tokens == 1, "the prefix token"


def test_who_is_done_leaves_and_who_waits_comes_in(folders: dict[str, Path]) -> None:
    model = opened(folders["llama"], batch_size=4)
    requests = [
        Generate(f"{i} legs", max_tokens=20 if i == 0 else 2 + i % 3) for i in range(10)
    ]
    expected = [answers(model, [request])[0] for request in requests]
    passes = passes_of(model)
    arrived = []
    found = []
    for each in model.answer_batch(requests):
        found.append(each)
        arrived.append(len(passes))
    assert dict(found) == dict(enumerate(expected))
    assert max(rows for rows, _ in passes) <= 4
    written = sum(response.usage.output_tokens for response in expected)
    assert sum(rows for rows, tokens in passes if tokens == 1) == written - len(
        requests
    ), "no row is computed after its end; prompts give the first token"
    assert found[-1][0] == 0, "the others do not wait for the longest"
    assert len(set(arrived)) > 3, "answers come as their rows end"


@pytest.mark.usefixtures("few_tokens_share")
def test_every_prompt_token_is_computed_once(folders: dict[str, Path]) -> None:
    model = opened(folders["llama"])
    answers(model, [Generate("a", max_tokens=1)])
    encode = engine_of(model).loaded.encoder.encode
    passes = passes_of(model)
    answers(
        model,
        [
            Generate(PROMPTS[0], max_tokens=3, temperature=1.0, draw=draw)
            for draw in range(8)
        ],
    )
    prompts = sum(rows * tokens for rows, tokens in passes if (rows, tokens) != (8, 1))
    assert prompts == len(encode(PROMPTS[0], True))
    passes.clear()
    answers(model, [Generate(prompt, max_tokens=1) for prompt in PROMPTS[:4] * 2])
    shots = len(encode(SHOTS, True))
    rests = sum(len(encode(prompt, True)) for prompt in PROMPTS[:4]) - 4 * shots
    assert sum(rows * tokens for rows, tokens in passes) <= shots + rests + 4 * 2


@packed_only
def test_packed_weights_serve_generation_and_not_few_scores(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened(folders["qwen2"])
    engine = engine_of(model)
    products = engine.decoder.products
    pair = LogLikelihood(PROMPTS[0], " Paris")
    score = answers(model, [pair])[0]
    requests = [Generate(prompt, max_tokens=12) for prompt in PROMPTS]
    replies = answers(model, requests)
    assert products.active
    hidden = torch.randn(40, engine.loaded.model.config.hidden_size)
    head = engine.loaded.model.get_output_embeddings()
    with torch.inference_mode():
        with products.applied():
            packed = head(hidden)
            for rows in (2, 7, 33):
                assert torch.equal(head(hidden[:rows]), packed[:rows])
        assert "forward" not in vars(head), "the plain product is back"
        assert torch.allclose(head(hidden), packed, atol=1e-5)
    assert answers(model, [pair]) == [score]
    # Without the memory for them, the model's own weights give the same answers.
    monkeypatch.setattr(engine_module, "packed_budget", lambda *_: 1000)
    small = opened(folders["qwen2"])
    assert not engine_of(small).decoder.products.active
    assert answers(small, requests) == replies


@packed_only
def test_packed_weights_that_give_other_numbers_are_dropped(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [Generate(prompt, max_tokens=6) for prompt in PROMPTS[:3]]
    expected = answers(opened(folders["llama"]), requests)

    def doubled(layer: Any) -> Any:
        return lambda states: 2 * torch.nn.functional.linear(states, layer.weight)

    monkeypatch.setattr(packed_products, "_packed_forward", doubled)
    model = opened(folders["llama"])
    assert answers(model, requests) == expected
    decoder = engine_of(model).decoder
    assert not decoder.products.active
    assert decoder.refusal is None
    assert decoder.forward.cascading


@pytest.mark.parametrize("prefix", [0, 50])
def test_a_step_attends_to_its_row_and_the_prefix(prefix: int) -> None:
    torch.manual_seed(0)
    lengths = [40, 40, 31, *range(30, 12, -1), 1]
    heads, groups, width = 2, 3, 8
    queries = torch.randn(len(lengths), heads * groups, 1, width)
    keys, values = torch.randn(2, len(lengths), heads, 40, width)
    stored = tuple(torch.randn(2, 1, heads, prefix, width)) if prefix else None
    attention = StepAttention(lengths, torch.float32, "cpu")
    attended = attention.attend(queries, keys, values, None, stored)
    for row, length in enumerate(lengths):
        row_keys = keys[row : row + 1, :, :length]
        row_values = values[row : row + 1, :, :length]
        if stored is not None:
            row_keys = torch.cat([stored[0], row_keys], dim=2)
            row_values = torch.cat([stored[1], row_values], dim=2)
        expected = torch.nn.functional.scaled_dot_product_attention(
            queries[row : row + 1], row_keys, row_values, enable_gqa=True
        )
        assert torch.allclose(attended[row], expected[0, :, 0], atol=1e-6)


def test_draws_are_the_same_in_any_batch(folders: dict[str, Path]) -> None:
    def draws(seed: int) -> list[Generate]:
        return [
            Generate(
                PROMPTS[i % 3],
                max_tokens=8,
                temperature=1.0,
                top_p=0.9 if i % 2 else None,
                draw=i,
                seed=seed,
            )
            for i in range(12)
        ]

    model = opened(folders["llama"])
    greedy = Generate(PROMPTS[4], max_tokens=8)
    *together, beside = answers(model, [*draws(3), greedy])
    assert together == [answers(model, [request])[0] for request in draws(3)]
    assert together == answers(opened(folders["llama"], batch_size=5), draws(3))
    assert [beside] == answers(model, [greedy])
    # Nothing is left of the loop when transformers writes the same answers.
    other = opened(folders["llama"])
    engine_of(other).decoder.refusal = "it is not asked"
    assert together == answers(other, draws(3))
    assert len({response.text for response in together}) > 8
    assert together != answers(model, draws(4))


def test_the_checkpoints_own_sampling_settings_do_not_apply(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "opinionated"
    shutil.copytree(folders["llama"], folder)
    settings = {
        "do_sample": True,
        "temperature": 5.0,
        "repetition_penalty": 3.0,
        "eos_token_id": [1, 3],
    }
    (folder / "generation_config.json").write_text(json.dumps(settings))
    theirs = opened(folder)
    ours = opened(folders["llama"])
    requests = [Generate(prompt, max_tokens=10) for prompt in PROMPTS[:5]]
    assert [r.text for r in answers(theirs, requests)] == [
        r.text for r in answers(ours, requests)
    ]
    assert engine_of(theirs).loaded.end_tokens == {1, 3}


def test_end_tokens_end_an_answer_and_are_no_part_of_it(
    folders: dict[str, Path],
) -> None:
    model = opened(folders["plain"])
    request = Generate("Iron", max_tokens=10)
    [free] = answers(model, [request])
    engine = engine_of(model)
    tokens = greedy_by_hand(model, "Iron", 10)
    end = next(
        token
        for place, token in enumerate(tokens)
        if place and token not in tokens[:place]
    )
    engine.decoder._loaded = replace(engine.loaded, end_tokens=frozenset({end}))
    [ended] = answers(model, [request])
    assert ended.text == engine.loaded.encoder.decode(tokens[: tokens.index(end)], True)
    assert (ended.finish_reason, free.finish_reason) == ("stop", "length")
    assert ended.usage.output_tokens == tokens.index(end) + 1


def test_a_row_that_is_not_a_number_fails_alone(folders: dict[str, Path]) -> None:
    model = opened(folders["llama"])
    loaded = engine_of(model).loaded
    texts = ("Iron", "naïve", "1 2 3", "A baker", "東京", "gold")
    requests = [
        Generate(text, max_tokens=6, temperature=float(text == "東京"))
        for text in texts
    ]
    expected = answers(model, requests)
    bad = loaded.encoder.encode("東京", False)[-1]
    for place in (0, 1, 2, 3, 5):
        assert bad not in loaded.encoder.encode(
            texts[place] + " " + expected[place].text, True
        )
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
    refused: list[int] = []

    def cramped(_: Any, given: Any) -> None:
        rows, tokens = given["input_ids"].shape
        if rows > 5 and tokens == 1:
            refused.append(rows)
            raise torch.OutOfMemoryError("CUDA out of memory")

    replaced(model, cramped)
    assert answers(model, requests) == expected
    count = len(refused)
    assert count
    assert answers(model, requests) == expected
    assert len(refused) == count, "the smaller size is kept"


def test_a_model_whose_logits_come_out_differently_is_left_to_transformers(
    folders: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    model = opened(folders["llama"])
    rotary = engine_of(model).loaded.model.model.rotary_emb
    forward = rotary.forward

    def from_zero(x: Any, position_ids: Any) -> Any:
        """As a model that knows no positions but those of a whole text."""
        return forward(
            x,
            torch.zeros_like(position_ids)
            if position_ids.shape[1] == 1
            else position_ids,
        )

    rotary.forward = from_zero
    with caplog.at_level(logging.WARNING, logger="evalwright"):
        found = answers(
            model, [Generate(prompt, max_tokens=6) for prompt in PROMPTS[:3]]
        )
    assert not any(isinstance(each, Failure) for each in found)
    assert engine_of(model).decoder.refusal == "its logits differ"
    assert sum("own loop" in record.getMessage() for record in caplog.records) == 1


def test_chat_and_prefill(folders: dict[str, Path]) -> None:
    asked = (Message("system", "Be brief."), Message("user", "Hi"))
    text = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    chats = [Generate(asked), Generate((*asked, Message("assistant", "Well, ")))]
    # The rendered text as a plain prompt, without the BOS that a plain prompt gets.
    bare = opened(folders["llama"], add_special_tokens=False)
    plain = answers(bare, [Generate(text), Generate(text + "Well, ")])
    assert answers(opened(folders["llama"]), chats) == plain
