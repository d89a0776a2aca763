"""Classes of lm-evaluation-harness's model interface as models of ours: what is asked of them,
and what of their results counts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalwright.compat.lm_eval import LM, Instance, TemplateLM, register_model
from evalwright.compat.lm_eval.api import registry
from evalwright.compat.lm_eval.api.model import CachingLM
from evalwright.compat.lm_eval.models.adapter import LMAdapter
from evalwright.core.errors import ConfigurationError, Failure, ModelError, UnknownName
from evalwright.core.requests import (
    Embed,
    Generate,
    LogLikelihood,
    Message,
    Request,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response
from evalwright.core.secrets import MASKED
from evalwright.models.registry import open_model


@pytest.fixture(autouse=True)
def _own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MODEL_REGISTRY", {})


class Three(LM):
    """Notes its calls; answers from the length of what it is asked."""

    def __init__(self, size: int = 1) -> None:
        super().__init__()
        self.size = size
        self.calls: list[tuple[str, list[tuple[Any, ...]]]] = []

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        self._note(requests)
        return [
            (-float(len(request.args[1])), len(request.args[1]) == self.size)
            for request in requests
        ]

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        self._note(requests)
        return [-float(len(request.args[0])) for request in requests]

    def generate_until(self, requests: list[Instance]) -> list[str]:
        self._note(requests)
        return [request.args[0].upper() + "\nmore" for request in requests]

    def _note(self, requests: list[Instance]) -> None:
        self.calls.append(
            (requests[0].request_type, [request.args for request in requests])
        )
        assert [request.idx for request in requests] == list(range(len(requests)))


MIXED: list[Request] = [
    Generate("a", max_tokens=5, stop=("\n",)), LogLikelihood("a", " b"), RollingLogLikelihood("abc"),
    Generate("b", temperature=0.5, top_p=0.9, seed=7, draw=2), LogLikelihood("", "c"), Embed("x"),
]  # fmt: skip


def answers(
    made: type, requests: list[Request], **arguments: Any
) -> dict[int, Response | Failure]:
    model = LMAdapter("lm/test", made, arguments)
    model.load()
    return dict(model.answer_batch(requests))


def messages(found: dict[int, Response | Failure]) -> list[str]:
    return [answer.message for answer in found.values() if isinstance(answer, Failure)]


def test_each_kind_goes_over_in_one_call() -> None:
    model = LMAdapter("lm/test", Three, {"size": 1})
    model.load()
    found = dict(model.answer_batch(MIXED))
    assert model._lm.calls == [
        ("loglikelihood", [("a", " b"), ("", "c")]),
        ("loglikelihood_rolling", [("abc",)]),
        (
            "generate_until",
            [
                (
                    "a",
                    {
                        "until": ["\n"],
                        "do_sample": False,
                        "temperature": 0.0,
                        "max_gen_toks": 5,
                    },
                ),
                (
                    "b",
                    {
                        "until": [],
                        "do_sample": True,
                        "temperature": 0.5,
                        "top_p": 0.9,
                        "seed": 9,
                    },
                ),
            ],
        ),
    ]
    assert found[0] == Response("A", finish_reason="stop")
    assert found[1] == Response(log_likelihood=-2.0, is_greedy=False)
    assert found[2] == Response(log_likelihood=-3.0)
    assert found[3] == Response("B\nmore", finish_reason="stop")
    assert found[4] == Response(log_likelihood=-1.0, is_greedy=True)
    assert "cannot do 'embed'" in messages(found)[0]


class TextOnly(LM):
    def generate_until(self, requests: list[Instance]) -> list[str]:
        return ["x" for _ in requests]

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Not offered by this service."""
        raise NotImplementedError("no log-probabilities")

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        turns = "".join(f"<{turn['role']}>{turn['content']}" for turn in chat_history)
        return turns + "<assistant>" * add_generation_prompt


class Nothing(LM):
    def generate_until(self, requests: list[Instance]) -> Any: ...


def test_abilities_are_what_the_class_does() -> None:
    assert LMAdapter("lm/test", Three, {}).abilities == {
        "generate",
        "log-likelihood",
        "rolling",
    }
    assert LMAdapter("lm/test", TextOnly, {}).abilities == {"generate", "chat"}
    assert LMAdapter("lm/test", TextOnly, {}, chat=False).abilities == {"generate"}
    with pytest.raises(ConfigurationError, match="has no abilities"):
        LMAdapter("lm/test", Nothing, {})


def test_messages_go_through_the_class_own_template() -> None:
    seen: list[Any] = []

    class Seeing(TextOnly):
        def generate_until(self, requests: list[Instance]) -> list[str]:
            seen.extend(request.args[0] for request in requests)
            return ["x" for _ in requests]

    open_end = (Message("system", "s"), Message("user", "u"))
    answers(
        Seeing, [Generate(open_end), Generate((*open_end, Message("assistant", "p")))]
    )
    assert seen == ["<system>s<user>u<assistant>", "<system>s<user>u<assistant>p"]


def test_a_template_that_fails_costs_only_its_request() -> None:
    class Picky(TextOnly):
        def apply_chat_template(
            self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
        ) -> str:
            if chat_history[0]["role"] == "system":
                raise ValueError("no system message, please")
            return "ok"

    found = answers(
        Picky, [Generate((Message("system", "s"),)), Generate((Message("user", "u"),))]
    )
    assert messages(found) == [
        "`apply_chat_template` of 'lm/test' failed: ValueError: no system message, please."
    ]
    assert isinstance(found[1], Response)


def scoring(results: Any) -> type:
    class Given(LM):
        def loglikelihood(self, requests: list[Instance]) -> Any:
            return results

    return Given


PAIR: list[Request] = [LogLikelihood("a", "b"), LogLikelihood("a", "c")]


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([(-1.0, True)], "gave 1 results for 2 requests"),
        ([(-1.0, True)] * 3, "gave 3 results for 2 requests"),
        (iter([(-1.0, True)]), "gave only 1 results for 2 requests"),
        (None, "must give a list with one result per request, not NoneType"),
        ("no", "must give a list with one result per request, not str"),
        ([-1.0, -2.0], "must give pairs"),
        ([(1.0, True)] * 2, "at most 0, not 1.0"),
        ([(float("nan"), True)] * 2, "at most 0, not nan"),
        ([("-1", True)] * 2, "at most 0, not '-1'"),
        ([(-1.0, "yes")] * 2, "true or false for 'is greedy', not 'yes'"),
    ],
)
def test_wrong_results_are_named(results: Any, message: str) -> None:
    found = answers(scoring(results), PAIR)
    assert any(message in text for text in messages(found)), messages(found)
    assert len(found) == 2
    assert all(
        failure.party == "model"
        for failure in found.values()
        if isinstance(failure, Failure)
    )


def test_numbers_of_other_libraries_count() -> None:
    found = answers(
        scoring([(np.float32(-1.5), np.bool_(True)), [float("-inf"), 0]]), PAIR
    )
    assert found[0] == Response(log_likelihood=-1.5, is_greedy=True)
    assert found[1] == Response(log_likelihood=float("-inf"), is_greedy=False)


def test_what_a_generator_gave_before_it_broke_counts() -> None:
    class Breaking(LM):
        def generate_until(self, requests: list[Instance]) -> Iterator[str]:
            yield "first"
            raise RuntimeError("the cable is loose\nand more")

    model = LMAdapter("lm/test", Breaking, {})
    model.load()
    stream = model.answer_batch([Generate("a"), Generate("b"), Generate("c")])
    assert next(stream) == (0, Response("first", finish_reason="stop"))
    rest = dict(stream)
    assert (
        messages(rest)
        == ["`generate_until` of 'lm/test' failed: RuntimeError: the cable is loose."]
        * 2
    )


class Words(TemplateLM):
    """Words for tokens, each with log-probability -1; the last token of a continuation decides
    whether it is greedy.
    """

    eot_token_id = 0
    words: list[str] = ["<eot>"]  # noqa: RUF012

    def tok_encode(
        self, string: str, add_special_tokens: bool | None = None, **options: Any
    ) -> list[int]:
        import re

        out = []
        for word in re.findall(r"\s*\S+|\s+$", string):
            if word not in self.words:
                self.words.append(word)
            out.append(self.words.index(word))
        return out

    def _loglikelihood_tokens(
        self,
        requests: list[tuple[tuple[str, str], list[int], list[int]]],
        **options: Any,
    ) -> list[tuple[float, bool]]:
        assert all(continuation for _, _, continuation in requests)
        return [
            (-float(len(continuation)), continuation[-1:] == context[-1:])
            for _, context, continuation in requests
        ]


def test_a_template_lm_scores_tokens() -> None:
    asked: list[Request] = [
        LogLikelihood("a b", " c d"),
        LogLikelihood("a b ", "c d"),
        LogLikelihood("a b", "x c"),
        LogLikelihood("", "c d"),
        LogLikelihood("  ", "c"),
    ]
    model = LMAdapter("lm/words", Words, {})
    assert model.abilities == {"log-likelihood"}
    model.load()
    found = dict(model.answer_batch(asked))
    scored = [
        answer.log_likelihood
        for answer in found.values()
        if isinstance(answer, Response)
    ]
    # "a b" + "x c" joins to "a bx c": as there, what comes after as many tokens as the context has
    # is scored.
    assert scored == [-2.0, -2.0, -1.0, -2.0, -1.0]
    assert [
        answer.tokens_scored
        for answer in found.values()
        if isinstance(answer, Response)
    ][:3] == [
        2,
        2,
        1,
    ]
    with pytest.raises(AssertionError, match="The context is empty"):
        model._lm._encode_pair("", "c")
    (own,) = model._lm.loglikelihood(
        [Instance("loglikelihood", {}, ("", "<eot> c"), 0)]
    )
    assert own == (-1.0, False)
    assert model._lm.chat_template() == ""


def test_one_process_speaks_with_itself() -> None:
    lm = Three()
    assert (
        lm.rank,
        lm.world_size,
        lm.all_gather([1]),
        lm.gather_object("x", dst=0),
    ) == (0, 1, [1], ["x"])
    lm.barrier()
    lm.device = "cpu"
    assert lm.device == "cpu"


def test_classes_of_before_release_0_4_unpack_their_requests() -> None:
    class Old(LM):
        def loglikelihood(self, requests: Any) -> list[tuple[float, bool]]:
            return [(-float(len(context + rest)), False) for context, rest in requests]

        def generate_until(self, requests: Any) -> list[str]:
            return [request[0] + request[1]["until"][0] for request in requests]

    found = answers(Old, [LogLikelihood("a", " b"), Generate("a", stop=("!",))])
    assert found == {
        0: Response(log_likelihood=-3.0, is_greedy=False),
        1: Response("a", finish_reason="stop"),
    }


class Some(Three):
    """Takes requests from among others, whose places are not theirs."""

    def _note(self, requests: list[Instance]) -> None:
        self.calls.append(
            (requests[0].request_type, [request.args for request in requests])
        )


def test_a_cached_model_is_asked_once_and_sampling_always(tmp_path: Path) -> None:
    def instances(texts: list[str], **settings: Any) -> list[Instance]:
        return [
            Instance("generate_until", {}, (text, {"until": [], **settings}), 0)
            for text in texts
        ]

    def scored(rest: str) -> list[Instance]:
        return [Instance("loglikelihood", {}, ("a", rest), 0)]

    path = str(tmp_path / "sub" / "cache.db")
    first = Some(2)
    caching = CachingLM(first, path)
    assert caching.size == 2
    assert caching.loglikelihood(scored("bc")) == [(-2.0, True)]
    assert caching.generate_until(instances(["x", "y"])) == ["X\nmore", "Y\nmore"]
    assert caching.generate_until(instances(["y", "z", "x"])) == [
        "Y\nmore",
        "Z\nmore",
        "X\nmore",
    ]
    assert [args[0] for args in first.calls[-1][1]] == ["z"]
    for _ in range(2):
        caching.generate_until(instances(["s"], do_sample=True))
    assert len(first.calls) == 5
    first.cache_hook.add_partial("loglikelihood_rolling", ("told",), -1.5)
    second = Some(2)
    again = CachingLM(second, path)
    assert again.loglikelihood(scored("bc")) == [(-2.0, True)]
    assert again.loglikelihood_rolling(
        [Instance("loglikelihood_rolling", {}, ("told",), 0)]
    ) == [-1.5]
    assert second.calls == []
    with pytest.raises(AttributeError):
        _ = again.nosuch


def test_names_and_arguments() -> None:
    register_model("three", "drei")(Three)
    assert open_model("lm/drei", {"size": 2}).name == "lm/drei"
    with pytest.raises(UnknownName, match="Did you mean 'three'"):
        open_model("lm/thre")
    with pytest.raises(UnknownName, match="Did you mean 'size'"):
        open_model("lm/three", {"sise": 2})
    with pytest.raises(ConfigurationError, match="already that of the class Three"):
        register_model("three")(TextOnly)
    with pytest.raises(ConfigurationError, match="none of the methods"):
        register_model("number")(int)
    with pytest.raises(ConfigurationError, match="registers a class"):
        register_model("it")(len)  # type: ignore[type-var]
    with pytest.raises(ConfigurationError, match="cannot be a model's name"):
        register_model("a@b")(Three)

    class Needs(Three):
        def __init__(self, weights: str) -> None:
            super().__init__()

    register_model("needs")(Needs)
    with pytest.raises(ConfigurationError, match="needs the argument 'weights'"):
        open_model("lm/needs")


def test_a_class_is_made_its_own_way() -> None:
    class ByText(Three):
        @classmethod
        def create_from_arg_string(
            cls, arg_string: str, additional_config: Any = None
        ) -> ByText:
            made = cls(3)
            made.given = arg_string  # type: ignore[attr-defined]
            return made

    model = LMAdapter("lm/test", ByText, {"a": 1, "b": "x"})
    model.load()
    assert (model._lm.given, model._lm.size) == ("a=1,b=x", 3)
    with pytest.raises(ModelError, match="cannot contain a comma"):
        LMAdapter("lm/test", ByText, {"a": "1,2"}).load()
    assert Three.create_from_arg_string("size=4", {"more": None}).size == 4
    with pytest.raises(ConfigurationError, match="key=value"):
        Three.create_from_arg_string("size")


SOURCE = """
from evalwright.compat.lm_eval import LM
class Model(LM):
    def generate_until(self, requests):
        return ["%s" for _ in requests]
"""


def test_nothing_is_shared_until_the_class_or_the_user_names_what_answers() -> None:
    def model(made: type, named: str | None = None, **arguments: Any) -> LMAdapter:
        return LMAdapter("lm/x", made, arguments, fingerprint=named)

    class Named(Three):
        fingerprint = "weights of May"

    assert model(Three).fingerprint != model(Three).fingerprint
    assert not model(Three).is_known
    assert (
        model(Named).fingerprint
        == model(Three, "weights of May").fingerprint
        != model(Three, "other").fingerprint
    )
    assert model(Named, size=1).fingerprint != model(Named, size=2).fingerprint


def test_every_argument_is_part_of_the_fingerprint_and_a_secret_as_a_digest() -> None:
    class Takes(Three):
        def __init__(
            self, api_key: str = "", max_tokens: int = 1, add_bos_token: bool = False, think_end_token: str = "",
            tokenized_requests: bool = False,
        ) -> None:  # fmt: skip
            super().__init__()

    base = {
        "api_key": "secret-of-one",
        "max_tokens": 2,
        "add_bos_token": False,
        "think_end_token": "</t>",
    }
    changes: list[dict[str, Any]] = [
        {}, {"api_key": "secret-of-two"}, {"max_tokens": 3}, {"add_bos_token": True}, {"think_end_token": "</s>"},
        {"tokenized_requests": True},
    ]  # fmt: skip
    made = [
        LMAdapter("lm/x", Takes, {**base, **change}, fingerprint="f")
        for change in changes
    ]
    assert len({each.fingerprint for each in made}) == len(changes)
    shown = made[0].describe()["arguments"]
    assert shown == {**base, "api_key": MASKED}


def test_a_size_of_batches_is_checked_and_handed_over() -> None:
    class Batched(Three):
        def __init__(self, batch_size: int | str = 1, **more: Any) -> None:
            super().__init__()
            self.batch_size = batch_size

    model = LMAdapter("lm/x", Batched, {"batch_size": 3})
    model.load()
    assert model._lm.batch_size == 3
    for wrong in ("banana", 0, True, "auto:x", -1, 1.5):
        with pytest.raises(ConfigurationError, match="whole number of at least 1"):
            LMAdapter("lm/x", Batched, {"batch_size": wrong})
    with pytest.raises(UnknownName, match="Did you mean 'batch_size'"):
        LMAdapter("lm/x", Batched, {"batchsize": 3})


def test_the_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    with pytest.raises(ConfigurationError, match="pip install lm_eval"):
        open_model("lm_eval/hf")


def test_a_package_offers_its_class_under_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "offering.py").write_text((SOURCE % "from a package") + "\nvalue = 1\n")
    info = tmp_path / "offering-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: offering\nVersion: 1\n"
    )
    (info / "entry_points.txt").write_text(
        "[evalwright.lm]\noffered = offering:Model\nbroken = offering:value\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    model = open_model("lm/offered")
    assert isinstance(model, LMAdapter)
    assert dict(model.answer_batch([Generate("a")]))[0] == Response(
        "from a package", finish_reason="stop"
    )
    with pytest.raises(ConfigurationError, match="is not a model class"):
        open_model("lm/broken")
    with pytest.raises(UnknownName, match="Did you mean 'offered'"):
        open_model("lm/offerd")
