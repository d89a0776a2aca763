"""A suite of SEA-HELM's shape in seven languages: a small local model, two judges on loopback
(one of which fails and mumbles), a local judge of translations; killed twice where it is,
resumed, and read as one report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from evalwright.runs.reader import Run, open_run
from support.command import stored_requests, wait_until
from support.forked import start_forked
from support.openai_faults import Faults
from support.openai_server import serving
from support.tiny_models import CHAT_TEMPLATE, make_tiny_model
from support.tiny_rewards import make_metricx
from support.typed import typed

pytestmark = [pytest.mark.torch, pytest.mark.slow]

WORDS: Mapping[str, tuple[str, Sequence[str]]] = {
    "id": ("Jawaban:", ("air", "ikan", "nasi", "rumah", "jalan", "pasar", "hujan")),
    "vi": ("Câu trả lời:", ("nước", "cá", "cơm", "nhà", "đường", "chợ", "mưa")),
    "th": ("คำตอบ:", ("น้ำ", "ปลา", "ข้าว", "บ้าน", "ถนน", "ตลาด", "ฝน")),
    "ta": ("பதில்:", ("நீர்", "மீன்", "சோறு", "வீடு", "சாலை", "சந்தை", "மழை")),
    "tl": ("Sagot:", ("tubig", "isda", "kanin", "bahay", "daan", "palengke", "ulan")),
    "ms": ("Jawapan:", ("air", "ikan", "nasi", "rumah", "jalan", "pasar", "hujan")),
    "my": ("အဖြေ:", ("ရေ", "ငါး", "ထမင်း", "အိမ်", "လမ်း", "ဈေး", "မိုး")),
}
ROWS = 4
LABELS = ("src/metrics/f1_acc_metric.py", "F1AccMetric", "normalized_accuracy")
PROBABILITIES = (
    "src/metrics/logprob_metric.py",
    "LogProbMetric",
    "average_cumulative_probabilities",
)
LITE = "seahelm_tasks/knowledge/global_mmlu_lite/global_mmlu_lite_dataloader.py"
JUDGES = "src/metrics/llm_judges/"
VERDICT = "<classification>CLASS_{}</classification>"
PAIR = {"system_prompt": "Say {A_wins}, {B_wins} or {Tie}.", "prompt_template": "Q: {question_1}\nA: {answer_a_1}\nB: {answer_b_1}"}  # fmt: skip

TASKS: Mapping[str, dict[str, Any]] = {
    "sentiment": {"competency": "nlu", "by": LABELS, "in": ("id", "vi", "tl", "ms")},
    "sentiment-logprobs": {"competency": "nlu", "by": PROBABILITIES, "use_logprobs": True, "in": ("id", "th", "ta", "my")},
    "qa": {"competency": "nlu", "by": ("src/metrics/question_answering.py", "QuestionAnsweringMetric", "normalized_f1"), "in": ("id", "vi")},
    "nli-logprobs": {"competency": "nlr", "by": PROBABILITIES, "use_logprobs": True, "in": ("id", "vi", "tl", "my")},
    "toxicity-logprobs": {"competency": "safety", "by": PROBABILITIES, "use_logprobs": True, "in": ("vi", "ms")},
    "mp-r-logprobs": {
        "competency": "linguistic-diagnostics", "use_logprobs": True, "in": ("id", "ta"),
        "by": ("seahelm_tasks/lindsea/syntax/minimal_pairs.py", "MinimalPairsLogProbMetric", "average_cumulative_probabilities"),
    },
    "global_mmlu_lite": {
        "competency": "knowledge", "by": LABELS, "in": ("id", "vi", "ms"), "dataloader_file": LITE,
        "dataloader_class": "GlobalMMLULiteDataloader",
    },
    "translation-en-xx": {
        "competency": "nlg", "aggregation_group": "translations", "use_metricx_metric": True, "use_chrf_metric": True, "in": ("id", "th"),
        "by": ("seahelm_tasks/nlg/translation/translation_metric.py", "TranslationMetric", "normalized_metricx_wmt24_scores"),
    },
    "abssum": {
        "competency": "nlg", "use_rougeL_metric": True, "use_chrf_metric": True,
        "in": ("id", *(["my"] if find_spec("icu") else [])),  # Burmese words need ICU
        "by": ("seahelm_tasks/nlg/abstractive_summarization/summarization.py", "SummarizationMetric", "normalized_rougel_f1"),
    },
    "if-eval": {
        "competency": "instruction-following", "in": ("id", "tl"),
        "by": ("seahelm_tasks/instruction_following/ifeval/if_eval.py", "IFEvalMetric", "overall_lang_normalized_acc"),
    },
    "mt-bench": {
        "competency": "multi-turn", "in": ("vi", "ta"), "baseline_model": "base",
        "by": (f"{JUDGES}pairwise_llm_judge_metric.py", "PairwiseLLMJudgeMetric", "weighted_win_rate"),
        "judgement_labels": {"A_wins": "[[A]]", "B_wins": "[[B]]", "Tie": "[[C]]"},
        "judge": {
            "judge_model_name": "gpt-4.1-2025-04-14", "judge_model_type": "OpenAI",
            "judge_prompts": {"without-reference": [PAIR], "with-reference": [PAIR]},
        },
    },
    "kalahi-judge": {
        "competency": "cultural", "in": ("tl",),
        "by": (f"{JUDGES}criteria_judge_metric.py", "CriteriaJudgeMetric", "average_criteria_score"),
        "judge": {
            "judge_model_name": ["openai/gpt-oss-120b", "other/judge"], "judge_model_type": "vllm",
            "judge_prompts": {"system_prompt": "Judge.", "criteria_prompt": "{prompt} | {response} | {keyPointText}"},
            "classifications": {"CLASS_UNMET": 0, "CLASS_EXACTLY_MET": 1.0},
        },
    },
}  # fmt: skip
ABSENT = "causal-logprobs"
"""A name of the set that the folder has no task of."""
UNREAD = "tl/kalahi-judge/2"
"""The row whose verdicts the flaky judge does not give in a form that can be read."""


def chance(text: str) -> float:
    """A fixed number from 0 to 1."""
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big") / 2**32


def row(task: str, language: str, number: int) -> dict[str, Any]:
    """A row in SEA-HELM's form; the knowledge rows are translations of one another."""
    words = WORDS[language][1]
    text = " ".join(words[(number * step + 1) % 7] for step in (1, 2, 3, 5))
    made: dict[str, Any] = {
        "id": f"{task.split('-')[0]}-{number}_{language}",
        "label": "AB"[number % 2],
        "prompts": [{"text": f"{text} ({language}/{task}/{number})"}],
        "metadata": {
            "language": language,
            "linguistic_phenomenon": ("word order", "agreement")[number // 2],
        },
    }
    if task == "qa":
        made["label"] = [words[number], words[number + 1]]
    elif task in ("translation-en-xx", "abssum"):
        made["label"] = text
    elif task == "global_mmlu_lite":
        made["prompts"][0] |= {
            f"option_{letter}": words[place] for place, letter in enumerate("abcd")
        }
        made |= {"label": "ABCD"[number], "id": f"physics/test/{number}"}
    elif task == "if-eval":
        kind = ("startend:quotation", "keywords:forbidden_words")[number % 2]
        made["kwargs"] = [{"forbidden_words": [words[number]]} if number % 2 else {}]
        made["metadata"] |= {"subcategory": kind, "category": kind.split(":")[0]}
    elif task == "mt-bench":
        made |= {"baselines": {"base": [words[number]]}, "references": []}
        made["metadata"]["category"] = ("writing", "maths")[number % 2]
    elif task == "kalahi-judge":
        made["criteria"] = [
            {"criterion": f"{words[number]}?"},
            {"criterion": f"{words[number + 1]}?"},
        ]
    return made


def write_tree(folder: Path) -> None:
    """All files of the folder."""
    place = folder / "seahelm_tasks"
    suite: dict[str, list[str]] = {language: [] for language in WORDS}
    for task, facts in TASKS.items():
        (place / task).mkdir(parents=True)
        file, name, metric = facts["by"]
        config = {key: value for key, value in facts.items() if key not in ("by", "in")}
        config |= {
            "metric_file": file,
            "metric_class": name,
            "metric": metric,
            "name": task,
            "metadata": {"version": 1},
        }
        config |= {"fewshot_num_examples": {"instruct": 0, "base": 0}, "languages": {}}
        options = "\n".join(
            f"{letter}: {{option_{letter.lower()}}}" for letter in "ABCD"
        )
        free = task in ("if-eval", "mt-bench", "kalahi-judge")
        for language in facts["in"]:
            suite[language].append(task)
            data = place / task / f"{language}.jsonl"
            data.write_text(
                "".join(json.dumps(row(task, language, n)) + "\n" for n in range(ROWS)),
                encoding="utf-8",
            )
            template = {
                "preamble": "" if free else '"{answer_tag} ..."',
                "task_template": "{text}" + (f"\n{options}" if task == "global_mmlu_lite" else ""),
                "answer_template": "" if free else "{answer_tag} {label}", "answer_tag": "" if free else WORDS[language][0],
            }  # fmt: skip
            config["languages"][language] = {
                "filepath": str(data.relative_to(folder)),
                "max_tokens": 12,
                "prompt_template": template,
            }
        (place / task / "config.yaml").write_text(
            json.dumps({task: config}), encoding="utf-8"
        )
    twinless = {
        **json.loads((place / "nli-logprobs" / "config.yaml").read_text())[
            "nli-logprobs"
        ],
        "name": "causal",
    }
    (place / "causal").mkdir()
    (place / "causal" / "config.yaml").write_text(
        json.dumps({"causal": twinless}), encoding="utf-8"
    )
    suite["vi"].append(ABSENT)
    (place / "task_config.yaml").write_text(
        json.dumps({"seahelm_small": suite}), encoding="utf-8"
    )


def steady(prompt: str) -> str:
    """A judge of pairs, mostly of one mind in both orders, and of criteria."""
    if "\nA: " not in prompt:
        return VERDICT.format("EXACTLY_MET" if chance(prompt) < 0.6 else "UNMET")
    named = prompt.partition("\nA: ")[0]
    baseline_first = any(
        f"\nA: {word}\n" in prompt for _, words in WORDS.values() for word in words
    )
    wins = chance(named) < 0.5
    return (
        "[[C]]"
        if chance(prompt) < 0.2
        else "[[B]]"
        if baseline_first == wins
        else "[[A]]"
    )


def mumbling(prompt: str) -> str:
    """A judge that does not always come to a verdict."""
    return (
        "I would rather not say."
        if UNREAD in prompt
        else VERDICT.format("EXACTLY_MET" if chance(f"m{prompt}") < 0.6 else "UNMET")
    )


def said(log: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        entry["body"]["messages"][-1]["content"] for entry in log if "body" in entry
    ]


def stored(home: Path) -> dict[str, set[str]]:
    """The last messages of the stored requests of generated text, by the model's fingerprint."""
    found: dict[str, set[str]] = {}
    for model, request in stored_requests(home):
        if isinstance(messages := json.loads(request).get("generate"), list):
            found.setdefault(model, set()).add(messages[-1][1])
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("suite")
    write_tree(made)
    make_tiny_model(made / "tiny", chat=CHAT_TEMPLATE, context=512)
    make_metricx(made / "metricx")
    return made


def test_a_suite_is_killed_twice_and_is_one_report(folder: Path) -> None:
    faults = Faults(0.4, kinds=("500", "429-retry-after-ms"), most=2, retry_after=0.02)
    with (
        serving(steady, latency=0.05) as first,
        serving(mumbling, latency=0.05, faults=faults) as flaky,
    ):
        judges = {"judge": first, "judge-2": flaky}
        command = [
            "run",
            "sea-helm:seahelm_small",
            "--task-root",
            ".",
            "--model",
            "hf/tiny",
            "--quiet",
        ]
        for role, server in judges.items():
            command += [
                "--role",
                f"{role}=openai/{role}",
                "-R",
                f"{role}.base_url={server.url}",
                "-R",
                f"{role}.max_concurrency=2",
            ]
        command += [
            "--role",
            "metricx=metricx/metricx",
            "-R",
            "metricx.tokenizer=metricx-tokenizer",
            "-R",
            "metricx.score_token=5",
        ]
        killed = [*command, "--name", "killed"]
        deaths = []
        for server, enough in ((first, 8), (flaky, 6)):
            process = start_forked(killed, folder)
            wait_until(lambda: sum(server.completed.values()) >= enough, process)  # noqa: B023
            process.kill()
            process.communicate()
            deaths.append(
                (
                    stored(folder / ".evalwright"),
                    {role: len(one.log or ()) for role, one in judges.items()},
                )
            )
        before = len(stored_requests(folder / ".evalwright"))
        done = typed(*killed, folder=folder)
        assert done.code == 1, done.text  # one row of the flaky judge has no verdict
        run = open_run(folder / "runs" / "killed")
        for known, seen in deaths:
            assert known
            for role, server in judges.items():
                again = set(said((server.log or [])[seen[role] :]))
                assert not again & known.get(
                    run.data["roles"][role]["fingerprint"], set()
                ), role
        assert flaky.refused + sum(flaky.received.values()) > sum(
            flaky.completed.values()
        )
        assert run.data["usage"]["stored"] >= before
        # The same suite without a fault and without a death has the same numbers.
        with serving(mumbling) as calm:
            undisturbed = [part.replace(flaky.url, calm.url) for part in command]
            done = typed(
                *undisturbed,
                "--name",
                "calm",
                folder=folder,
                extra={"EVALWRIGHT_HOME": "calm"},
            )
            assert done.code == 1, done.text
    calm_run = open_run(folder / "runs" / "calm")
    for one, other in zip(run.tasks, calm_run.tasks, strict=True):
        pairs = [
            (a.estimate.value, b.estimate.value)
            for a, b in zip(one.metrics, other.metrics, strict=True)
        ]
        # A local model's batches are others, and their sums are rounded otherwise.
        assert all(a == pytest.approx(b, abs=1e-6) for a, b in pairs), one.name
    _is_one_report(folder, run)


def _is_one_report(folder: Path, run: Run) -> None:
    """Tasks, competencies, languages, the SEA average and all of it: with intervals, what
    failed, and what is not there.
    """
    assert [task.name for task in run.tasks if task.metrics[0].estimate.n_missing] == [
        "sea-helm:kalahi-judge/tl"
    ]
    groups = {group.name: group for group in run.groups}
    assert {
        f"sea-helm:{name}"
        for name in (*WORDS, "SEA", "all", "id/nlg/translations", "tl/cultural")
    } <= {*groups}
    for group in groups.values():
        (metric,) = group.metrics
        made = metric.estimate
        assert made.low <= made.value <= made.high, group.name
        assert made.low < made.high or made.value == 0.0, (
            "below chance is 0, whatever the spread"
        )
    sea, every = (
        groups[f"sea-helm:{name}"].metrics[0].estimate for name in ("SEA", "all")
    )
    languages = [groups[f"sea-helm:{name}"].metrics[0].estimate.value for name in WORDS]
    assert sea.value == every.value == pytest.approx(sum(languages) / 7)
    assert (sea.n, sea.n_missing) == (ROWS * len(run.tasks) - 1, 1)
    lacking = [
        name
        for name, group in groups.items()
        if f"sea-helm:{ABSENT}/vi" in group.missing
    ]
    assert lacking == [f"sea-helm:{name}" for name in ("vi/nlr", "vi", "SEA", "all")]
    shown = typed(
        "runs", "show", "killed", "--details", folder=folder, extra={"COLUMNS": "80"}
    )
    assert shown.code == 0, shown.text
    assert max(map(len, shown.out.splitlines())) <= 80
    missing = (
        f"{len(run.tasks)} of {len(run.tasks) + 1} tasks; missing: sea-helm:{ABSENT}/vi"
    )
    assert missing in " ".join(shown.out.split())
    assert "The verdict of 'judge-2' cannot be read" in shown.out
    done = typed("leaderboard", "killed", "calm", "--json", folder=folder)
    assert done.code == 0, done.text
    board = json.loads(done.out)
    # Totals stand before their parts, and the overall score is that of all languages.
    assert board["groups"][:3] == ["sea-helm:SEA", "sea-helm:id", "sea-helm:vi"]
    assert board["rows"][0]["overall"]["value"] == pytest.approx(every.value)
    assert any(missing in note for note in board["notes"])
    assert not any(
        "has no interval" in note and "setting" in note for note in board["notes"]
    )
