"""Rewards of networks in this process, tiny and with random weights, against transformers alone
and arithmetic by hand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, Failure
from evalwright.core.requests import Embed, Message, Request, Reward
from evalwright.core.responses import Response
from evalwright.models.model_interface import LocalModel
from evalwright.models.registry import open_model
from support.tiny_models import make_tiny_model
from support.tiny_rewards import (
    make_chat_head,
    make_comet,
    make_encoder,
    make_metricx,
    make_pair_head,
)

pytestmark = pytest.mark.torch

CHAT = (Message("system", "Be short."), Message("user", "How many legs has a spider?"))
REQUESTS = [
    Reward(CHAT, "eight."),
    Reward(
        CHAT,
        "The river rises in the hills, and a spider has eight legs, as 8 is 4 and 4.",
    ),
    Reward("What is the capital of France?", "Paris", "Paris, the capital"),
    Reward("gold", "", "iron"),
]


def opened(name: str, **arguments: Any) -> LocalModel:
    model = open_model(name, arguments)
    assert isinstance(model, LocalModel)
    return model


def values(model: LocalModel, requests: Sequence[Request]) -> list[tuple[float, ...]]:
    """The values of all at once, which must be those of each alone."""
    found: dict[int, Response | Failure] = dict(model.answer_batch(requests))
    out = []
    for place, request in enumerate(requests):
        answer = found[place]
        assert isinstance(answer, Response), answer
        ((_, alone),) = list(model.answer_batch([request]))
        assert isinstance(alone, Response)
        assert answer.values == pytest.approx(alone.values, rel=1e-4, abs=1e-4)
        out.append(answer.values)
    return out


def failed(model: LocalModel, request: Request) -> str:
    ((_, answer),) = list(model.answer_batch([request]))
    assert isinstance(answer, Failure)
    return answer.message


def test_a_head_reads_the_conversation_by_its_template(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = make_chat_head(tmp_path / "head")
    model = opened(f"reward/{folder}")
    assert model.describe()["form"] == "chat"
    network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for request, found in zip(REQUESTS[:3], values(model, REQUESTS[:3]), strict=True):
        turns = (
            [Message("user", request.prompt)]
            if isinstance(request.prompt, str)
            else request.prompt
        )
        rows = [
            turn.as_dict() for turn in (*turns, Message("assistant", request.response))
        ]
        text = tokenizer.apply_chat_template(rows, tokenize=False)
        with torch.no_grad():
            ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")[
                "input_ids"
            ]
            wanted = float(network(ids).logits[0, 0])
        assert found == pytest.approx((wanted,), abs=1e-5)
    assert "cannot do 'embed'" in failed(model, Embed("x"))
    assert "never cut in silence" in failed(model, Reward("x", "spider " * 300))


def test_one_class_of_several_is_a_log_odds(tmp_path: Path) -> None:
    folder = make_chat_head(tmp_path / "head", labels=3)
    each = [
        values(opened(f"reward/{folder}", label=f"class-{place}"), REQUESTS[:2])
        for place in range(3)
    ]
    for place in range(2):
        chances = [1 / (1 + math.exp(-found[place][0])) for found in each]
        assert sum(chances) == pytest.approx(1.0, abs=1e-5)
    with pytest.raises(ConfigurationError, match=r"-M label="):
        opened(f"reward/{folder}")


def test_a_head_without_a_template_reads_two_texts(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = make_pair_head(tmp_path / "head")
    request = Reward("How many legs has a spider?", "eight")
    ((found,),) = values(opened(f"reward/{folder}"), [request])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
        wanted = network(
            **tokenizer(request.prompt, request.response, return_tensors="pt")
        ).logits[0, 0]
    assert found == pytest.approx(float(wanted), abs=1e-5)
    with pytest.raises(ConfigurationError, match="no chat template"):
        opened(f"reward/{folder}", form="chat")
    with pytest.raises(ConfigurationError, match="likelihood/hf/"):
        opened(f"reward/{make_tiny_model(tmp_path / 'lm')}")


def test_the_fingerprint_covers_weights_and_settings(tmp_path: Path) -> None:
    one = make_pair_head(tmp_path / "one")
    other = make_pair_head(tmp_path / "other")
    (other / "extra.json").write_text("{}")
    prints = {
        opened(f"reward/{one}").fingerprint,
        opened(f"reward/{other}").fingerprint,
    }
    prints.add(opened(f"reward/{one}", max_length=32).fingerprint)
    assert len(prints) == 3
    assert opened(f"reward/{one}").fingerprint in prints
    model = opened(f"reward/{one}")
    (one / "config.json").write_text((one / "config.json").read_text() + " ")
    with pytest.raises(Exception, match="changed after the run had begun"):
        model.load()


def test_metricx_is_one_logit_of_the_first_step(tmp_path: Path) -> None:
    import torch
    from transformers import AutoTokenizer, MT5ForConditionalGeneration

    folder = make_metricx(tmp_path / "metricx")
    beside = f"{folder}-tokenizer"
    tokenizer = AutoTokenizer.from_pretrained(beside)
    network = MT5ForConditionalGeneration.from_pretrained(folder).eval()
    requests = [
        Reward("The river rises.", "Der Fluss steigt.", "Der Fluss entspringt."),
        Reward("How many legs has a spider, and how old is it?", "Acht."),
    ]
    texts = {
        "24": ["source: The river rises. candidate: Der Fluss steigt. reference: Der Fluss entspringt.",
               "source: How many legs has a spider, and how old is it? candidate: Acht."],
        "23": ["candidate: Der Fluss steigt. reference: Der Fluss entspringt.",
               "candidate: Acht. source: How many legs has a spider, and how old is it?"],
    }  # fmt: skip
    with torch.no_grad():
        ids = tokenizer(texts["24"][0], return_tensors="pt")["input_ids"][:, :-1]
        order = (
            network(
                input_ids=ids, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)
            )
            .logits[0, 0]
            .argsort()
        )
    inside = 0
    for token in (
        int(order[0]) or int(order[1]),
        int(order[-1]) or int(order[-2]),
    ):  # the least and the most probable
        for version, wanted in texts.items():
            model = opened(
                f"metricx/{folder}",
                tokenizer=beside,
                score_token=token,
                version=version,
            )
            for text, found in zip(wanted, values(model, requests), strict=True):
                ids = tokenizer(text, return_tensors="pt")["input_ids"][
                    :, :-1
                ]  # without the end of the sequence
                with torch.no_grad():
                    logit = float(
                        network(
                            input_ids=ids,
                            decoder_input_ids=torch.zeros((1, 1), dtype=torch.long),
                        ).logits[0, 0, token]
                    )
                errors = min(max(logit, 0.0), 25.0)
                inside += 0 < logit < 25
                assert found == pytest.approx((-errors, errors), rel=1e-4, abs=1e-3)
    assert inside  # the random network says something else than 0 somewhere
    with pytest.raises(ConfigurationError, match="name that of the mT5"):
        opened(f"metricx/{folder}")
    with pytest.raises(ConfigurationError, match="is not one of the"):
        opened(f"metricx/{folder}", tokenizer=beside)
    with pytest.raises(ConfigurationError, match="MetricX is an mT5"):
        opened(f"metricx/{make_pair_head(tmp_path / 'bert')}")


def test_bertscore_matches_tokens_greedily(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = make_encoder(tmp_path / "encoder")
    network = AutoModel.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def states(text: str) -> list[list[float]]:
        with torch.no_grad():
            found = network(
                **tokenizer(text, return_tensors="pt"), output_hidden_states=True
            ).hidden_states[2][0]
        return [[float(value) for value in row] for row in found]

    def cosine(one: Sequence[float], other: Sequence[float]) -> float:
        dot = math.fsum(a * b for a, b in zip(one, other, strict=True))
        return dot / math.sqrt(
            math.fsum(a * a for a in one) * math.fsum(b * b for b in other)
        )

    model = opened(f"bertscore/{folder}", layer=2)
    requests = [
        Reward("", "eight legs", "A spider has eight legs."),
        Reward("", "Paris", "Paris"),
        Reward("", "a baker", "iron"),
    ]
    for request, found in zip(requests, values(model, requests), strict=True):
        reply = states(request.response)
        reference = states(request.reference or "")
        precision = [max(cosine(own, other) for other in reference) for own in reply][
            1:-1
        ]
        recall = [max(cosine(own, other) for other in reply) for own in reference][1:-1]
        wanted = (sum(precision) / len(precision), sum(recall) / len(recall))
        assert found[1:] == pytest.approx(wanted, abs=1e-5)
        assert found[0] == pytest.approx(
            2 * wanted[0] * wanted[1] / sum(wanted), abs=1e-5
        )
    assert values(model, [Reward("", "Paris", "Paris")])[0] == pytest.approx(
        (1.0, 1.0, 1.0), abs=1e-6
    )
    assert values(model, [Reward("", " ", "Paris")])[0] == (0.0, 0.0, 0.0)
    assert "reference: true" in failed(model, Reward("", "x"))
    with pytest.raises(ConfigurationError, match="-M layer=9"):
        opened(f"bertscore/{folder}")
    with pytest.raises(ConfigurationError, match="from 0 to 3"):
        opened(f"bertscore/{folder}", layer=4)


@pytest.mark.parametrize(
    "changed",
    [{}, {"layer_transformation": "softmax", "layer_norm": True}, {"layer": 1, "pool": "cls"}, {"pool": "max", "final_activation": "Sigmoid"}],
)  # fmt: skip
def test_comet_by_hand(tmp_path: Path, changed: dict[str, Any]) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder, encoder = make_comet(tmp_path / "comet", **changed)
    model = opened(f"comet/{folder}")
    requests = [
        Reward("The river rises.", "Der Fluss steigt.", "Der Fluss entspringt."),
        Reward("Gold", "iron melts at 1538", "Gold"),
    ]
    state = torch.load(folder / "checkpoints" / "model.ckpt", weights_only=True)[
        "state_dict"
    ]
    network = AutoModel.from_pretrained(encoder).eval()
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    logits = [
        float(state[f"layerwise_attention.scalar_parameters.{place}"])
        for place in range(3)
    ]

    def pooled(text: str) -> Any:
        with torch.no_grad():
            ids = tokenizer(text, return_tensors="pt")["input_ids"]
            layers = [
                layer[0]
                for layer in network(ids, output_hidden_states=True).hidden_states
            ]
        if changed.get("layer") == 1:
            mixed = layers[1]
        else:
            if changed.get("layer_norm"):
                layers = [
                    (layer - layer.mean()) / layer.var(unbiased=False).sqrt()
                    for layer in layers
                ]
                total = sum(map(math.exp, logits))
                shares = [math.exp(logit) / total for logit in logits]
            else:  # the threshold of the sparse mixture by bisection
                low = min(logits) - 2
                high = max(logits)
                for _ in range(200):
                    middle = (low + high) / 2
                    low, high = (
                        (middle, high)
                        if sum(max(logit - middle, 0) for logit in logits) > 1
                        else (low, middle)
                    )
                shares = [max(logit - low, 0) for logit in logits]
            mixed = 1.3 * sum(
                share * layer for share, layer in zip(shares, layers, strict=True)
            )
        return {"cls": mixed[0], "max": mixed.max(0).values}.get(
            changed.get("pool", "avg"), mixed.mean(0)
        )

    for request, found in zip(requests, values(model, requests), strict=True):
        source, reply, reference = map(
            pooled, (str(request.prompt), request.response, request.reference or "")
        )
        x = torch.cat(
            [
                reply,
                reference,
                reply * reference,
                abs(reply - reference),
                reply * source,
                abs(reply - source),
            ]
        )
        for place in (0, 3, 6):
            x = (
                state[f"estimator.ff.{place}.weight"] @ x
                + state[f"estimator.ff.{place}.bias"]
            )
            x = (
                x.tanh()
                if place < 6
                else x.sigmoid()
                if changed.get("final_activation")
                else x
            )
        assert found == pytest.approx((float(x),), rel=1e-4, abs=1e-3)
    assert "reference: true" in failed(model, Reward("a", "b"))


def test_other_networks_of_comet_are_refused(tmp_path: Path) -> None:
    folder, encoder = make_comet(
        tmp_path / "unified", class_identifier="unified_metric"
    )
    with pytest.raises(ConfigurationError, match="'unified_metric' is not supported"):
        opened(f"comet/{folder}")
    with pytest.raises(ConfigurationError, match="hf download"):
        opened(f"comet/{encoder}")
    bomb = tmp_path / "bomb"
    folder, _ = make_comet(bomb)

    class Runs:
        def __reduce__(self) -> Any:
            return (print, ("it ran",))

    import torch

    torch.save(
        {"state_dict": {}, "more": Runs()}, folder / "checkpoints" / "model.ckpt"
    )
    with pytest.raises(Exception, match="holds more than weights"):
        opened(f"comet/{folder}").load()
