"""Rewards by log-likelihoods: mean of the reply's tokens, log-odds of a verdict; over local
models and a server that echoes.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, Failure, UnknownName
from evalwright.core.requests import LogLikelihood, Message, Request, Reward
from evalwright.core.responses import Response
from evalwright.models.model_interface import LocalModel, RemoteModel
from evalwright.models.registry import open_model
from evalwright.models.rewards.likelihood import (
    TEMPLATE,
    _Remote,
    likelihood_model,
    verdict_model,
)
from support.tiny_models import make_tiny_model


def answers(model: Any, requests: list[Request]) -> list[Response | Failure]:
    assert isinstance(model, LocalModel)
    found = dict(model.answer_batch(requests))
    return [found[place] for place in range(len(requests))]


def asked(name: str, *requests: LogLikelihood) -> list[Response]:
    found = answers(open_model(name), list(requests))
    assert all(isinstance(one, Response) for one in found)
    return [one for one in found if isinstance(one, Response)]


def test_the_mean_log_likelihood_of_the_reply() -> None:
    model = open_model("likelihood/demo/small")
    assert model.name == "likelihood/demo/small"
    assert model.abilities == frozenset({"reward"})
    requests: list[Request] = [
        Reward("The capital of France is", " Paris"),
        Reward("The capital of France is", " a city in the north"),
    ]
    found = answers(model, requests)
    wanted = asked(
        "demo/small",
        *(
            LogLikelihood("The capital of France is", request.response)
            for request in requests
            if isinstance(request, Reward)
        ),
    )
    for one, other in zip(found, wanted, strict=True):
        assert isinstance(one, Response)
        assert other.log_likelihood is not None and other.tokens_scored
        assert one.values == pytest.approx(
            (other.log_likelihood / other.tokens_scored,)
        )
    empty, wrong = answers(model, [Reward("x", ""), LogLikelihood("x", "y")])
    assert isinstance(empty, Failure) and "no mean log-likelihood" in empty.message
    assert isinstance(wrong, Failure) and "cannot do 'log-likelihood'" in wrong.message


@pytest.mark.torch
def test_it_is_that_of_transformers(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = make_tiny_model(tmp_path / "gpt2", "gpt2")
    prompt = "What is the capital of France?"
    reply = " Paris is the capital of it."
    found = answers(open_model(f"likelihood/hf/{folder}"), [Reward(prompt, reply)])[0]
    assert isinstance(found, Response)
    network = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    start = len(tokenizer(prompt)["input_ids"])
    ids = tokenizer(prompt + reply, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        logs = network(ids).logits[0].double().log_softmax(-1)
    each = [
        float(logs[place - 1, ids[0, place]]) for place in range(start, ids.shape[1])
    ]
    assert found.values == pytest.approx((sum(each) / len(each),), abs=1e-5)


def test_a_verdict_is_the_log_odds_of_two_words() -> None:
    request = Reward((Message("user", "Name a colour. {response}"),), "Red {prompt}")
    (found,) = answers(open_model("verdict/demo/small"), [request])
    assert isinstance(found, Response)
    # Braces of the texts are not filled in again.
    question = (
        TEMPLATE.replace("{response}", "\0")
        .replace("{prompt}", "Name a colour. {response}")
        .replace("\0", "Red {prompt}")
    )
    yes, no = asked(
        "demo/small", LogLikelihood(question, " Yes"), LogLikelihood(question, " No")
    )
    assert yes.log_likelihood is not None and no.log_likelihood is not None
    assert found.values == pytest.approx((yes.log_likelihood - no.log_likelihood,))
    assert found.usage.input_tokens == yes.usage.input_tokens + no.usage.input_tokens
    own = open_model(
        "verdict/demo/small",
        {"template": "Is {response} like {reference}?", "yes": " so", "no": " not"},
    )
    with_reference, without = answers(own, [Reward("x", "a", "b"), Reward("x", "a")])
    yes, no = asked(
        "demo/small",
        LogLikelihood("Is a like b?", " so"),
        LogLikelihood("Is a like b?", " not"),
    )
    assert yes.log_likelihood is not None and no.log_likelihood is not None
    assert isinstance(with_reference, Response)
    assert with_reference.values == pytest.approx(
        (yes.log_likelihood - no.log_likelihood,)
    )
    assert isinstance(without, Failure)


@pytest.mark.torch
def test_a_chat_model_is_asked_in_a_turn(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "chat", "qwen2", chat=True, context=512)
    request = Reward((Message("user", "Say one."),), "one")
    (found,) = answers(open_model(f"verdict/hf/{folder}"), [request])
    question = TEMPLATE.format(prompt="Say one.", response="one")
    yes, no = asked(
        f"hf/{folder}",
        *(LogLikelihood((Message("user", question),), word) for word in ("Yes", "No")),
    )
    assert isinstance(found, Response)
    assert yes.log_likelihood is not None and no.log_likelihood is not None
    assert found.values == pytest.approx(
        (yes.log_likelihood - no.log_likelihood,), abs=1e-5
    )


def test_the_fingerprint_is_of_the_model_and_of_how() -> None:
    names = [
        ("likelihood/demo/small", {}),
        ("verdict/demo/small", {}),
        ("verdict/demo/large", {}),
        ("verdict/demo/small", {"yes": " yes"}),
    ]
    assert len({open_model(name, given).fingerprint for name, given in names}) == 4
    assert (
        open_model("verdict/demo/small").fingerprint
        == open_model("verdict/demo/small").fingerprint
    )


def test_what_cannot_be_used_is_said() -> None:
    with pytest.raises(ConfigurationError, match="needs a model with log-likelihoods"):
        likelihood_model("scripted/echo")
    with pytest.raises(ConfigurationError, match=r"must have \{response\}"):
        verdict_model("demo/small", template="Good?")
    with pytest.raises(ConfigurationError, match="two verdicts"):
        verdict_model("demo/small", yes=" no", no=" no")
    with pytest.raises(UnknownName, match="'devise' of 'verdict' models"):
        open_model("verdict/demo/small", {"devise": "cpu"})


class Echo(RemoteModel):
    """A remote model of which every second request fails."""

    def __init__(self) -> None:
        self.name = "echo/x"
        self.abilities = frozenset({"log-likelihood"})
        self.sent = 0
        self.fingerprint = "echo"

    async def answer(self, request: Request) -> Response:
        from evalwright.core.errors import Overloaded
        from evalwright.core.responses import Usage

        self.sent += 1
        if self.sent == 4:
            raise Overloaded("busy")
        assert isinstance(request, LogLikelihood)
        return Response(
            log_likelihood=-float(len(request.continuation)),
            tokens_scored=2,
            usage=Usage(10, 1),
            cost=0.5,
        )


def test_over_a_network_every_answer_is_billed() -> None:
    from evalwright.core.errors import Overloaded
    from evalwright.models.rewards.likelihood import Verdict

    model = _Remote("verdict", Echo(), Verdict(None, None, None))
    found = asyncio.run(model.answer(Reward("x", "y")))
    assert (found.values, found.usage.input_tokens, found.cost) == ((-1.0,), 20, 1.0)
    with pytest.raises(Overloaded) as caught:
        asyncio.run(model.answer(Reward("x", "z")))
    assert caught.value.usage is not None and caught.value.usage.input_tokens == 10
