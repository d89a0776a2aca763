"""Denied, taken back, only asked: a name that is mentioned is not always the answer."""

from __future__ import annotations

import pytest

from scorers.scoring import CORRECT, INCORRECT, NOT_ATTEMPTED, Row, check

DENIED: list[Row] = [
    ("Paris", "not Paris but Lyon", INCORRECT, "not ... but"),
    ("Lyon", "not Paris but Lyon", CORRECT, "the other side of not ... but"),
    ("Lyon", "It is not Paris, it is Lyon.", CORRECT, "a new clause"),
    ("Paris", "It isn't Paris.", INCORRECT, "a contraction"),
    ("Paris", "It isn\u2019t Paris.", INCORRECT, "a contraction with a typographic apostrophe"),
    ("Paris", "I do not think that it is Paris.", INCORRECT, "a negation some words before"),
    ("Paris", "It is not true that it is Paris.", INCORRECT, "a negation some words before"),
    ("Paris", "The answer is definitely not Paris.", INCORRECT, "right before"),
    ("Paris", "Never Paris", INCORRECT, "never"),
    ("Paris", "anywhere but not in Paris", INCORRECT, "after but"),
    ("Paris", "I would say anything but Paris.", INCORRECT, "anything but"),
    ("Paris", "Lyon rather than Paris", INCORRECT, "rather than"),
    ("Paris", "Lyon instead of Paris", INCORRECT, "instead of"),
    ("Paris", "neither Lyon nor Paris", INCORRECT, "neither ... nor"),
    ("Paris", "any city except Paris", INCORRECT, "except"),
    ("Paris", "Paris is not the capital; Lyon is.", INCORRECT, "after the name"),
    ("Paris", "Paris was never the capital.", INCORRECT, "after the name"),
    ("Paris", "Paris isn't it.", INCORRECT, "after the name"),
    ("Paris", "Paris is not.", INCORRECT, "after the name"),
    ("Lesotho", "Lesotho is not large, but it is independent.", CORRECT, "a description of the answer"),
    ("Sucre", "Sucre was not always so small.", CORRECT, "a description of the answer"),
    ("Lyon", "Lyon is wrong; Paris is right.", INCORRECT, "called wrong"),
    ("Paris", "Lyon is wrong; Paris is right.", CORRECT, "after what is called wrong"),
    ("Lyon", "The correct answer is Paris, not Lyon.", INCORRECT, "contrast at the end"),
    ("Paris", "The correct answer is Paris, not Lyon.", CORRECT, "contrast at the end"),
    ("Sucre", "Sucre and not La Paz", CORRECT, "contrast without a comma"),
    ("Everest", "not Mt. Everest", INCORRECT, "the point of an abbreviation ends no clause"),
    ("Paris", "None other than Paris", CORRECT, "an emphasis"),
    ("Paris", "No doubt Paris", CORRECT, "an emphasis"),
    ("Paris", "It is without a doubt Paris", CORRECT, "an emphasis"),
    ("Paris", "It is not only large, it is Paris", CORRECT, "not only"),
    ("Paris", "Although many do not believe it, it is Paris.", CORRECT, "another clause"),
    (
        "Lesotho",
        "Lesotho is an independent country, not a province.",
        CORRECT,
        "a negation of something else",
    ),
    (
        "Michel Talagrand",
        "Michel Talagrand won. Talagrand was not the first.",
        CORRECT,
        "said of the answer, not against it",
    ),
    ("Paris", "No, it is Paris.", CORRECT, "no to something else"),
]
WITHDRAWN: list[Row] = [
    ("Paris", "Paris. No, wait, Lyon.", INCORRECT, "taken back"),
    ("Paris", "Paris. Correction: Lyon.", INCORRECT, "corrected"),
    ("Paris", "Paris. Actually, it's Lyon.", INCORRECT, "corrected"),
    ("Paris", "It is Paris. It is not Paris.", INCORRECT, "denied in the end"),
    ("Paris", "Lyon. Wait, no: Paris.", CORRECT, "the last word"),
    ("Paris", "It is not Paris. I was wrong, it is Paris.", CORRECT, "the last word"),
    ("Paris", "Is it Paris? No, it is Lyon.", INCORRECT, "only asked"),
    ("Paris", "Paris?", CORRECT, "an answer with a question mark"),
]
LANGUAGES = [
    ("zh", ("巴黎", "不是巴黎，是里昂", INCORRECT, "Chinese")),
    ("zh", ("里昂", "不是巴黎，是里昂", CORRECT, "Chinese")),
    ("ko", ("파리", "파리가 아니라 리옹", INCORRECT, "Korean, after the name")),
    ("ja", ("パリ", "パリではなくリヨン", INCORRECT, "Japanese, after the name")),
    ("th", ("ปารีส", "ไม่ใช่ปารีส", INCORRECT, "Thai")),
    ("id", ("Paris", "bukan Paris melainkan Lyon", INCORRECT, "Indonesian")),
    ("ms", ("Paris", "Ia bukan Paris", INCORRECT, "Malay")),
    ("vi", ("Paris", "không phải là Paris", INCORRECT, "Vietnamese")),
    ("de", ("Paris", "nicht Paris, sondern Lyon", INCORRECT, "German")),
    ("fr", ("Paris", "ce n'est pas Paris", INCORRECT, "French")),
    ("es", ("París", "No es París", INCORRECT, "Spanish")),
    ("tl", ("Paris", "hindi Paris", INCORRECT, "Filipino")),
    ("en", ("Sholay", "the Hindi film Sholay", CORRECT, "a Filipino negation is an English name")),
]


@pytest.mark.parametrize("row", DENIED + WITHDRAWN, ids=lambda row: f"{row[0]}~{row[1]}")
def test_what_an_answer_asserts(row: Row) -> None:
    check(row, answer_type="name")


@pytest.mark.parametrize(
    ("language", "row"), LANGUAGES, ids=lambda value: value if isinstance(value, str) else value[1]
)
def test_negation_in_other_languages(language: str, row: Row) -> None:
    check(row, answer_type="name", language=language)


def test_a_denial_of_knowledge_is_no_attempt() -> None:
    check(
        ("Paris", "I'm not sure whether it is Paris.", NOT_ATTEMPTED, "the negation is of knowing"),
        answer_type="name",
    )
