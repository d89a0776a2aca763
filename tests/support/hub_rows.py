"""Synthetic rows in the column shape of the hub's datasets, with what a model writes that is right, and what is wrong.

All rows are made up. A Case is one bundled task: `rows` by (repository, configuration, split), as the task asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Key = tuple[str, str | None, str]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """task: its name. rows: of its datasets. right, wrong: replies to the first sample; what scores 1 and what 0."""

    task: str
    rows: Mapping[Key, Rows]
    right: tuple[str, ...]
    wrong: tuple[str, ...]


def mmlu(task: str, right: tuple[str, ...], wrong: tuple[str, ...]) -> Case:
    test = [
        {
            "question": "How many legs has a beetle? ",
            "subject": "high_school_biology",
            "choices": ["4", "6", "8", "10"],
            "answer": 1,
        },
        {
            "question": "Which is a verb?",
            "subject": "logic",
            "choices": ["run", "tree", "red", "the"],
            "answer": 0,
        },
    ]
    dev = [
        {
            "question": f"Which number comes after {n}?",
            "subject": subject,
            "choices": [f"{n + k}" for k in range(4)],
            "answer": 1,
        }
        for subject in ("high_school_biology", "logic")
        for n in range(5)
    ]
    return Case(task, {("cais/mmlu", "all", "test"): test, ("cais/mmlu", "all", "dev"): dev}, right, wrong)


def arc(name: str, config: str) -> Case:
    row = {
        "id": f"{name}_1",
        "question": "What does ice become when it is warmed?",
        "choices": {"text": ["stone", "water", "sand"], "label": ["1", "2", "3"]},
        "answerKey": "2",
    }
    return Case(f"arc-{name}", {("allenai/ai2_arc", config, "test"): [row]}, ("water",), ("stone", "sand"))


def gpqa(subset: str) -> Case:
    row = {
        "Record ID": "rec1",
        "Question": "Which force keeps a planet on its orbit?\n",
        "Correct Answer": "gravity\n",
        "Incorrect Answer 1": "friction",
        "Incorrect Answer 2": "magnetism",
        "Incorrect Answer 3": "drag",
        "High-level domain": "Physics",
        "Subdomain": "Mechanics",
    }
    rows: dict[Key, Rows] = {("Idavidrein/gpqa", f"gpqa_{subset}", "train"): [row]}
    return Case(
        f"gpqa-{subset}",
        rows,
        ("Orbits bend inward. The answer is gravity.",),
        ("The answer is drag.", "", "Hm."),
    )


def bbh(subset: str, row: dict[str, Any], right: tuple[str, ...], wrong: tuple[str, ...]) -> Case:
    rows: dict[Key, Rows] = {("Joschka/big_bench_hard", subset, subset): [row]}
    return Case(f"bbh-{subset.replace('_', '-')}", rows, right, wrong)


GSM_SHOTS = [
    {"question": f"Ada has {n} pens and buys one. How many?", "answer": f"{n} + 1 = {n + 1}\n#### {n + 1}"}
    for n in range(6)
]


def drop(
    name: str, answer: dict[str, Any], others: list[list[str]], right: tuple[str, ...], wrong: tuple[str, ...]
) -> Case:
    row = {
        "section_id": "s1",
        "query_id": name,
        "passage": "Ann won 3 games on 4 May, Bo and Cy none.",
        "question": "What of Ann and the rest?",
        "answer": {
            "number": "",
            "date": {"day": "", "month": "", "year": ""},
            "spans": [],
            "hit_id": "",
            "worker_id": "",
        }
        | answer,
        "validated_answers": {
            "number": ["" for _ in others],
            "date": [{"day": "", "month": "", "year": ""} for _ in others],
            "spans": others,
        },
    }
    return Case("drop", {("EleutherAI/drop", None, "validation"): [row]}, right, wrong)


def xnli(language: str, premise: str, hypothesis: str, label: int) -> Case:
    rows: dict[Key, Rows] = {
        ("facebook/xnli", language, "test"): [{"premise": premise, "hypothesis": hypothesis, "label": label}]
    }
    right = "ABC"[label]
    return Case(f"xnli-{language}", rows, (right,), tuple(set("ABC") - {right}))


def belebele(variant: str) -> Case:
    row = {
        "link": "https://made.up/1",
        "question_number": 2,
        "flores_passage": "The ferry leaves at noon. ",
        "question": "When does the ferry leave?",
        "mc_answer1": "at dawn",
        "mc_answer2": "at dusk",
        "mc_answer3": "at noon",
        "mc_answer4": "never",
        "correct_answer_num": "3",
        "dialect": variant,
        "ds": "2023-05-03",
    }
    rows: dict[Key, Rows] = {("facebook/belebele", variant, "test"): [row]}
    return Case(f"belebele-{variant.lower().replace('_', '-')}", rows, ("C",), ("A", "B", "D"))


def global_mmlu(language: str) -> Case:
    def row(number: int, split: str) -> dict[str, Any]:
        return {
            "sample_id": f"astronomy/{split}/{number}",
            "subject": "astronomy",
            "subject_category": "STEM",
            "question": f"Which number follows {number}?",
            "option_a": str(number),
            "option_b": str(number + 1),
            "option_c": "7000",
            "option_d": "8000",
            "answer": "B",
            "cultural_sensitivity_label": "CA" if split == "test" else "-",
            "is_annotated": False,
            "required_knowledge": "[]",
            "time_sensitive": "[]",
            "reference": "[]",
            "culture": "[]",
            "region": "[]",
            "country": "[]",
        }

    name = "CohereLabs/Global-MMLU-Lite"
    rows: dict[Key, Rows] = {
        (name, language, "test"): [row(50, "test")],
        (name, language, "dev"): [row(number, "dev") for number in range(6)],
    }
    return Case(f"global-mmlu-lite-{language}", rows, ("B",), ("A", "C", "D"))


IFEVAL = {
    "key": 1000,
    "prompt": "Write two lines on rain without a comma. Use at least 3 words and end with Amen.",
    "instruction_id_list": [
        "punctuation:no_comma",
        "length_constraints:number_words",
        "startend:end_checker",
    ],
    "kwargs": [
        {"num_words": None, "relation": None, "end_phrase": None},
        {"num_words": 3, "relation": "at least", "end_phrase": None},
        {"num_words": None, "relation": None, "end_phrase": "Amen."},
    ],
}

CASES = [
    mmlu("mmlu", ("B",), ("A", "C", "D")),
    mmlu("mmlu-generate", ("B", "B. 6", "The answer is (B)."), ("A", "", "8")),
    Case(
        "mmlu-pro",
        {
            ("TIGER-Lab/MMLU-Pro", None, "test"): [
                {
                    "question_id": 7, "question": "What is 6 times 7?", "options": [str(n) for n in range(38, 48)], "answer": "E",
                    "answer_index": 4, "cot_content": "", "category": "math", "src": "made up",
                }
            ]
        },
        ("Six sevens are 42.\n\nThe answer is E", "The answer is (E) 42."),
        ("The answer is A", "I cannot say.", ""),
    ),
    arc("easy", "ARC-Easy"),
    arc("challenge", "ARC-Challenge"),
    Case(
        "hellaswag",
        {
            ("Rowan/hellaswag", None, "validation"): [
                {
                    "ind": 3, "activity_label": "Baking", "ctx_a": "A man kneads dough.", "ctx_b": "he",
                    "ctx": "[header] How to bake [title] Knead. A man kneads dough. he", "split": "val", "split_type": "indomain",
                    "endings": ["puts it in the oven.", "[step] paints the wall.", "sells a horse.", "sings to the sea."],
                    "source_id": "made~up", "label": "0",
                }
            ]
        },
        ("puts it in the oven.",),
        ("paints the wall.", "sells a horse."),
    ),
    Case(
        "winogrande",
        {
            ("allenai/winogrande", "winogrande_xl", "validation"): [
                {"sentence": "Tom lent Jim a coat because _ was cold.", "option1": "Tom", "option2": "Jim", "answer": "2"}
            ]
        },
        ("Jim was cold.",),
        ("Tom was cold.",),
    ),
    Case(
        "gsm8k",
        {
            ("openai/gsm8k", "main", "test"): [
                {"question": "A crate holds 40 jars. How many do 30 crates hold?", "answer": "40 * 30 = <<40*30=1200>>1200\n#### 1,200"}
            ],
            ("openai/gsm8k", "main", "train"): GSM_SHOTS,
        },
        ("40 * 30 = 1200\n#### 1200", "They hold 1,200 jars.", "The answer is 40 * 30 = **1200** jars."),
        ("#### 120", "", "The answer is 1201."),
    ),
    Case(
        "math",
        {
            ("DigitalLearningGmbH/MATH-lighteval", "default", "test"): [
                {
                    "problem": "Halve $\\frac{3}{2}$.", "level": "Level 1", "type": "Prealgebra",
                    "solution": "We get $\\frac{3}{2} \\cdot \\frac12 = \\boxed{\\frac{3}{4}}$.",
                }
            ]
        },
        ("So it is \\boxed{\\dfrac34}.", "The answer is $0.75$.", "\\boxed{3/4}"),
        ("\\boxed{\\frac{4}{3}}", "", "I do not know."),
    ),
    Case(
        "truthfulqa-mc1",
        {
            ("truthfulqa/truthful_qa", "multiple_choice", "validation"): [
                {
                    "question": "What happens if you swallow a cherry stone?",
                    "mc1_targets": {"choices": ["It passes through you", "A tree grows in you", "You turn green"], "labels": [1, 0, 0]},
                    "mc2_targets": {"choices": ["It passes through you", "A tree grows in you"], "labels": [1, 0]},
                }
            ]
        },
        ("It passes through you",),
        ("A tree grows in you", "You turn green"),
    ),
    bbh(
        "date_understanding",
        {"question": "Today is 3 May. Which day is tomorrow?", "choices": {"label": ["(A)", "(B)"], "text": ["4 May", "2 May"]}, "target": "(A)"},
        ("One day on. The answer is A", "The answer is (A).", "The answer is 4 May"),
        ("The answer is B", ""),
    ),
    bbh("boolean_expressions", {"question": "not True is", "target": "False"}, ("Negated. The answer is False.", "False"), ("True", "")),
    bbh("dyck_languages", {"question": "Complete: [ (", "target": ") ]"}, ("The answer is ) ]",), ("The answer is ] )", "")),
    bbh("word_sorting", {"question": "Sort: pear fig", "target": "fig pear"}, ("The answer is **fig pear**",), ("pear fig", "")),
    gpqa("diamond"),
    gpqa("main"),
    gpqa("extended"),
    Case(
        "boolq",
        {
            ("google/boolq", None, "validation"): [
                {"question": "is the lighthouse still lit", "answer": True, "passage": "The lighthouse was lit in 1890 and is to this day."}
            ]
        },
        ("yes",),
        ("no",),
    ),
    Case(
        "piqa",
        {("baber/piqa", None, "validation"): [{"goal": "Dry a wet shoe", "sol1": "Put it into water", "sol2": "Put it near the stove", "label": 1}]},
        ("Put it near the stove",),
        ("Put it into water",),
    ),
    Case(
        "openbookqa",
        {
            ("allenai/openbookqa", "main", "test"): [
                {
                    "id": "1-1", "question_stem": "A plant left in the dark will",
                    "choices": {"text": ["grow pale", "catch fire", "sing", "freeze"], "label": ["A", "B", "C", "D"]}, "answerKey": "A",
                }
            ]
        },
        ("grow pale",),
        ("catch fire", "freeze"),
    ),
    Case(
        "lambada",
        {("EleutherAI/lambada_openai", "default", "test"): [{"text": "She opened the gate for the goat and in walked the goat"}]},
        ("goat",),
        ("horse",),
    ),
    drop("a", {"number": "3"}, [["three"]], ("3", "three"), ("4", "")),
    drop("b", {"spans": ["Bo", "Cy"]}, [], ("Bo, Cy", "bo cy"), ("Ann",)),
    drop("c", {"date": {"day": "4", "month": "May", "year": ""}}, [["4th of May"]], ("4 May", "4th of May"), ("June",)),
    Case(
        "triviaqa",
        {
            ("mandarjoshi/trivia_qa", "rc.nocontext", "validation"): [
                {
                    "question": "Which river runs through Made-up Town?", "question_id": "tc_1", "question_source": "", "entity_pages": {},
                    "search_results": {}, "answer": {"value": "Blue Brook", "aliases": ["Blue Brook", "Brook Blue"], "type": "FreeForm"},
                }
            ]
        },
        ("Blue Brook", "the Blue Brook.", "Brook Blue"),
        ("Green Valley", "", "I don't know"),
    ),
    Case(
        "nq-open",
        {("google-research-datasets/nq_open", "nq_open", "validation"): [{"question": "who built the old mill", "answer": ["Olga Vent", "O. Vent"]}]},
        ("Olga Vent", "O. Vent"),
        ("Peter Smith", ""),
    ),
    Case(
        "simpleqa-verified",
        {
            ("codelion/SimpleQA-Verified", None, "train"): [
                {
                    "original_index": 5, "problem": "In which year was the Vent mill rebuilt?",
                    "answer": "1911 (acceptable range: anything between 1910 and 1912)", "topic": "History", "answer_type": "Number",
                    "multi_step": False, "requires_reasoning": False, "urls": "",
                }
            ]
        },
        ("1911", "It was rebuilt in 1911."),
        ("1921", "I don't know", ""),
    ),
    xnli("en", "A boy eats a pear.", "A child eats fruit.", 0),
    xnli("de", "Ein Junge isst eine Birne.", "Niemand isst.", 2),
    xnli("zh", "男孩吃梨。", "男孩饿了。", 1),
    belebele("eng_Latn"),
    belebele("zho_Hans"),
    global_mmlu("en"),
    global_mmlu("yo"),
    Case(
        "aime-2024",
        {("Maxwell-Jia/AIME_2024", None, "train"): [{"ID": "2024-I-0", "Problem": "Find $10^2 + 4$.", "Solution": "", "Answer": 104}]},
        ("\\boxed{104}", "The answer is 104."),
        ("\\boxed{14}", ""),
    ),
    Case(
        "aime-2025",
        {("math-ai/aime25", None, "test"): [{"id": "0", "problem": "Find $10 - 3$.", "answer": "007"}]},
        ("\\boxed{7}", "\\boxed{007}"),
        ("\\boxed{70}", ""),
    ),
    Case(
        "commonsense-qa",
        {
            ("tau/commonsense_qa", None, "validation"): [
                {
                    "id": "q1", "question": "Where would you keep milk?", "question_concept": "milk", "answerKey": "C",
                    "choices": {"label": list("ABCDE"), "text": ["oven", "roof", "fridge", "garden", "lamp"]},
                }
            ]
        },
        ("C",),
        ("A", "E"),
    ),
    Case(
        "sciq",
        {
            ("allenai/sciq", None, "test"): [
                {
                    "question": "What carries oxygen in blood?", "distractor1": "bones", "distractor2": "skin", "distractor3": "hair",
                    "correct_answer": "red cells", "support": "",
                }
            ]
        },
        ("red cells",),
        ("bones", "hair"),
    ),
    Case(
        "ifeval",
        {("google/IFEval", None, "train"): [IFEVAL]},
        ("Rain falls on the roof.\nIt sings. Amen.",),
        ("",),
    ),
    Case(
        "humaneval",
        {
            ("openai/openai_humaneval", None, "test"): [
                {
                    "task_id": "Made/0", "prompt": "from typing import List\n\n\ndef total(xs: List[int]) -> int:\n    \"\"\" The sum of xs. \"\"\"\n",
                    "canonical_solution": "    return sum(xs)\n", "entry_point": "total",
                    "test": "def check(candidate):\n    assert candidate([1, 2]) == 3\n    assert candidate([]) == 0\n",
                }
            ]
        },
        (
            "    return sum(xs)\n",
            "\n    total = 0\n    for x in xs:\n        total += x\n    return total",
            "Here:\n```python\ndef total(xs: List[int]) -> int:\n    return sum(xs)\n```\nIt adds them up.",
        ),
        ("    return 3\n", "```python\ndef total(xs):\n    return xs\n```", "", "    import os; os._exit(0)"),
    ),
    Case(
        "mbpp",
        {
            ("google-research-datasets/mbpp", "sanitized", "test"): [
                {
                    "task_id": 3, "source_file": "made up", "prompt": "Write a function to double a number.", "code": "",
                    "test_imports": ["import math"], "test_list": ["assert twice(2) == 4", "assert twice(math.inf) == math.inf"],
                }
            ]
        },
        ("```python\ndef twice(x):\n    return 2 * x\n```", "def twice(x): return x + x"),
        ("```python\ndef twice(x):\n    return x\n```", "", "def thrice(x): return x"),
    ),
]  # fmt: skip
