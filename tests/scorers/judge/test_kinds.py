"""Forms, options and edge cases of the judges: what is asked for is what is read; what does not
fit is an error in a sentence.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evalwright.core.errors import (
    ConfigurationError,
    RequestFailed,
    ScoringError,
    UnknownName,
    UsageError,
)
from evalwright.core.images import Image
from evalwright.core.requests import Generate, Message, Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Passage, Sample, Score
from evalwright.scorers.judge.forms import (
    BadVerdict,
    Form,
    choice,
    group,
    reason,
    whole_number,
)
from evalwright.scorers.registry import bind
from support.written_judge import Asked, judge

FORM = Form(
    (
        reason(),
        choice("class", ["met", "not met"]),
        whole_number("grade", [1, 2, 3]),
        group("c1", [reason()]),
    )
)
MARK = "0123456789abcdef"
GOOD = {
    "check": MARK,
    "reason": "so",
    "class": "met",
    "grade": 2,
    "c1": {"reason": "x"},
}


def test_instruction_schema_and_parser_are_of_one_table() -> None:
    assert FORM.read(json.dumps(GOOD), MARK) == {
        name: value for name, value in GOOD.items() if name != "check"
    }
    schema = json.loads(FORM.schema())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(GOOD, schema)
    assert list(schema["properties"]) == list(GOOD), (
        "reasons come before what they lead to"
    )
    assert MARK in FORM.instruction(MARK)
    assert MARK not in FORM.schema(), "providers compile a schema once"
    for name in GOOD:
        assert f'"{name}": ' in FORM.instruction(MARK)


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        (r"so is \sqrt{2} \(here\)", r"so is \sqrt{2} \(here\)"),
        ("first\nsecond\tthird", "first second third"),
        (r"a \u0041 \\ \"b\"", r'a A \ "b"'),
    ],
)
def test_reasons_with_latex_and_line_breaks_are_read(reason: str, kept: str) -> None:
    text = json.dumps(GOOD).replace('"reason": "so"', f'"reason": "{reason}"')
    assert FORM.read(text, MARK)["reason"] == kept


def test_a_class_may_be_written_with_a_space() -> None:
    labels = choice("class", ["incorrect", "not_attempted", "not met"])
    assert [labels.read(one) for one in ("Not attempted", "not-attempted", "NOT_MET")] == [
        "not_attempted", "not_attempted", "not met",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"class": "perhaps"}, "not one of met, not met"),
        ({"class": None}, "not one of"),
        ({"grade": 4}, "from 1 to 3"),
        ({"grade": True}, "from 1 to 3"),
        ({"grade": "2"}, "from 1 to 3"),
        ({"grade": 2.5}, "from 1 to 3"),
        ({"c1": "fine"}, "not an object"),
        ({"c1": {}}, "no 'reason' in 'c1'"),
        ({"check": "0" * 16}, "without the mark"),
    ],
)
def test_what_does_not_fit_is_no_verdict(changed: dict[str, Any], why: str) -> None:
    made = {**GOOD, **changed}
    with pytest.raises(BadVerdict, match=why):
        FORM.read(json.dumps(made), MARK)
    if "check" not in changed:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(made, json.loads(FORM.schema()))


def test_a_verdict_that_says_two_things_is_none() -> None:
    twice = json.dumps(GOOD)[:-1] + ', "class": "not met"}'
    with pytest.raises(BadVerdict, match=r"no JSON object|without the mark"):
        FORM.read(twice, MARK)
    with pytest.raises(BadVerdict, match="several verdicts that differ"):
        FORM.read(json.dumps(GOOD) + json.dumps({**GOOD, "class": "not met"}), MARK)
    assert FORM.read(json.dumps(GOOD) * 2, MARK)["class"] == "met"
    assert (
        FORM.read(json.dumps({**GOOD, "class": " Not Met "}), MARK)["class"]
        == "not met"
    )


@pytest.mark.parametrize(
    "text",
    ["{" * 100_000, '{"a":' * 20_000, "[" * 100_000, '{"check": "' + "x" * 100_000],
)
def test_reading_a_long_reply_ends(text: str) -> None:
    with pytest.raises(BadVerdict):
        FORM.read(text, MARK)


# -- options
# --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "kept"),
    [
        ("judge-rubric", {"criteria": "polite"}, "list of texts"),
        ("judge-rubric", {"criteria": [""]}, "no `text`"),
        ("judge-rubric", {"criteria": ["a", "a"]}, "'a' twice"),
        ("judge-rubric", {"criteria": [{"text": "a", "point": 2}]}, "points"),
        ("judge-rubric", {"criteria": [{"text": "a", "points": 0}]}, "other than 0"),
        ("judge-rubric", {"criteria": [{"text": "a", "points": -1}]}, "above 0"),
        (
            "judge-rubric",
            {
                "criteria": [
                    {"text": "a", "points": 1e308},
                    {"text": "b", "points": 1e308},
                ]
            },
            "1,000,000",
        ),
        (
            "judge-rubric",
            {"criteria": [{"text": "a", "points": float("nan")}]},
            "1,000,000",
        ),
        ("judge-rubric", {"criteria": [{"text": "a", "severity": "hihg"}]}, "high"),
        (
            "judge-rubric",
            {"criteria": [{"text": "a", "points": 1, "severity": "high"}]},
            "both",
        ),
        (
            "judge-rubric",
            {"criteria": [{"text": "a", "classes": {"x": 2, "y": 0}}]},
            "share of the points",
        ),
        (
            "judge-rubric",
            {"criteria": [{"text": "a", "classes": {"Good": 1, "good": 0}}]},
            "capitals",
        ),
        (
            "judge-rubric",
            {"criteria": [{"text": "a", "classes": {"Good": 1, "Good ": 0}}]},
            "spaces",
        ),
        ("judge-rubric", {"calls": "many"}, "one, each"),
        ("judge-rubric", {"turns": "all"}, "last, each"),
        ("judge-rubric", {"threshold": 2}, "from 0 to 1"),
        ("judge-rating", {}, "needs the option 'question'"),
        ("judge-rating", {"question": "?", "scale": [5]}, "two whole numbers"),
        ("judge-rating", {"question": "?", "scale": [5, 1]}, "the worse first"),
        (
            "judge-rating",
            {"question": "?", "scale": {"low": "bad"}},
            "two whole numbers",
        ),
        (
            "judge-rating",
            {"question": "?", "judges": ["a", "rating"]},
            "cannot have the role 'rating'",
        ),
        ("judge-correct", {"judges": []}, "list of roles"),
        ("judge-correct", {"judges": ["a", "a"]}, "twice"),
        ("judge-correct", {"show": ["answers"]}, "passages"),
        ("judge-correct", {"max_tokens": 0}, "at least 1"),
        ("judge-correct", {"schema": "yes"}, "true or false"),
        ("judge-correct", {"threshold": 0.5}, "Unknown option"),
        ("judge-pair", {"against": "nobody"}, "no samples.jsonl"),
        ("judge-pair", {"ties": 1}, "true or false"),
    ],
)
def test_options_that_cannot_be_are_errors_in_a_sentence(
    kind: str, options: dict[str, Any], kept: str
) -> None:
    with pytest.raises(UsageError) as caught:
        bind(kind, options)
    assert kept in str(caught.value)
    assert str(caught.value).endswith((".", "}"))


# -- asking
# ---------------------------------------------------------------------------------------------------------------


class Door:
    """An `ask` whose judges are functions of the prompt. options: what the requests may use."""

    def __init__(
        self, options: frozenset[str] = frozenset(), **judges: Callable[[str], str]
    ) -> None:
        self.judges = judges
        self.options = options
        self.sent: list[tuple[str, Generate]] = []

    def carries(self, role: str) -> frozenset[str]:
        return self.options

    async def __call__(self, role: str, request: Request) -> Response:
        assert isinstance(request, Generate)
        self.sent.append((role, request))
        prompt = (
            request.prompt
            if isinstance(request.prompt, str)
            else request.prompt[-1].text
        )
        return Response(self.judges[role](prompt), finish_reason="stop")


def scored(
    kind: str, options: dict[str, Any], sample: Sample, answer: Answer | str, door: Door
) -> Any:
    given = Answer(answer) if isinstance(answer, str) else answer
    made: Any = bind(kind, options).function(sample, given, door)
    return asyncio.run(made)


SAMPLE = Sample(
    "s",
    "What is the capital of Chile?",
    ("Santiago", "Santiago de Chile"),
    passages=(Passage("1", "Chile."),),
)


def always(**values: Any) -> Callable[[str], str]:
    return judge(lambda asked: values)


def test_several_judges_of_a_reference_by_majority() -> None:
    right = always(reason="r", **{"class": "correct"})
    wrong = always(reason="w", **{"class": "incorrect"})
    three = {"judges": ["a", "b", "c"]}
    found = scored(
        "judge-correct", three, SAMPLE, "Santiago", Door(a=right, b=wrong, c=right)
    )
    assert (found.value, found.label, found.parts["agreement"]) == (
        1.0,
        "correct",
        pytest.approx(1 / 3),
    )
    split = scored(
        "judge-correct",
        {"judges": ["a", "b"]},
        SAMPLE,
        "Santiago",
        Door(a=right, b=wrong),
    )
    assert (split.value, split.label, split.parts["agreement"]) == (0.5, "split", 0.0)
    assert split.explanation == "a: correct (r); b: incorrect (w)"
    assert (split.parts["a class"], split.parts["b class"]) == (2, 0)
    with pytest.raises(RequestFailed) as caught:
        scored(
            "judge-correct",
            {"judges": ["a", "b"]},
            SAMPLE,
            "x",
            Door(a=right, b=lambda prompt: "yes"),
        )
    assert caught.value.failure.party == "judge"


def test_what_a_judge_is_shown() -> None:
    seen: list[Asked] = []

    def look(asked: Asked) -> dict[str, Any]:
        seen.append(asked)
        return {"reason": "", "class": "correct", "grade": 3}

    door = Door(judge=judge(look))
    scored("judge-correct", {}, SAMPLE, "a", door)
    scored("judge-rating", {"question": "Good?"}, SAMPLE, "b", door)
    scored(
        "judge-rating",
        {"question": "Good?", "show": ["question"], "instructions": "Be kind."},
        SAMPLE,
        "c",
        door,
    )
    choices = Sample("s", "Which?", ("Lima",), choices=("Quito", "Lima"), gold=(1,))
    scored("judge-correct", {}, choices, "B", door)
    assert [list(one.material) for one in seen] == [
        ["question", "reference", "answer"],
        ["question", "passage-1", "reference", "answer"],
        ["question", "answer"],
        ["question", "reference", "answer"],
    ]
    assert seen[0].material["reference"] == "Santiago\nor: Santiago de Chile"
    assert seen[3].material["question"] == "Which?\nA. Quito\nB. Lima"
    assert "Be kind." in door.sent[2][1].prompt[-1].text  # type: ignore[union-attr]


def test_a_schema_is_sent_where_it_is_enforced_and_only_there() -> None:
    right = always(reason="r", **{"class": "correct"})
    for options, given in (
        (frozenset({"json_schema"}), True),
        (frozenset[str](), False),
    ):
        door = Door(options, judge=right)
        scored("judge-correct", {}, SAMPLE, "x", door)
        assert [request.json_schema is not None for _, request in door.sent] == [given]
    door = Door(frozenset({"json_schema"}), judge=right)
    scored("judge-correct", {"schema": False}, SAMPLE, "x", door)
    assert door.sent[0][1].json_schema is None


def test_one_criterion_of_classes_and_severity() -> None:
    criteria = [
        {
            "name": "tone",
            "text": "Is polite.",
            "classes": {"rude": 0, "neutral": 0.5, "polite": 1},
            "severity": "low",
        },
        {"name": "fact", "text": "Names the capital.", "severity": "high"},
        {"name": "invents", "text": "Invents a fact.", "points": -4},
    ]
    values = {"c1": "neutral", "c2": "met", "c3": "met"}
    said = always(
        **{key: {"reason": "r", "class": value} for key, value in values.items()}
    )
    found = scored(
        "judge-rubric", {"criteria": criteria}, SAMPLE, "x", Door(judge=said)
    )
    assert found.parts == {"tone": 0.5, "fact": 1.0, "invents": 1.0}
    assert found.value == pytest.approx((0.5 + 10 - 4) / 11)
    assert (found.label, found.explanation) == (
        "pass",
        "tone: neutral - r; fact: met - r; invents: met - r",
    )
    foreign = always(**{key: {"reason": "r", "class": "polite"} for key in values})
    with pytest.raises(RequestFailed, match="not one of not met, met"):
        scored("judge-rubric", {"criteria": criteria}, SAMPLE, "x", Door(judge=foreign))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("agreement", {"judges": ["a", "b"]}),
        ("b", {"judges": ["a", "b"]}),
        ("a class", {"judges": ["a", "b"]}),
        ("a tone", {"judges": ["a", "b"]}),
        ("turn 2", {"turns": "each"}),
    ],
)
def test_no_criterion_has_the_name_of_another_part(
    name: str, options: dict[str, Any]
) -> None:
    criteria = ["tone", {"name": name, "text": "Is polite."}]
    with pytest.raises(ConfigurationError, match=f"cannot be called '{name}'"):
        bind("judge-rubric", {"criteria": criteria, **options})
    own = Sample("s", "?", metadata={"criteria": criteria})
    with pytest.raises(ScoringError, match=f"cannot be called '{name}'"):
        scored("judge-rubric", options, own, "x", Door())
    met = always(**{key: {"reason": "", "class": "met"} for key in ("c1", "c2")})
    found = scored("judge-rubric", {"criteria": criteria}, SAMPLE, "x", Door(judge=met))
    assert found.parts == {"tone": 1.0, name: 1.0}, (
        "one judge of one turn has no further parts"
    )


def test_criteria_that_begin_alike_have_names_of_their_own() -> None:
    criteria = ["a" * 70 + end for end in "123"]
    values = {"c1": "met", "c2": "not met", "c3": "met"}
    said = always(
        **{key: {"reason": "r", "class": value} for key, value in values.items()}
    )
    found = scored(
        "judge-rubric", {"criteria": criteria}, SAMPLE, "x", Door(judge=said)
    )
    short = "a" * 57 + "..."
    assert found.parts == {short: 1.0, f"{short} (2)": 0.0, f"{short} (3)": 1.0}
    with pytest.raises(ConfigurationError, match="twice"):
        bind("judge-rubric", {"criteria": [criteria[0], criteria[0]]})


def test_what_cannot_be_judged() -> None:
    door = Door(judge=always(reason="", **{"class": "correct"}))
    assert scored("judge-correct", {}, SAMPLE, " \n", door) == Score(
        0.0, "not_attempted", "the answer is empty"
    )
    assert door.sent == []
    with pytest.raises(ScoringError, match="no target"):
        scored("judge-correct", {}, Sample("s", "?"), "x", door)
    with pytest.raises(ScoringError, match="no criteria"):
        scored("judge-rubric", {}, SAMPLE, "x", door)
    with pytest.raises(ScoringError, match="no target"):
        scored("judge-pair", {}, Sample("s", "?"), "x", door)
    with pytest.raises(ScoringError, match="above 0"):
        scored(
            "judge-rubric",
            {},
            Sample("s", "?", metadata={"criteria": [{"text": "a", "points": -1}]}),
            "x",
            door,
        )


def test_a_few_shot_prompt_is_no_conversation() -> None:
    prompt = (
        Message("user", "1 + 1"),
        Message("assistant", "2"),
        Message("user", "2 + 2"),
    )
    seen: list[Asked] = []

    def look(asked: Asked) -> dict[str, Any]:
        seen.append(asked)
        return {"reason": "", "grade": 3}

    options = {"question": "Good?", "turns": "each"}
    one = Answer("4", prompt=prompt, responses=(Response("4"),))
    two_draws = Answer("4", prompt=prompt, responses=(Response("5"), Response("4")))
    for answer in (one, two_draws):
        found = scored(
            "judge-rating",
            options,
            Sample("s", "2 + 2"),
            answer,
            Door(judge=judge(look)),
        )
        assert "turn 1" not in found.parts
    assert [dict(one.material) for one in seen] == [
        {"question": "2 + 2", "answer": "4"}
    ] * 2
    talk = Answer(
        "4", prompt=prompt, responses=(Response("<think>hm</think>2"), Response("4"))
    )
    found = scored(
        "judge-rating", options, Sample("s", "1 + 1"), talk, Door(judge=judge(look))
    )
    assert found.parts == {"rating": 3, "turn 1": 0.5, "turn 2": 0.5}


def test_references_by_turn_and_bad_ones() -> None:
    sample = Sample("s", "a", ("last",), metadata={"references": ["first"]})
    prompt = (Message("user", "a"), Message("assistant", "b"), Message("user", "c"))
    talk = Answer("d", prompt=prompt, responses=(Response("b"), Response("d")))
    seen: list[Asked] = []

    def look(asked: Asked) -> dict[str, Any]:
        seen.append(asked)
        return {"reason": "", "grade": 3}

    scored(
        "judge-rating",
        {"question": "?", "turns": "each"},
        sample,
        talk,
        Door(judge=judge(look)),
    )
    assert [one.material.get("reference") for one in seen] == ["first", None]
    with pytest.raises(ScoringError, match="one for each turn"):
        bad = Sample("s", "a", metadata={"references": "first"})
        scored("judge-rating", {"question": "?"}, bad, talk, Door(judge=judge(look)))


def test_a_model_that_does_not_write_is_no_judge() -> None:
    class Classifier(Door):
        def abilities(self, role: str) -> frozenset[str]:
            return frozenset({"classify"})

    with pytest.raises(ConfigurationError, match="cannot write a verdict"):
        scored("judge-correct", {}, SAMPLE, "x", Classifier())
    with pytest.raises(UnknownName, match="judge-correct"):
        bind("judge-corect")


def test_a_published_grader_is_sent_as_it_is_and_answers_by_a_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "Q: {question}\nGold: {target}\nSaid: {predicted_answer}\nA right, B wrong, C neither {json}"
    Path("grader.txt").write_text(text, encoding="utf-8")
    options = {"template": "grader.txt"}
    for reply, label in (
        ("A", "correct"),
        (" **B**.", "incorrect"),
        ("<think>A?</think>C", "not_attempted"),
    ):
        door = Door(judge=lambda prompt: reply)  # noqa: B023
        found = scored("judge-correct", options, SAMPLE, "It is {question}.", door)
        assert (found.label, found.value) == (label, float(reply == "A"))
        ((_, sent),) = door.sent
        wanted = f"Q: {SAMPLE.input}\nGold: Santiago\nSaid: It is {{question}}.\nA right, B wrong, C neither {{json}}"
        assert sent.prompt == (Message("user", wanted),)
    for left_out, example in (
        ("question", "question"),
        ("target", "target"),
        ("predicted_answer", "predicted_answer"),
    ):
        Path("lacks.txt").write_text(
            text.replace("{" + left_out + "}", ""), encoding="utf-8"
        )
        with pytest.raises(ConfigurationError, match="such as {" + example + "}"):
            bind("judge-correct", {"template": "lacks.txt"})
    for reply in ("A or B", "CORRECT", "", "D"):
        with pytest.raises(RequestFailed) as caught:
            scored(
                "judge-correct",
                options,
                SAMPLE,
                "x",
                Door(judge=lambda prompt: reply),  # noqa: B023
            )
        assert caught.value.failure.party == "judge"
    Path("bad.txt").write_text("{question} {target}", encoding="utf-8")
    for name, said in (
        ("bad.txt", "no slot for the answer"),
        ("/etc/passwd", "working folder"),
        ("none.txt", "read"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            bind("judge-correct", {"template": name})
    with pytest.raises(ConfigurationError, match="no effect"):
        bind("judge-correct", {**options, "instructions": "Be kind."})


def test_images_go_to_judges_that_take_them() -> None:
    png = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    image = Image.read(png, "dot.png")
    shown = Answer(
        "A dot.",
        prompt=(Message("user", ("What is it?", image)),),
        responses=(Response("A dot."),),
    )
    recorded = Answer(
        "A dot.",
        prompt=(Message("user", ("What is it?", Image(b"", "image/png", digest="x"))),),
    )
    right = always(reason="r", grade=5)
    for answer, options, expected in (
        (shown, frozenset({"images"}), (image,)),
        (shown, frozenset[str](), ()),
        (recorded, frozenset({"images"}), ()),
    ):
        door = Door(options, judge=right)
        scored(
            "judge-rating",
            {"question": "Good?"},
            Sample("s", "What is it?"),
            answer,
            door,
        )
        ((_, sent),) = door.sent
        assert sent.prompt[-1].images == expected  # type: ignore[union-attr]
        assert "<answer mark=" in sent.prompt[-1].text  # type: ignore[union-attr]
