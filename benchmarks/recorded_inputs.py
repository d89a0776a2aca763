"""What the recorded numbers are made of: task files, rows, replies and a tiny transformer.

Everything is written once, into a folder of inputs that the record keeps, so that a later check
reads the very same bytes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from recorded_server import hashed

QUESTIONS: Sequence[tuple[str, str, list[str], dict[str, Any], list[str]]] = (
    ("name", "What is the capital of France?", ["Paris"], {},
     ["Paris", "It is Paris.", "**Paris**", "Lyon", "not Paris", "paris", "Paris or Lyon",
      "I don't know", "", "Is it Paris?", "Paris, which lies on the Seine",
      "Many say Lyon, but it is Paris."]),
    ("name", "Who wrote War and Peace?", ["Leo Tolstoy", "Tolstoy", "Lev Tolstoy"], {},
     ["Leo Tolstoy", "Tolstoy", "Count Leo Tolstoi", "Fyodor Dostoevsky", "L. Tolstoy",
      "Tolstoy wrote it in 1869.", "The author is Leo Tolstoy.", "Alexei Tolstoy", "No answer"]),
    ("number", "How high is the tower, in metres?", ["324"],
     {"unit": "m", "tolerance": {"absolute": 1}},
     ["324 m", "324", "0.324 km", "1,063 feet", "about 330 metres",
      "300 metres without the 24 m antenna", "three hundred and twenty-four", "324.0",
      "323.5 metres", "unknown"]),
    ("number", "How many people live in the city?", ["37,468,000"],
     {"tolerance": {"relative": 0.02}},
     ["Tokyo, 37,468,000", "37.4 million", "37468000", "37 million people",
      "thirty-seven million", "around 3.7 million", "37.468.000", "between 37 and 38 million",
      "No idea."]),
    ("number", "What share is it, in percent?", ["12.5"], {"unit": "%"},
     ["12.5%", "12,5 %", "one eighth", "0.125", "12.5 percent", "13%", "1/8"]),
    ("date", "When was the bridge opened?", ["14 May 1998"], {},
     ["14 May 1998", "May 14, 1998", "1998-05-14", "14.05.1998", "May 1998", "1998",
      "15 May 1998", "It opened on the 14th of May, 1998.", "5/14/98", "in the spring of 1998",
      "I cannot say."]),
    ("date", "In which year did the war end?", ["1945"], {},
     ["1945", "In 1945.", "'45", "1944 or 1945", "1946", "the mid-1940s", "1939-1945"]),
    ("yes_no", "Is the whale a mammal?", ["yes"], {},
     ["Yes", "yes, it is", "No", "It is.", "No, it is not a fish; it is a mammal.", "True",
      "Of course", "Hardly", "It depends", "Yes and no", "The whale is a mammal.", "n/a"]),
    ("name", "Ibu kota Provinsi Jawa Tengah?", ["Semarang", "Kota Semarang"], {"language": "id"},
     ["Semarang", "Kota Semarang.", "Bukan Semarang", "Surabaya", "Saya tidak tahu",
      "Jawabannya adalah Semarang"]),
    ("name", "대한민국의 수도는?", ["서울", "서울특별시"], {"language": "ko"},
     ["서울입니다.", "서울특별시", "부산", "모르겠습니다", "수도는 서울이다"]),
    ("name", "เมืองหลวงของไทยคือ?", ["กรุงเทพมหานคร", "กรุงเทพ"], {"language": "th"},
     ["กรุงเทพมหานคร", "คือกรุงเทพครับ", "เชียงใหม่", "ไม่ทราบ"]),
)  # fmt: skip
"""(answer type, question, targets, metadata, replies): every reply becomes a sample of its own."""

NUMBERED = [
    (
        f"Jar {n}: how many jars are {n} and {n + 3}?",
        str(2 * n + 3),
        (
            f"{n} + {n + 3} = {2 * n + 3}. The answer is {2 * n + 3} jars.",
            f"\\boxed{{{2 * n + 3}}}",
            f"#### {2 * n + 3}.0",
            f"So {n}",
            f"A. {2 * n + 3}",
            "I think so.",
            f"The answer is {2 * n + 4}.",
            f"Confidence: 80%\nanswer: {2 * n + 3}",
        )[n % 8],
    )
    for n in range(24)
]

GENERATED = [
    "mmlu-generate",
    "mmlu-pro",
    "gsm8k",
    "math",
    "bbh-date-understanding",
    "bbh-boolean-expressions",
    "gpqa-diamond",
    "drop",
    "triviaqa",
    "simpleqa-verified",
    "aime-2024",
    "ifeval",
    "humaneval",
    "mbpp",
]
"""Bundled tasks that are asked for text; the cases of the tests give rows and replies."""


def write_inputs(place: Path, source: Path, shared: Path) -> None:
    """Write everything into `place`. source: the `src` of a checkout. shared: a folder with
    `parity/rows` and `data`.
    """
    place.mkdir(parents=True)
    tests = source.parent / "tests"
    command = [
        sys.executable,
        "-m",
        "support.tiny_models",
        str((place / "tiny").resolve()),
        "--kind",
        "llama",
        "--context",
        "512",
    ]
    subprocess.run(command, cwd=tests, check=True, capture_output=True)
    for folder in sorted((shared / "parity" / "rows").iterdir()):
        shutil.copytree(folder, place / "rows" / folder.name)
    lite = shared / "data" / "global_mmlu_lite"
    for name in ("en_test", "en_dev"):
        raw_rows = [
            json.loads(line)
            for line in (
                (lite / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
            )
        ]
        rows = [
            {**row["metadata"], **row["prompts"][0], "answer": row["label"]}
            for row in raw_rows
        ]
        _write_lines(
            place / f"{name}.jsonl",
            (
                row
                for row in rows
                if row["subject"] in ("astronomy", "anatomy", "marketing")
            ),
        )
    replies = _write_own_tasks(place) + list(_factual_replies(source))
    _write_lines(
        place / "replies.jsonl",
        ({"input": question, "response": reply} for question, reply in replies),
    )
    _write_library_cases(place, tests)
    _write_dialect_tasks(place / "dialect")
    _write_bench_results(place)


def _write_lines(path: Path, rows: Iterable[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows),
        encoding="utf-8",
    )


def _write_task(path: Path, **definition: Any) -> None:
    """JSON is YAML."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(definition, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )


def _write_own_tasks(place: Path) -> list[tuple[str, str]]:
    """One task for each way of answering, with every scorer that reads it; returns (question,
    reply).
    """
    rows: list[dict[str, Any]] = []
    replies: list[tuple[str, str]] = []
    for kind, question, targets, metadata, answers in QUESTIONS:
        for number, answer in enumerate(answers):
            numbered_question = f"({number}) {question}"
            row = {
                "id": f"{len(rows):03d}",
                "input": numbered_question,
                "targets": targets,
                "cluster": question,
                "answer_type": kind,
                **metadata,
            }
            rows.append({"unit": None, "tolerance": None, "language": "en", **row})
            replies.append((numbered_question, answer or " "))
    _write_lines(place / "words.jsonl", rows)
    metadata = {
        key: f"{{{{ {key} }}}}"
        for key in ("answer_type", "unit", "tolerance", "language")
    }
    scorers: list[Any] = [
        "short-answer",
        "exact-match",
        "token-f1",
        "outcome",
        "words",
        "similarity",
    ]
    scorers += [
        {
            "name": "loose",
            "use": "exact-match",
            "ignore_case": True,
            "ignore_punctuation": True,
            "ignore_articles": True,
        }
    ]
    scorers += [
        {"name": "cosine", "use": "similarity", "role": "embedder"},
        {"name": "last", "use": "final-answer", "kind": "text"},
    ]
    metrics: list[Any] = [
        "accuracy",
        "accuracy-given-attempted",
        "f-score",
        {"label-share": {"label": "not_attempted"}},
    ]
    metrics += [
        {"name": f"{scorer}-mean", "use": "mean", "scorer": scorer}
        for scorer in (
            "exact-match",
            "token-f1",
            "words",
            "similarity",
            "loose",
            "cosine",
            "last",
        )
    ]
    metrics += [
        {"use": "outcome-share", "scorer": "outcome", "outcome": "refused"},
        {"use": "answer-rate", "scorer": "outcome"},
    ]
    common = {
        "sample": {"target": "{{ targets }}", "metadata": metadata},
        "slices": ["answer_type", "language"],
    }
    prompt = {
        "user": "Question: {{ input }}\nAnswer:",
        "few_shot": {"count": 2, "select": "per-sample"},
    }
    _write_task(
        place / "words.yaml",
        task="words",
        dataset="words.jsonl",
        prompt=prompt,
        scorers=scorers,
        metrics=metrics,
        **common,
    )
    _write_lines(
        place / "sums.jsonl",
        (
            {"input": question, "target": right, "choices": [right, "1", "2", "9000"]}
            for question, right, _ in NUMBERED
        ),
    )
    kinds = [
        {"name": f"final-{kind}", "use": "final-answer", "kind": kind}
        for kind in ("number", "math", "choice", "text")
    ]
    drawn = {"temperature": 0.7, "draws": 3, "seed": 5, "max_tokens": 40}
    means = [
        "accuracy",
        *(
            {"name": f"{scorer}-mean", "use": "mean", "scorer": scorer}
            for scorer in ("final-number", "final-math", "final-choice", "choice")
        ),
    ]
    sample = {"shuffle": True}
    _write_task(
        place / "sums.yaml",
        task="sums",
        dataset="sums.jsonl",
        sample=sample,
        prompt={"user": "Question: {{ input }}"},
        answer=drawn,
        scorers=["numeric", *kinds, "choice", "short-answer"],
        metrics=means,
    )
    for mode in ("letter", "likelihood"):
        named = [
            {"name": unit, "use": "choice", "normalise": unit}
            for unit in ("none", "bytes", "characters", "tokens")
        ]
        choice_metrics = [
            "accuracy",
            {"use": "balanced-accuracy"},
            {"use": "macro-f1"},
            *(
                {
                    "name": f"by-{scorer['name']}",
                    "use": "accuracy",
                    "scorer": scorer["name"],
                }
                for scorer in named
            ),
        ]
        shots = {"few_shot": {"count": 3, "select": "random", "seed": 2}}
        _write_task(
            place / f"{mode}.yaml",
            task=mode,
            dataset="sums.jsonl",
            sample=sample,
            prompt=shots,
            answer={"mode": mode},
            scorers=named,
            metrics=choice_metrics,
        )
    texts = [
        {"input": f"Text {n}. {question}", "target": f" {reply}"}
        for n, (question, _, reply) in enumerate(NUMBERED)
    ]
    _write_task(
        place / "continuation.yaml",
        task="continuation",
        dataset={"rows": texts[:12]},
        answer={"mode": "continuation"},
    )
    _write_task(
        place / "perplexity.yaml",
        task="perplexity",
        dataset={"rows": texts[:8]},
        sample={"target": None},
        prompt={"user": "{{ input }} {{ row.target }}"},
        answer={"mode": "perplexity"},
    )
    return replies + [(question, reply) for question, _, reply in NUMBERED]


def _factual_replies(source: Path) -> Iterable[tuple[str, str]]:
    """A reply to every bundled factual question: right, wrong, hedged, declined, corrected, cited,
    by the id's hash.
    """
    for path in sorted(source.rglob("library/factual/*.jsonl")):
        rows = [
            json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()
        ]
        for number, row in enumerate(rows):
            right, (wrong, *_) = (
                fact.get("answers") or [fact["answer"]]
                for fact in (row, rows[number - 1])
            )
            replies = [
                right[0],
                f"The answer is {right[0]}.",
                f"I think it is {right[-1]}, but I am not sure.",
                wrong,
                "I don't know.",
                f"It is not {wrong}; it is {right[0]}.",
                f"{right[0]} or {wrong}",
                f"**{right[0]}**\n\nThis is well known.",
            ]
            replies += [
                *row.get("fabrications", [])[:1],
                *row.get("corrections", [])[:1],
                str(row.get("premise") or "No answer"),
            ]
            reply = replies[hashed(row["id"]) % len(replies)]
            cited = (
                "".join(f" [{passage}]" for passage in row.get("citations", []))
                if hashed(row["id"] + "c") % 3
                else " [9]"
            )
            yield row["question"], reply + (cited if "passages" in row else "")


def _write_library_cases(place: Path, tests: Path) -> None:
    """Suites that give bundled tasks rows of the tests, with a constant model for every reply."""
    code = (
        "import json; from support.hub_rows import CASES; print(json.dumps([[c.task,"
        " list(map(list, c.rows.items())), c.right, c.wrong] for c in CASES]))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tests,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for task, tables, right, wrong in json.loads(printed):
        if task not in GENERATED or (place / f"case-{task}.yaml").exists():
            continue
        overrides: dict[str, Any] = {}
        for (_, _, split), rows in tables:
            file = f"case-{task}-{split}.jsonl"
            _write_lines(place / file, rows)
            key = "dataset" if not overrides else "prompt.few_shot.dataset"
            overrides[key] = {
                "path": file,
                "hub": None,
                "revision": None,
                "config": None,
                "split": None,
            }
        models = [
            {
                "model": "scripted/constant",
                "arguments": {"text": text},
                "label": f"says {number}",
            }
            for number, text in enumerate([*right, *wrong])
        ]
        _write_task(
            place / f"case-{task}.yaml",
            tasks=[task],
            models=models,
            overrides=overrides,
        )


def _write_dialect_tasks(folder: Path) -> None:
    """lm-eval task files of every output type, over the rows of the parity runs (paths from the
    working folder).
    """

    def write(name: str, rows: str, test: str, **more: Any) -> None:
        files = {
            path.stem: f"inputs/rows/{rows}/{path.name}"
            for path in sorted((folder.parent / "rows" / rows).glob("*.jsonl"))
        }
        settings = {
            "task": name,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": files},
            "test_split": test,
            "metadata": {"version": 1.0},
        }
        _write_task(folder / f"{name}.yaml", **settings, **more)

    choice = {
        "output_type": "multiple_choice",
        "doc_to_text": "Question: {{question}}\nAnswer:",
    }
    accuracies = [
        {"metric": metric, "aggregation": "mean", "higher_is_better": True}
        for metric in ("acc", "acc_norm")
    ]
    arc = {
        "doc_to_choice": "{{choices.text}}",
        "doc_to_target": "{{choices.label.index(answerKey)}}",
        "metric_list": accuracies,
    }
    write("d_arc", "arc", "test", training_split="train", **choice, **arc)
    counted = [
        {"metric": metric, "aggregation": how, "higher_is_better": True}
        for metric, how in (("acc", "mean"), ("mcc", "matthews_corrcoef"), ("f1", "f1"))
    ]
    cola = {
        "doc_to_text": "{{sentence}}\nQuestion: good?\nAnswer:",
        "doc_to_choice": ["no", "yes"],
        "doc_to_target": "label",
        "metric_list": counted,
    }
    write("d_cola", "cola", "validation", output_type="multiple_choice", **cola)
    for name in ("anatomy", "astronomy", "college_biology"):
        letters = {
            "doc_to_choice": ["A", "B", "C", "D"],
            "doc_to_target": "answer",
            "metric_list": accuracies[:1],
        }
        write(
            f"d_{name}",
            f"mmlu_{name}",
            "test",
            fewshot_split="dev",
            **choice,
            **letters,
        )
    group = [{"metric": "acc", "weight_by_size": True}]
    _write_task(
        folder / "group.yaml",
        group="d_mmlu",
        task=["d_anatomy", "d_astronomy", "d_college_biology"],
        aggregate_metric_list=group,
    )
    filters = [
        {
            "name": f"{name}-match",
            "filter": [
                {"function": "regex", "regex_pattern": pattern, "group_select": place},
                {"function": "take_first"},
            ],
        }
        for name, pattern, place in (
            ("strict", r"#### (\-?[0-9\.\,]+)", 0),
            ("flexible", r"(-?[$0-9.,]{2,})|(-?[0-9]+)", -1),
        )
    ]
    exact = [
        {
            "metric": "exact_match",
            "aggregation": "mean",
            "higher_is_better": True,
            "ignore_case": True,
            "regexes_to_ignore": [",", "\\$", "\\.$"],
        }
    ]
    sums = {
        "doc_to_text": "Question: {{question}}\nAnswer:",
        "doc_to_target": "{{answer.split('####')[-1].strip()}}",
        "filter_list": filters,
        "metric_list": exact,
    }
    write(
        "d_gsm8k",
        "gsm8k",
        "test",
        training_split="train",
        output_type="generate_until",
        generation_kwargs={"until": ["Question:"]},
        **sums,
    )
    last = [
        {"metric": metric, "aggregation": how, "higher_is_better": up}
        for metric, how, up in (
            ("perplexity", "perplexity", False),
            ("acc", "mean", True),
        )
    ]
    words = {
        "doc_to_text": "{{text.split(' ')[:-1]|join(' ')}}",
        "doc_to_target": "{{' '+text.split(' ')[-1]}}",
        "metric_list": last,
    }
    write("d_lambada", "lambada", "test", output_type="loglikelihood", **words)
    rolled = [
        {"metric": name}
        for name in ("word_perplexity", "byte_perplexity", "bits_per_byte")
    ]
    write(
        "d_wikitext",
        "wikitext",
        "test",
        output_type="loglikelihood_rolling",
        doc_to_text="",
        doc_to_target="page",
        metric_list=rolled,
    )


def _write_bench_results(place: Path) -> None:
    """A result file of open-factual-bench with its questions, and a text to look for n-grams in."""
    answers = [
        ("metal_1", "Symbol of gold?", "Au", "It is Au."),
        ("year_1", "Days in a leap year?", "366", "three hundred and sixty-six"),
        ("sea_1", "Deepest trench?", "Mariana Trench", "The Mariana Trench."),
    ]
    results = [
        {
            "task_id": key,
            "model_response": reply,
            "is_correct": key != "year_1",
            "latency_ms": 400.0,
            "tokens_generated": 9,
            "timestamp": "2026-01-02T03:04:06",
            "metadata": None,
        }
        for key, _, _, reply in answers
    ]
    config = {
        "model_id": "acme/small",
        "eval_type": "factual_qa",
        "max_new_tokens": 64,
        "temperature": 0.0,
        "hardware": "T4",
        "seed": 0,
        "extra": None,
    }
    summary = {
        "total_tasks": 3,
        "auto_graded": 3,
        "correct": 2,
        "accuracy": 0.6667,
        "skipped": 0,
        "hallucination_tasks": 0,
        "hallucinated": 0,
        "refused": 0,
        "unclear": 0,
    }
    _write_task(
        place / "bench" / "run_20260102_030405_acme-small.json",
        run_id="run_20260102_030405",
        config=config,
        summary=summary,
        results=results,
    )
    _write_lines(
        place / "bench-tasks.jsonl",
        (
            {
                "id": key,
                "domain": "science",
                "question": question,
                "reference_answer": right,
                "metadata": {"type": "factual_qa"},
            }
            for key, question, right, _ in answers
        ),
    )
    (place / "corpus.txt").write_text(
        " ".join(question for _, question, *_ in QUESTIONS), encoding="utf-8"
    )
