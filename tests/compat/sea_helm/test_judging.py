"""SEA-HELM's judged tasks: its numbers on the same verdicts, ours, and runs against a judge at a
real server that fails and is killed.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalwright.compat.sea_helm.judge_prompts import filled, judges_of
from evalwright.compat.sea_helm.published.scoring import SeaHelmRaised
from evalwright.compat.sea_helm.scoring import scoring_of
from evalwright.compat.sea_helm.sea_task import SeaTask
from evalwright.core.errors import RequestFailed, TaskError, UnknownName
from evalwright.core.requests import Generate
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score
from evalwright.engine.store_rows import unpack
from support.command import evalwright, record, records, start, wait_until
from support.openai_faults import Faults
from support.openai_server import serving
from support.typed import typed

METRICS = {
    "pairs": ("src/metrics/llm_judges/pairwise_llm_judge_metric.py", "PairwiseLLMJudgeMetric", "weighted_win_rate"),
    "criteria": ("src/metrics/llm_judges/criteria_judge_metric.py", "CriteriaJudgeMetric", "average_criteria_score"),
    "turns": ("seahelm_tasks/multi_turn/mt_bench_judge/mtbench_judge_metric.py", "MTBenchJudgeMetric", "average_criteria_score"),
    "syntax": ("seahelm_tasks/lindsea/syntax_criteria/lindsea_judge_metric.py", "LindseaJudgeMetric", "average_criteria_score"),
    "health": ("seahelm_tasks/health/healthbench/healthbench_judge_metric.py", "HealthbenchJudgeMetric", "average_criteria_score"),
    "documents": ("seahelm_tasks/long_context/AA-LCR/aa_lcr_metric.py", "AALCRJudgeMetric", "accuracy_score"),
    "pictures": ("seahelm_tasks/vision/mathvision/mathvision_metric.py", "MathVisionJudgeMetric", "accuracy_score"),
}  # fmt: skip
PAIR = {
    "system_prompt": "Say {A_wins}, {B_wins} or {Tie}.",
    "prompt_template": "Q: {question_1}\nA: {answer_a_1}\nB: {answer_b_1}",
}
SECOND = {
    **PAIR,
    "prompt_template": PAIR["prompt_template"]
    + "\nQ: {question_2}\nA: {answer_a_2}\nB: {answer_b_2}",
}
CRITERION = "{prompt} | {response} | {keyPointText}{reference_text_block}"
PROMPTS: Mapping[str, Any] = {
    "pairs": {"without-reference": [PAIR, SECOND], "with-reference": [{**PAIR, "prompt_template": "R: {ref_answer_1}"}, SECOND]},
    "turns": {"system_prompt": "Judge.", "criteria_prompt": {"turn_1": "{transcript} | {response} | {keyPointText}", "turn_2": "{transcript} | {response} | {keyPointText}"}},
    "health": {"system_prompt": "Judge.", "criteria_prompt": "{conversation} | {rubric_item}"},
    "documents": {"criteria_prompt": "{question} | {official_answer} | {candidate_answer}"},
    "pictures": {"criteria_prompt": "{question} | {official_answer} | {candidate_answer}"},
}  # fmt: skip
CLASSES = {"CLASS_UNMET": 0, "CLASS_MODERATELY_MET": 0.5, "CLASS_EXACTLY_MET": 1.0}


def config(kind: str, **more: Any) -> dict[str, Any]:
    file, name, metric = METRICS[kind]
    prompts = PROMPTS.get(
        kind,
        {
            "system_prompt": "Judge.",
            "criteria_prompt": CRITERION,
            "reference_prompt": " (right: {reference})",
        },
    )
    judge = {
        "judge_model_name": "openai/big",
        "judge_model_type": "vllm",
        "judge_prompts": prompts,
        "classifications": CLASSES,
    }
    return {
        "metadata": {"version": 1},
        "name": kind,
        "competency": "multi-turn",
        "metric_file": file,
        "metric_class": name,
        "metric": metric,
        "fewshot_num_examples": {"instruct": 0, "base": 0},
        "judge": {
            **judge,
            "judge_generation_kwargs": {"max_tokens": 64, "temperature": 0.6},
            **more.pop("judge", {}),
        },
        "judgement_labels": {"A_wins": "[[A]]", "B_wins": "[[B]]", "Tie": "[[C]]"},
        "baseline_model": "base",
        "categories_with_reference": ["math"],
        "languages": {
            "id": {
                "filepath": f"seahelm_tasks/{kind}/id.jsonl",
                "max_tokens": 16,
                "prompt_template": {
                    "preamble": "",
                    "task_template": "{text}",
                    "answer_template": "",
                    "answer_tag": "",
                },
            }
        },
        **more,
    }


def judged(
    kind: str,
    rows: Sequence[Mapping[str, Any]],
    replies: Any,
    *,
    published: bool,
    said: Sequence[str] = ("it rains",),
    **more: Any,
) -> tuple[list[Score], list[str]]:
    """The scores of rows whose answers are `said`, and the prompts of the judge. replies: by
    (role, prompt).
    """
    ((scorer,), _) = scoring_of(
        SeaTask(kind, "id", config(kind, **more), Path(), published=published), rows
    )
    sent: list[str] = []

    async def ask(role: str, request: Any) -> Response:
        assert isinstance(request, Generate)
        assert not isinstance(request.prompt, str)
        prompt = request.prompt[-1].text
        sent.append(prompt)
        return Response(text=replies(role, prompt) if callable(replies) else replies)

    async def scored() -> list[Any]:
        answer = Answer(said[-1], responses=tuple(Response(text=one) for one in said))
        made: list[Any] = [
            scorer.function(Sample(str(row["id"]), metadata={"row": row}), answer, ask)
            for row in rows
        ]
        return [await one for one in made]

    return asyncio.run(scored()), sent


def row(number: Any = 1, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "question_id": number,
        "label": "42",
        "prompts": [{"text": "Cuaca {apa}?", "question": "Cuaca?"}, {"text": "Lalu?"}],
        "metadata": {"language": "id", "category": "writing"},
        **more,
    }


def met(name: str) -> str:
    return f"<reflection>so</reflection><classification>{name}</classification>"


# -- prompts and judges
# -------------------------------------------------------------------------------------------------


def test_prompts_are_filled_without_falling_over_braces() -> None:
    assert filled("{{a}} {b} {c} {", {"b": "{c} {{x}}", "c": 1}) == "{a} {c} {{x}} 1 {"
    assert filled("{unknown}", {}) == "{unknown}"
    with pytest.raises(SeaHelmRaised, match="KeyError: 'unknown'"):
        filled("{unknown}", {}, SeaHelmRaised)
    criteria = [{"criterion": "Says \\frac{1}{2} of {text}", "include_reference": True}]
    (score,), (prompt,) = judged(
        "criteria", [row(criteria=criteria)], met("CLASS_EXACTLY_MET"), published=False
    )
    assert (
        prompt
        == "Cuaca {apa}? | it rains | Says \\frac{1}{2} of Cuaca {apa}?\n (right: 42)\n"
    )
    assert score.value == 1.0
    with pytest.raises(SeaHelmRaised, match="KeyError: '1'"):
        judged("criteria", [row(criteria=criteria)], "", published=True)


def test_the_judges_of_a_file() -> None:
    task = SeaTask("t", "id", config("criteria"))
    assert [(one.role, one.name, dict(one.generation)) for one in judges_of(task)] == [
        ("judge", "vllm/openai/big", {"max_tokens": 64, "temperature": 0.6})
    ]
    two = {
        "judge_model_name": ["a", "b"],
        "judge_model_type": ["OpenAI", "anthropic"],
    }
    found = judges_of(SeaTask("t", "id", config("criteria", judge=two)))
    assert [(one.role, one.name) for one in found] == [
        ("judge", "openai/a"),
        ("judge-2", "anthropic/b"),
    ]
    with pytest.raises(TaskError, match="has 2 judges"):
        judges_of(
            SeaTask(
                "t",
                "id",
                config("criteria", judge={**two, "judge_model_type": ["a", "b", "c"]}),
            )
        )
    with pytest.raises(UnknownName, match="Did you mean 'temperature'"):
        judges_of(
            SeaTask(
                "t",
                "id",
                config(
                    "criteria", judge={"judge_generation_kwargs": {"temprature": 1}}
                ),
            )
        )
    with pytest.raises(TaskError, match="has no judge"):
        judges_of(SeaTask("t", "id", {**config("criteria"), "judge": {}}))


# -- what verdicts come to
# ----------------------------------------------------------------------------------------------


def test_criteria_first_or_last_class_and_what_cannot_be_read() -> None:
    criteria = [{"criterion": "one"}, {"criterion": "two"}]

    def replies(role: str, prompt: str) -> str:
        return (
            met("CLASS_UNMET") + met("CLASS_EXACTLY_MET")
            if prompt.endswith("one")
            else "I cannot say."
        )

    (score,), _ = judged("criteria", [row(criteria=criteria)], replies, published=True)
    assert (
        score.value,
        score.parts["unread"],
        score.parts["average_criteria_score"],
    ) == (0.0, 1.0, 0.0)
    with pytest.raises(RequestFailed, match="cannot be read"):
        judged("criteria", [row(criteria=criteria)], replies, published=False)
    (score,), _ = judged(
        "criteria", [row(criteria=criteria[:1])], replies, published=False
    )
    assert score.value == 1.0


def test_several_judges_count_alike_and_published_the_first_alone() -> None:
    two = {"judge_model_name": ["a", "b"], "judge_model_type": ["vllm", "vllm"]}

    def replies(role: str, prompt: str) -> str:
        return met("CLASS_EXACTLY_MET" if role == "judge" else "CLASS_UNMET")

    rows = [row(criteria=[{"criterion": "one"}])]
    (score,), sent = judged("criteria", rows, replies, published=False, judge=two)
    assert (score.value, len(sent), score.parts["judge"], score.parts["judge-2"]) == (
        0.5,
        2,
        1.0,
        0.0,
    )
    (score,), sent = judged("criteria", rows, replies, published=True, judge=two)
    assert (score.value, len(sent)) == (1.0, 1)


def test_verdicts_go_by_what_was_asked_and_not_by_their_order() -> None:
    """Twelve criteria, of which the third (10 points) is met: SEA-HELM gives its points to the
    fifth.
    """
    criteria = [
        {"criterion": f"<{n}>", "points": 10 if n == 2 else 1} for n in range(12)
    ]
    rows = [
        row(
            criteria=criteria,
            conversations=[{"role": "user", "content": "Hi"}],
            metadata={"example_tags": ["t"]},
        )
    ]

    def replies(role: str, prompt: str) -> str:
        return '{"explanation": "of {x}", "criteria_met": %s}' % (
            "true" if "<2>" in prompt else "false"
        )

    (score,), sent = judged("health", rows, replies, published=False)
    assert score.value == pytest.approx(10 / 21)
    assert sent[2] == "user: Hi\n\nAssistant: it rains | [10] <2>"
    (score,), _ = judged(
        "health", rows, lambda r, p: replies(r, p).replace("of {x}", ""), published=True
    )
    assert score.value == pytest.approx(1 / 21)
    (score,), _ = judged("health", rows, replies, published=True)
    assert (score.value, score.parts["unread"]) == (
        0.0,
        12.0,
    )  # braces in the explanation


def test_severity_and_what_any_sentence_must_meet() -> None:
    criteria = [
        {"criterion": "a", "severity": "High"},
        {"criterion": "b", "severity": "low"},
        {"criterion": "c", "severity": "generic"},
    ]

    def replies(role: str, prompt: str) -> str:
        return met("CLASS_UNMET" if prompt.endswith("| b") else "CLASS_EXACTLY_MET")

    for published in (False, True):
        (score,), _ = judged(
            "syntax", [row(criteria=criteria)], replies, published=published
        )
        assert score.value == pytest.approx(10 / 11)
        assert score.parts["generic_score"] == 1.0
    without = [row(criteria=criteria[:2])]
    assert judged("syntax", without, replies, published=True)[0][0].value == 0.0
    assert judged("syntax", without, replies, published=False)[0][
        0
    ].value == pytest.approx(10 / 11)


def test_two_turns() -> None:
    criteria = [
        {"criterion": "a", "turn": 0},
        {"criterion": "b", "turn": 0},
        {"criterion": "c", "turn": 1},
    ]

    def replies(role: str, prompt: str) -> str:
        return met("CLASS_UNMET" if prompt.endswith("| b") else "CLASS_EXACTLY_MET")

    (score,), sent = judged(
        "turns", [row(criteria=criteria)], replies, published=False, said=("one", "two")
    )
    assert (score.value, score.parts["turn 1"], score.parts["turn 2"]) == (
        0.75,
        0.5,
        1.0,
    )
    assert (
        sent[2]
        == "[User]\nCuaca {apa}?\n\n[Assistant (fixed)]\none\n\n[User]\nLalu? | two | c"
    )
    first = [row(criteria=criteria[:1])]
    for published, value in ((True, 0.5), (False, 1.0)):
        assert (
            judged("turns", first, replies, published=published, said=("one", "two"))[
                0
            ][0].value
            == value
        )
    with pytest.raises(SeaHelmRaised, match="underscore"):
        judged(
            "turns",
            [row("a_b", criteria=criteria)],
            replies,
            published=True,
            said=("one", "two"),
        )


def test_right_or_wrong() -> None:
    for reply, value in (
        ("CORRECT", 1.0),
        ("It is INCORRECT.", 0.0),
        ("CORRECT, not INCORRECT", 0.0),
        ("hm", 0.0),
    ):
        (score,), sent = judged(
            "pictures",
            [row()],
            reply,
            published=True,
            said=("so \\boxed{\\frac{4}{2}} and",),
        )
        assert (score.value, sent) == (value, ["Cuaca? | 42 | \\frac{4}{2}"])
    assert judged(
        "documents", [row()], "CORRECT", published=False, said=("\\boxed{1} x",)
    )[1] == ["Cuaca? | 42 | \\boxed{1} x"]
    with pytest.raises(RequestFailed, match="cannot be read"):
        judged("pictures", [row()], "CORRECT, not INCORRECT", published=False)


@pytest.mark.parametrize(
    ("before", "after", "ties", "published", "corrected"),
    [
        ("[[B]]", "[[A]]", True, 1.0, 1.0),
        ("[[A]]", "[[A]]", True, 0.5, 0.5),
        ("[[C]]", "[[A]]", True, 0.5, 0.5),
        ("[[A]]", "[[B]]", True, 0.0, 0.0),
        ("[[A]]", "[[A]]", False, 0.0, 0.5),
        ("no", "[[A]]", True, 0.5, None),
        ("[[A]] [[B]]", "no", True, 0.0, None),
    ],
)
def test_pairs_in_both_orders(
    before: str, after: str, ties: bool, published: float, corrected: float | None
) -> None:
    rows = [row(baselines={"base": ["it snows"]}, references=["r"])]

    def replies(role: str, prompt: str) -> str:
        return before if "A: it snows" in prompt else after

    (score,), sent = judged("pairs", rows, replies, published=True, ties_allowed=ties)
    assert score.value == score.parts["turn 1"] == published
    assert sorted(sent) == [
        "Q: Cuaca {apa}?\nA: it rains\nB: it snows",
        "Q: Cuaca {apa}?\nA: it snows\nB: it rains",
    ]
    if corrected is None:
        with pytest.raises(RequestFailed):
            judged("pairs", rows, replies, published=False, ties_allowed=ties)
    else:
        assert (
            judged("pairs", rows, replies, published=False, ties_allowed=ties)[0][
                0
            ].value
            == corrected
        )


# -- a run
# --------------------------------------------------------------------------------------------------------------


def tree(folder: Path) -> None:
    """A folder with a pairwise task of two turns and a task of criteria."""
    rows = {
        "pairs": [
            row(
                f"q{n}",
                baselines={"base": ["x", "y"]},
                metadata={"language": "id", "category": "ab"[n % 2]},
            )
            for n in range(8)
        ],
        "criteria": [
            row(f"c{n}", criteria=[{"criterion": f"k{n}{k}"} for k in "ab"])
            for n in range(6)
        ],
    }
    for kind, own in rows.items():
        place = folder / "seahelm_tasks" / kind
        place.mkdir(parents=True)
        (place / "config.yaml").write_text(json.dumps({kind: config(kind)}))
        for number, one in enumerate(own):
            one["prompts"] = [
                {"text": f"Question {kind} {number}"},
                {"text": f"Then {kind} {number}"},
            ][: 2 if kind == "pairs" else 1]
        (place / "id.jsonl").write_text("".join(json.dumps(one) + "\n" for one in own))
    (folder / "task_config.yaml").write_text(
        json.dumps({"both": {"id": ["pairs", "criteria"]}})
    )
    (folder / "seahelm_tasks" / "task_config.yaml").write_text(
        json.dumps({"both": {"id": ["pairs", "criteria"]}})
    )


def verdict(prompt: str) -> str:
    if "k5b" in prompt:
        return "I would rather not say."
    return (
        met("CLASS_MODERATELY_MET")
        if "| k" in prompt
        else "[[B]]"
        if "\nA: x" in prompt
        else "[[A]]"
    )


def stored(folder: Path) -> set[str]:
    """The last messages of the requests whose responses were acknowledged, read from the store's
    file itself.
    """
    connection = sqlite3.connect(
        f"file:{folder / '.evalwright' / 'store.sqlite'}?mode=ro", uri=True
    )
    try:
        return {
            json.loads(unpack(one))["generate"][-1][1]
            for (one,) in connection.execute("SELECT request FROM responses")
        }
    finally:
        connection.close()


def test_a_run_with_a_flaky_judge_is_killed_and_resumed(tmp_path: Path) -> None:
    tree(tmp_path)
    faults = Faults(0.3, kinds=("500", "reset"), most=2)
    with (
        serving(latency=0.01) as target,
        serving(verdict, latency=0.2, faults=faults) as judge,
    ):
        command = [
            "run", "sea-helm:both", "--task-root", ".", "--model", "openai/m", "-M", f"base_url={target.url}", "--name", "r", "--quiet",
        ]  # fmt: skip
        refused = evalwright(*command, folder=tmp_path)
        assert refused.code == 2
        assert "--role judge=vllm/openai/big" in refused.text
        assert "the task proposes and only you decide" in refused.text
        assert not target.log
        command += [
            "--role",
            "judge=openai/j",
            "-R",
            f"judge.base_url={judge.url}",
            "-R",
            "judge.max_concurrency=4",
        ]
        first = start(command, tmp_path)
        wait_until(lambda: sum(judge.completed.values()) > 12, first)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        known = stored(tmp_path)
        assert len(known) > 8
        assert judge.log is not None
        before = len(judge.log)
        done = evalwright(*command, folder=tmp_path)
        assert done.code == 1, done.text  # one verdict cannot be read
        again = {
            entry["body"]["messages"][-1]["content"]
            for entry in judge.log[before:]
            if "body" in entry
        }
        assert again
        assert not again & known
    found = {task["name"]: task for task in record(tmp_path / "runs" / "r")["tasks"]}
    metrics = {
        name: {one["label"]: one for one in task["metrics"]}
        for name, task in found.items()
    }
    assert metrics["sea-helm:pairs/id"]["weighted_win_rate"]["value"] == 1.0
    criteria = metrics["sea-helm:criteria/id"]["average_criteria_score"]
    assert (criteria["value"], criteria["n"], criteria["n_missing"]) == (0.5, 5, 1)
    failed = [
        one["score_failures"]
        for one in records(tmp_path / "runs" / "r")
        if one.get("score_failures")
    ]
    assert [one["sea-helm"]["party"] for one in failed] == ["judge"]


def with_effort(folder: Path) -> None:
    """The folder of criteria alone, whose file proposes a judge as SEA-HELM's own files do."""
    tree(folder)
    generation = {
        "judge_generation_kwargs": {"max_tokens": 16384, "reasoning_effort": "high"}
    }
    place = folder / "seahelm_tasks" / "criteria"
    (place / "config.yaml").write_text(
        json.dumps({"criteria": config("criteria", judge=generation)})
    )
    lines = (place / "id.jsonl").read_text().splitlines(keepends=True)
    (place / "id.jsonl").write_text("".join(lines[:2]))


@pytest.mark.parametrize(
    ("judge", "more", "body"),
    [
        ("vllm/openai/gpt-oss-120b", [], {"reasoning_effort": "high"}),
        ("sglang/openai/gpt-oss-120b", [], {"reasoning_effort": "high"}),
        ("openai/openai/gpt-oss-120b", [], {"reasoning_effort": "high"}),
        (
            "llamacpp/gpt-oss",
            [],
            {"chat_template_kwargs": {"reasoning_effort": "high"}},
        ),
        ("vllm/j", ["-R", "judge.reasoning_effort=low"], {"reasoning_effort": "low"}),
        ("openai/j", ["-R", "judge.thinking=medium"], {"reasoning_effort": "medium"}),
    ],
)
def test_the_effort_that_a_file_proposes_reaches_its_judge(
    tmp_path: Path, judge: str, more: list[str], body: Mapping[str, Any]
) -> None:
    with_effort(tmp_path)
    command = [
        "run",
        "sea-helm:criteria",
        "--task-root",
        ".",
        "--model",
        "scripted/hash",
        "--quiet",
    ]
    with serving(verdict, extra=("chat_template_kwargs",)) as server:
        command += ["--judge", judge, "-R", f"judge.base_url={server.url}", *more]
        done = typed(*command, folder=tmp_path)
        assert done.code == 0, done.text
        sent = [
            entry["body"]
            for entry in server.log or ()
            if "messages" in entry.get("body", {})
        ]
    assert len(sent) == 4
    for one in sent:
        assert body.items() <= one.items()
        assert one["max_tokens"] == 16384


@pytest.mark.parametrize(
    ("judge", "why"),
    [("tgi/j", "does not take reasoning_effort"), ("wandb/j", "Known: on, off")],
)
def test_an_effort_that_a_judge_does_not_take_is_left_out_and_said_once(
    tmp_path: Path, judge: str, why: str
) -> None:
    with_effort(tmp_path)
    with serving(verdict) as server:
        command = [
            "run",
            "sea-helm:criteria",
            "--task-root",
            ".",
            "--model",
            "scripted/hash",
        ]
        command += ["--judge", judge, "-R", f"judge.base_url={server.url}"]
        done = typed(*command, folder=tmp_path)
        assert done.code == 0, done.text
        bodies = [entry["body"] for entry in server.log or () if "body" in entry]
    assert bodies
    assert not any("reasoning_effort" in body for body in bodies)
    words = " ".join(done.text.split())
    assert (
        words.count(
            "is asked without reasoning_effort=high, which the task's file proposes"
        )
        == 1
    )
    assert why in words


@pytest.mark.parametrize(
    ("judge", "word"), [("vllm/j", "null"), ("openai/j", "null"), ("tgi/j", "off")]
)
def test_an_effort_that_the_person_takes_away_is_not_sent(
    tmp_path: Path, judge: str, word: str
) -> None:
    """Behind a gateway that refuses the field every verdict would fail."""
    with_effort(tmp_path)
    with serving(verdict) as server:
        command = [
            "run",
            "sea-helm:criteria",
            "--task-root",
            ".",
            "--model",
            "scripted/hash",
        ]
        command += ["--judge", judge, "-R", f"judge.base_url={server.url}"]
        done = typed(*command, "-R", f"judge.reasoning_effort={word}", folder=tmp_path)
        assert done.code == 0, done.text
        bodies = [
            entry["body"]
            for entry in server.log or ()
            if "messages" in entry.get("body", {})
        ]
    assert bodies
    assert not any("reasoning_effort" in body for body in bodies)


def test_two_words_for_how_long_a_judge_thinks_are_an_error(tmp_path: Path) -> None:
    with_effort(tmp_path)
    command = [
        "run",
        "sea-helm:criteria",
        "--task-root",
        ".",
        "--model",
        "scripted/hash",
        "--judge",
        "vllm/j",
    ]
    both = typed(
        *command,
        "-R",
        "judge.reasoning_effort=low",
        "-R",
        "judge.thinking=high",
        folder=tmp_path,
    )
    assert both.code == 2
    assert "name the same level" in both.text
    wrong = typed(*command, "-R", "judge.reasoning_effort=hihg", folder=tmp_path)
    assert wrong.code == 2
    assert "Did you mean 'high'" in wrong.text


# -- instructions
# -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("published", [True, False])
def test_instructions_are_checked_when_the_task_is_loaded(published: bool) -> None:
    def task(file: str, metric: str) -> SeaTask:
        named = {"metric_file": file, "metric_class": "IFEvalMetric", "metric": metric}
        return SeaTask(
            "t", "id", config("criteria", **named), Path(), published=published
        )

    def scored(made: Any, given: Mapping[str, Any], text: str) -> Any:
        return made[0][0].function(
            Sample("s", metadata={"row": given}),
            Answer(text, responses=(Response(text=text),)),
        )

    own = task(
        "seahelm_tasks/instruction_following/ifeval/if_eval.py",
        "overall_lang_normalized_acc",
    )
    one = row(
        metadata={"subcategory": "startend:quotation", "category": "startend"},
        kwargs=[{"num_words": None}],
    )
    found = scored(scoring_of(own, [one]), one, '"Saya suka makan nasi goreng."')
    assert (found.value, found.parts["subcategories.startend:quotation"]) == (1.0, 1.0)
    assert (
        scored(scoring_of(own, [one]), one, '"I like to eat rice."').parts[
            "overall_acc"
        ]
        == 1.0
    )
    with pytest.raises(
        TaskError,
        match=r"Row 1 of 't' \(id\): .*'startend:quotes'",
    ):
        scoring_of(own, [{**one, "metadata": {"subcategory": "startend:quotes"}}])
    english = task(
        "seahelm_tasks/english_evals/ifeval/ifeval.py",
        "normalized_prompt_level_strict_acc",
    )
    kinds = ["startend:quotation", "punctuation:no_comma"]
    two = row(metadata={"instruction_id_list": kinds}, kwargs=[{}, {}])
    found = scored(scoring_of(english, [two]), two, 'Here:\n"a b"')
    assert [
        found.parts[f"{level}_acc"]
        for level in ("prompt_level_strict", "inst_level_strict", "prompt_level_loose")
    ] == [0, 0.5, 1]
    with pytest.raises(TaskError, match="does not have one mapping"):
        scoring_of(english, [{**two, "kwargs": [{}]}])
