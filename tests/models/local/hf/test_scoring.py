"""Log-likelihoods against a naive computation: one text at a time, all logits, no padding."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.core.errors import Failure
from evalwright.core.requests import (
    LogLikelihood,
    Message,
    Request,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response
from evalwright.models.local.hf.transformers_model import TransformersModel
from support.local_models import answers, engine_of
from support.tiny_models import Unusual, make_unusual_model

pytestmark = pytest.mark.torch
KINDS = ["llama", "gpt2", "qwen2"]

CONTEXT = "Question: What is the capital of France? Answer:"
PAIRS = [
    (CONTEXT, " Paris"), (CONTEXT, " A"), (CONTEXT, " B"),
    (CONTEXT, " The river rises in the hills above the town"), ("Iron melts at ", "1538 degrees"),
    ("", "Light takes about eight minutes"), ("naïve ", "Übermut 東京"), ("x", "y"), (CONTEXT, " Paris"),
]  # fmt: skip
BOOK = (
    "A baker gets up at three o'clock, when the street is dark, lights the oven and weighs flour. "
    * 8
)


class Naive:
    """transformers itself, one text at a time."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from evalwright.models.local.hf.quiet import quiet

        with quiet():
            self.model = AutoModelForCausalLM.from_pretrained(folder).eval()
            self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.prefix = self.tokenizer.bos_token_id
        if self.prefix is None:
            self.prefix = self.tokenizer.eos_token_id

    def token_log_probabilities(
        self, tokens: list[int]
    ) -> tuple[list[float], list[bool]]:
        """Of tokens[1:], each after all before it."""
        import torch

        with torch.no_grad():
            logits = self.model(torch.tensor([tokens[:-1]])).logits[0].double()
        table = torch.log_softmax(logits, -1)
        nexts = torch.tensor(tokens[1:])
        return table[torch.arange(len(nexts)), nexts].tolist(), (
            table.argmax(-1) == nexts
        ).tolist()

    def pair(
        self, context: str, continuation: str, limit: int = 128
    ) -> tuple[float, bool, int]:
        spaces = len(context) - len(context.rstrip())
        if spaces:
            context, continuation = context[:-spaces], context[-spaces:] + continuation
        if context:
            before = self.tokenizer.encode(context)
            whole = self.tokenizer.encode(context + continuation)
            assert whole[: len(before)] == before, "pick pairs whose join is no token"
        else:
            before = [self.prefix]
            whole = [
                self.prefix,
                *self.tokenizer.encode(continuation, add_special_tokens=False),
            ]
        scored = len(whole) - len(before)
        values, greedy = self.token_log_probabilities(whole[-(limit + 1) :])
        return sum(values[-scored:]), all(greedy[-scored:]), scored

    def rolling(self, text: str, limit: int) -> tuple[float, int]:
        tokens = self.tokenizer.encode(text, add_special_tokens=False)
        padded = [self.prefix, *tokens]
        total = 0.0
        for start in range(0, len(tokens), limit):
            end = min(start + limit, len(tokens))
            values, _ = self.token_log_probabilities(
                padded[max(0, end - limit) : end + 1]
            )
            total += sum(values[-(end - start) :])
        return total, len(tokens)


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def naive(kind: str, folders: dict[str, Path]) -> Naive:
    return Naive(folders[kind])


@pytest.mark.parametrize("way", ["plain", "tree"])
@pytest.mark.parametrize("batch_size", [1, 3, "auto"])
def test_pairs_agree_with_the_naive_way(
    kind: str, way: str, batch_size: int | str, folders: dict[str, Path], naive: Naive
) -> None:
    model = TransformersModel(
        str(folders[kind]), device="cpu", scoring=way, batch_size=batch_size
    )
    requests: list[Request] = [LogLikelihood(*pair) for pair in PAIRS]
    for pair, response in zip(
        PAIRS, answers(model, [*requests, RollingLogLikelihood(BOOK)]), strict=False
    ):
        value, greedy, count = naive.pair(*pair)
        assert response.log_likelihood == pytest.approx(value, abs=1e-5 * count)
        assert (response.is_greedy, response.tokens_scored, response.finish_reason) == (
            greedy,
            count,
            "",
        )
    reader = engine_of(model).scorer._reader
    assert reader.sliced, "these architectures let the head see chosen positions only"
    if (way, batch_size) != ("plain", "auto"):
        return
    sliced = answers(model, requests)
    for accepted in (reader._accepted, reader._accepted - {"logits_to_keep"}):
        reader.sliced = False
        reader._accepted = accepted
        for one, other in zip(sliced, answers(model, requests), strict=True):
            assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-5)
            assert one.is_greedy == other.is_greedy


def test_a_greedy_continuation_is_known_as_one(
    kind: str, folders: dict[str, Path], naive: Naive
) -> None:
    import torch

    model = TransformersModel(str(folders[kind]), device="cpu")
    tried = 0
    for word in [
        "river",
        "hills",
        "town",
        "mill",
        "sea",
        "spring",
        "water",
        "baker",
        "street",
        "oven",
        "flour",
        "salt",
        "sun",
        "moon",
        "train",
        "gold",
    ]:
        tokens = naive.tokenizer.encode(word)
        with torch.no_grad():
            text = naive.tokenizer.decode(
                [int(naive.model(torch.tensor([tokens])).logits[0, -1].argmax())]
            )
        if naive.tokenizer.encode(word + text)[:-1] == tokens:
            tried += 1
            likely, unlikely = answers(
                model, [LogLikelihood(word, text), LogLikelihood(word, "###")]
            )
            assert likely.is_greedy
            assert not unlikely.is_greedy
    assert tried, "no word has a greedy next token that encodes to itself"


@pytest.mark.parametrize("way", ["plain", "tree"])
@pytest.mark.parametrize("limit", [7, 16, 128])
def test_rolling_agrees_with_the_naive_way(
    kind: str, folders: dict[str, Path], naive: Naive, limit: int, way: str
) -> None:
    model = TransformersModel(
        str(folders[kind]), device="cpu", max_length=limit, scoring=way
    )
    found = answers(
        model,
        [
            RollingLogLikelihood(BOOK),
            RollingLogLikelihood("x"),
            RollingLogLikelihood(""),
        ],
    )
    for text, response in zip([BOOK, "x"], found, strict=False):
        value, count = naive.rolling(text, limit)
        assert response.log_likelihood == pytest.approx(value, rel=1e-6)
        assert response.tokens_scored == count
    assert found[2] == Response(log_likelihood=0.0, is_greedy=True, tokens_scored=0)


def test_a_long_context_loses_its_left(
    kind: str, folders: dict[str, Path], naive: Naive
) -> None:
    model = TransformersModel(str(folders[kind]), device="cpu", max_length=20)
    short, long = answers(
        model,
        [LogLikelihood("Iron melts", " at"), LogLikelihood(BOOK + "so", " it was")],
    )
    assert long.log_likelihood == pytest.approx(
        naive.pair(BOOK + "so", " it was", limit=20)[0], abs=1e-5
    )
    assert (short.finish_reason, long.finish_reason) == ("", "truncated")
    assert long.usage.input_tokens == 21


def test_what_cannot_be_scored_fails_alone(folders: dict[str, Path]) -> None:
    model = TransformersModel(str(folders["llama"]), device="cpu")
    found = answers(
        model,
        [
            LogLikelihood("a", " b"),
            LogLikelihood("a", BOOK * 3),
            LogLikelihood("a", ""),
            LogLikelihood("\ud800", "b"),
        ],
    )
    assert isinstance(found[0], Response)
    assert [type(answer) for answer in found[1:]] == [Failure] * 3
    assert "cannot be scored in one piece" in found[1].message
    assert all(answer.party == "model" and not answer.retryable for answer in found[1:])


@pytest.mark.parametrize("way", ["plain", "tree"])
def test_one_forward_serves_letters_and_repeated_inputs(
    folders: dict[str, Path], way: str
) -> None:
    model = TransformersModel(str(folders["llama"]), device="cpu", scoring=way)
    rows: list[int] = []
    engine_of(model).loaded.model.base_model.register_forward_pre_hook(
        lambda _, args, given: rows.append(given["input_ids"].shape[0]),
        with_kwargs=True,
    )
    letters = [LogLikelihood(CONTEXT + " The letter (", letter) for letter in "ABCD"]
    found = answers(model, [*letters, *letters])
    assert sum(rows) == 1
    assert len({answer.log_likelihood for answer in found}) == 4


@pytest.mark.parametrize("way", ["plain", "tree"])
def test_not_a_number_is_a_failure(folders: dict[str, Path], way: str) -> None:
    model = TransformersModel(str(folders["llama"]), device="cpu", scoring=way)
    engine_of(model).loaded.model.lm_head.weight.data.fill_(float("nan"))
    [found] = answers(model, [LogLikelihood("a", " b")])
    assert isinstance(found, Failure)
    assert "not a finite number" in found.message


def test_chat_contexts_are_rendered_without_a_second_bos(
    folders: dict[str, Path],
) -> None:
    model = TransformersModel(str(folders["strict"]), device="cpu")
    naive = Naive(folders["strict"])
    [found] = answers(model, [LogLikelihood((Message("user", "Yes or no?"),), "yes")])
    before = naive.tokenizer.encode(
        "<s><|im_start|>user\nYes or no?<|im_end|>\n<|im_start|>assistant",
        add_special_tokens=False,
    )
    after = naive.tokenizer.encode("\nyes", add_special_tokens=False)
    values, _ = naive.token_log_probabilities(before + after)
    assert found.log_likelihood == pytest.approx(sum(values[-len(after) :]), abs=1e-5)
    assert before.count(naive.prefix) == 1


@pytest.mark.parametrize("way", ["plain", "auto"])
@pytest.mark.parametrize("name", ["gemma2", "cohere", "granite", "bloom", "mamba"])
def test_unusual_models_are_scored_right(
    name: Unusual, way: str, tmp_path: Path
) -> None:
    make_unusual_model(tmp_path, name)
    model = TransformersModel(str(tmp_path), device="cpu", max_length=128, scoring=way)
    naive = Naive(tmp_path)
    found = answers(
        model, [*(LogLikelihood(*pair) for pair in PAIRS), RollingLogLikelihood(BOOK)]
    )
    for pair, response in zip(PAIRS, found, strict=False):
        assert response.log_likelihood == pytest.approx(naive.pair(*pair)[0], abs=1e-4)
    assert found[-1].log_likelihood == pytest.approx(
        naive.rolling(BOOK, 128)[0], rel=1e-6
    )
    assert engine_of(model).scorer._reader.sliced
