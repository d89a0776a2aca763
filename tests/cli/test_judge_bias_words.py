"""`evalwright check judge bias` says whether an effect of length is a reason to worry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright import ScriptedModel, evaluate
from support.judging import judged_run
from support.typed import typed

pytestmark = pytest.mark.usefixtures("own_folder")


def bias_text(name: str) -> str:
    done = typed("check", "judge", "bias", name)
    assert done.code == 0, done.text
    return " ".join(done.out.split())


def answers(n: int) -> dict[str, str]:
    return {
        f"i{place}": " ".join(["word"] * (1 + 7 * (place % 5))) for place in range(n)
    }


def test_an_effect_of_length_says_when_to_worry_and_what_to_do() -> None:
    def likes_long(item: str, answer: str) -> str:
        long = len(answer) > 60
        return str(float(long != (int(item[1:]) % 7 == 0)))

    judged_run(answers(60), likes_long, name="long")
    text = bias_text("long")
    assert "longer answers get the better verdict more often than chance" in text
    assert "a bias where people see no difference" in text
    assert "evalwright check judge sample long --page labels.html" in text
    done = typed("check", "judge", "sample", "long", "--page", "labels.html")
    assert done.code == 0, done.text


def test_no_effect_of_length_is_no_reason_to_worry() -> None:
    judged_run(
        answers(60), lambda item, answer: str(float(int(item[1:]) % 2)), name="fair"
    )
    assert "no effect is shown" in bias_text("fair")


def test_flips_of_ids_that_are_hashes_have_the_question() -> None:
    rows = "".join(f"What is number {place}?,{place}\n" for place in range(6))
    Path("numbers.csv").write_text(f"question,reference\n{rows}")
    for name, reply in (("zero", "0"), ("one", "1")):
        model = ScriptedModel(reply, name=f"m/{name}", version="1")
        evaluate("numbers.csv", model, name=name)
    text = typed("compare", "zero", "one", "--flips", "2").out
    assert "What is number 0?" in text and "What is number 1?" in text
    found = json.loads(typed("compare", "zero", "one", "--json").out)
    questions = {flip["question"] for flip in found["tasks"][0]["flips"]}
    assert questions == {"What is number 0?", "What is number 1?"}
    Path("named.csv").write_text(
        "id,question,reference\n"
        + "".join(f"n{p},What is number {p}?,{p}\n" for p in range(6))
    )
    for name, reply in (("zero", "0"), ("one", "1")):
        model = ScriptedModel(reply, name=f"m/{name}", version="1")
        evaluate("named.csv", model, name=f"named-{name}")
    text = typed("compare", "named-zero", "named-one", "--flips", "2").out
    assert "What is number" not in text and "n0" in text
