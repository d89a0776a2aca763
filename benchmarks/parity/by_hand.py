"""Rows of well-known data sets whose shape cannot be found by trying: columns as on the hub,
contents made up.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from parity.hash_model import WORDS

Row = dict[str, Any]


def _words(chance: random.Random, most: int = 4) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randrange(1, most + 1)))


def _gap(chance: random.Random) -> Row:
    sentence = f"The {_words(chance)} met _ at the {_words(chance)}."
    return {
        "sentence": sentence,
        "option1": _words(chance, 1),
        "option2": _words(chance, 1),
        "answer": chance.choice("12"),
    }


def _drop(chance: random.Random) -> Row:
    def answer() -> Row:
        spans = [_words(chance) for _ in range(chance.randrange(3))]
        number = "" if spans else str(chance.randrange(9))
        return {
            "number": number,
            "date": {"day": "", "month": "", "year": ""},
            "spans": spans,
        }

    more = [answer(), answer()]
    ids = {"worker_id": "", "hit_id": ""}
    return {
        "section_id": "s",
        "query_id": f"q{chance.random()}",
        "passage": _words(chance, 9),
        "question": f"{_words(chance)}?",
        "answer": {**answer(), **ids},
        "validated_answers": {
            **{
                key: [validated[key] for validated in more]
                for key in ("number", "date", "spans")
            },
            **{key: [value] * 2 for key, value in ids.items()},
        },
    }


def _race(chance: random.Random) -> Row:
    problems = [
        {
            "question": f"{_words(chance)}{chance.choice(['?', ' _ .'])}",
            "options": [_words(chance) for _ in range(4)],
            "answer": chance.choice("ABCD"),
        }
        for _ in range(3)
    ]
    return {"article": _words(chance, 12), "problems": str(problems)}


def _copa(chance: random.Random) -> Row:
    return {
        "premise": f"The {_words(chance)}.",
        "choice1": f"It {_words(chance)}.",
        "choice2": f"He {_words(chance)}.",
        "question": chance.choice(["cause", "effect"]),
        "label": chance.randrange(2),
    }


def _truthful(chance: random.Random) -> Row:
    labels = [1, *(chance.randrange(2) for _ in range(3)), 0]
    return {
        "question": f"{_words(chance)}?",
        "mc1_targets": {
            "choices": [_words(chance) for _ in range(3)],
            "labels": [1, 0, 0],
        },
        "mc2_targets": {"choices": [_words(chance) for _ in labels], "labels": labels},
    }


def _following(chance: random.Random) -> Row:
    """Instructions that IFEval's Python checks, as many in every row, with the arguments of all of
    them in each.
    """
    arguments_by_id: dict[str, Row] = {
        "punctuation:no_comma": {},
        "length_constraints:number_words": {"relation": "less than", "num_words": 3},
        "length_constraints:number_sentences": {
            "relation": "at least",
            "num_sentences": 1,
        },
        "change_case:english_lowercase": {},
        "startend:quotation": {},
        "detectable_content:number_placeholders": {"num_placeholders": 1},
    }
    chosen = chance.sample(sorted(arguments_by_id), 3)
    every = {key: None for more in arguments_by_id.values() for key in more}
    return {
        "key": chance.randrange(1000),
        "prompt": f"Write about {_words(chance)}.",
        "instruction_id_list": chosen,
        "kwargs": [every | arguments_by_id[instruction] for instruction in chosen],
    }


def _mystery(chance: random.Random) -> Row:
    choices = [f"{_words(chance)} {place}" for place in range(3)]
    gold = chance.randrange(3)
    return {
        "narrative": _words(chance, 12),
        "question": f"{_words(chance)}?",
        "choices": str(choices),
        "answer_index": gold,
        "answer_choice": choices[gold],
    }


def _boxed(chance: random.Random) -> Row:
    return {
        "problem": _words(chance),
        "solution": f"It is $\\boxed{{{chance.randrange(30)}}}$.",
        "level": "Level 5",
        "type": "Algebra",
        "answer": str(chance.randrange(30)),
    }


def _planned(group: str, **answer: Any) -> Callable[[random.Random], Row]:
    def row(chance: random.Random) -> Row:
        texts = {
            name: _words(chance, 6)
            for name in ("context", "question", "PDDL_domain", "PDDL_problem")
        }
        return {"id": 1, "group": group, **texts, "answer": answer}

    return row


def _conversation(chance: random.Random) -> Row:
    turns = chance.randrange(1, 4)
    questions, answers, others = (
        [_words(chance) for _ in range(turns)] for _ in range(3)
    )
    return {
        "id": "c",
        "story": _words(chance, 12),
        "questions": {
            "input_text": [f"{question}?" for question in questions],
            "turn_id": list(range(1, turns + 1)),
        },
        "answers": {"input_text": answers},
        "additional_answers": {
            str(place): {"input_text": others} for place in range(3)
        },
    }


ROWS: dict[str, Callable[[random.Random], Row]] = {
    **dict.fromkeys(
        ("acp_nexta_gen", "acp_nexta_gen_with_pddl"),
        _planned("goal_closer_gen", yes=["(stone)"], no=["(river)"], maybe=[], opt="3"),
    ),
    "acp_prog_gen": _planned("progression_gen", pos=["(stone)"], neg=[]),
    "bigbench_anachronisms_multiple_choice": lambda c: {
        "inputs": _words(c),
        "targets": ["Yes"],
        "multiple_choice_targets": ["Yes", "No"],
        "multiple_choice_scores": [1, 0],
    },
    "coqa": _conversation,
    "commonsense_qa": lambda c: {
        "question": f"{_words(c)}?",
        "choices": {"label": list("ABCDE"), "text": [_words(c) for _ in range(5)]},
        "answerKey": c.choice("ABCDE"),
    },
    "copa": _copa,
    "drop": _drop,
    "headqa_en": lambda c: {
        "qtext": _words(c),
        "answers": [{"aid": place + 1, "atext": _words(c)} for place in range(4)],
        "ra": c.randrange(1, 5),
    },
    "hellaswag_es": lambda c: {
        "ctx_a": _words(c),
        "ctx_b": _words(c),
        "activity_label": _words(c),
        "endings": [_words(c) for _ in range(4)],
        "label": str(c.randrange(4)),
    },
    **dict.fromkeys(
        (
            "hendrycks_math_algebra",
            "minerva_math_algebra",
            "minerva_math500",
            "putnam_axiom_original",
        ),
        _boxed,
    ),
    **dict.fromkeys(("ifeval", "leaderboard_ifeval"), _following),
    **{
        f"leaderboard_musr_{name}": _mystery
        for name in ("murder_mysteries", "object_placements", "team_allocation")
    },
    "logiqa": lambda c: {
        "label": c.choice("abcd"),
        "context": _words(c, 8),
        "question": _words(c),
        "options": [_words(c) for _ in range(4)],
    },
    "mathqa": lambda c: {
        "Problem": _words(c),
        "options": "a ) 38 , b ) 27 , c ) 30 , d ) 4 , e ) none",
        "correct": c.choice("abcde"),
    },
    "race": _race,
    "truthfulqa_mc1": _truthful,
    "truthfulqa_mc2": _truthful,
    "truthfulqa_gen": lambda c: {
        "question": f"{_words(c)}?",
        "best_answer": _words(c),
        "correct_answers": [_words(c) for _ in range(2)],
        "incorrect_answers": [_words(c) for _ in range(2)],
    },
    "webqs": lambda c: {
        "question": f"{_words(c)}?",
        "answers": [_words(c, 1) for _ in range(c.randrange(1, 4))],
    },
    "wic": lambda c: {
        "word": "stone",
        "sentence1": f"a stone {_words(c)}",
        "sentence2": f"the stone {_words(c)}",
        "start1": 2,
        "end1": 7,
        "start2": 4,
        "end2": 9,
        "label": c.randrange(2),
    },
    "winogrande": _gap,
    "xcopa_id": _copa,
    "xwinograd_en": _gap,
}
