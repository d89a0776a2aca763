"""Four boards as their maintainers would make them: HHEM, SEA-HELM, Korean and factual sets.

    python benchmarks/real_boards.py OUT [--hhem DIR] [--sea-helm DIR] [--golden FILE]
        [--only BOARD]

`--hhem` is the folder `output` of the public leaderboard engine (branch `lb-engine` of
github.com/vectara/hallucination-leaderboard) with `judgments.jsonl` and `stats.jsonl` of each
model: 96 in March 2026. `--sea-helm` is a checkout of SEA-HELM, whose repository has the data of 60
tasks in their languages. `--golden` has replies to some rows of these tasks, as SEA-HELM's own code
scored them (gzipped JSON lines with `kind`, `task`, `lang`, `variant`, `row_index` and `rows`).

What is real and what is not: HHEM's judgments are all as recorded. SEA-HELM's questions are real
and the first model's replies are the recorded ones; those of the other models are made of them, by
replacing a share of them, which differs by competency and language, by the reply to another row of
the same task. The Korean questions are our own rows in the shape of the benchmarks, and replies are
right with a chance that differs by model and category. The factual questions are the bundled ones,
and the models are the two demonstration models and a third that always answers the same.

Every number on the boards is then made by the project's commands as for any run. `OUT/BOARD` gets
the runs, the board as page, Markdown, CSV and JSON, pictures of the page at 1,280 and 390 pixels,
and `commands.txt` with each command and its seconds. Options that this version of `leaderboard`
does not have (`--by`, `--preset`) are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KOREAN_TABLES = ROOT / "tests" / "data" / "hret"
BOARDS = ("hhem", "sea-helm", "sea-native", "korean", "factual")
WIDTHS_PX = {"wide": 1_280, "phone": 390}
HEIGHT_PX = 1_600
MAX_PICTURE_S = 120
COMMAND = (sys.executable, "-m", "evalwright")

DEGRADED = {
    "recorded": 0.0,
    "sparrow-70b": 0.08,
    "sparrow-8b": 0.2,
    "mynah-32b": 0.14,
    "mynah-7b": 0.3,
    "egret-3b": 0.55,
}
"""SEA-HELM's models: the share of the recorded replies that are replaced."""

SKILLS = {
    "crane-70b": 0.85,
    "crane-8b": 0.62,
    "magpie-32b": 0.78,
    "magpie-7b": 0.5,
    "tit-1b": 0.3,
}
"""Made models: their mean chance of a right reply."""

KOREAN_TASKS = {
    "kmmlu-generate": "kmmlu",
    "haerae-bench-generate": "haerae_bench",
    "click-generate": "click",
    "hrm8k": "hrm8k",
    "aime-2025-korean": "aime2025",
    "hrc": "hrc",
    "kbl-generate": "kbl",
    "kormedmcqa-generate": "kormedmcqa",
}
"""Each task with the table of its rows."""

NATIVE_TASKS = (
    *(
        f"sea-safeguard-{part}-{of}-{language}"
        for language in ("id", "ms", "my", "ta", "th", "tl", "vi")
        for part in ("general", "culture")
        for of in ("request", "reply")
    ),
    *(
        f"sea-safeguard-in-the-wild-{language}"
        for language in ("id", "ms", "my", "ta", "th", "tl", "vi")
    ),
    "sea-global-mmlu-lite-ms",
    "sea-global-mmlu-lite-tl",
    "sea-paraphrase-my",
    "sea-paraphrase-tl",
    "sea-qa-mc-jv",
    "sea-qa-mc-su",
    "sea-qa-mc-dialogue-zh",
    "sea-qa-mc-mixed-genre-zh",
    "sea-idiom-zh",
)
"""Tasks of our own whose rows are in SEA-HELM's repository."""

FACTUAL_TASKS = ("factual", "factual-choice")


class Workplace:
    """A board's folder, and the commands that were run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "commands.txt"

    def run(self, *arguments: str, fails: bool = False) -> str:
        """Run a command of the project; return what it printed.

        Args:
            arguments: after `evalwright`.
            fails: whether a failure only stands in the log.
        """
        start = time.perf_counter()
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "EVALWRIGHT_HOME": str(self.folder / "home"),
        }
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        seconds = time.perf_counter() - start
        shown = " ".join(arguments)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{seconds:7.1f} s  exit {done.returncode}  evalwright {shown}\n")
            if done.returncode:
                log.write(f"{done.stderr}\n")
        if done.returncode > 1 and not fails:
            raise SystemExit(f"evalwright {shown}\n{done.stdout}{done.stderr}")
        return done.stdout

    def board(self, title: str, *options: str) -> None:
        """Make the board of all runs of the folder, in all forms, and its pictures."""
        names = sorted(path.name for path in (self.folder / "runs").iterdir())
        output = self.run(
            "leaderboard", *names, "--title", title, "--html", "board.html",
            "--csv", "board.csv", "--markdown", "board.md", "--json-file", "board.json",
            "--pages", "models", *options,
        )  # fmt: skip
        (self.folder / "board.txt").write_text(output, encoding="utf-8")
        self.pictures()

    def pictures(self) -> None:
        """Picture the page in Chromium, wide and narrow, light and dark."""
        chromium = shutil.which("chromium")
        if chromium is None:
            return
        page = (self.folder / "board.html").resolve().as_uri()
        for size, width in WIDTHS_PX.items():
            for scheme, flags in {
                "light": (),
                "dark": ("--blink-settings=preferredColorScheme=0",),
            }.items():
                picture = self.folder / f"board-{size}-{scheme}.png"
                subprocess.run(
                    [
                        chromium, "--headless", "--no-sandbox", "--disable-gpu",
                        "--hide-scrollbars",
                        f"--user-data-dir={self.folder / 'chromium'}",
                        f"--window-size={width},{HEIGHT_PX}",
                        f"--screenshot={picture}", *flags, page,
                    ],
                    check=False, capture_output=True, timeout=MAX_PICTURE_S,
                )  # fmt: skip
        shutil.rmtree(self.folder / "chromium", ignore_errors=True)


@cache
def known_options() -> frozenset[str]:
    """The options that `leaderboard` has in this version."""
    done = subprocess.run(
        [*COMMAND, "leaderboard", "--help"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    return frozenset(re.findall(r"--[\w-]+", done.stdout))


def if_known(option: str, value: str) -> tuple[str, ...]:
    """Return an option with its value, or nothing where this version does not have it."""
    return (option, value) if option in known_options() else ()


def chance(*parts: object) -> float:
    """Return a number from 0 to 1 that depends on the parts alone."""
    text = "|".join(map(str, parts))
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big") / 2**32


# -- HHEM --------------------------------------------------------------------------------------


def make_hhem(place: Workplace, output: Path) -> None:
    """All recorded judgments of the public leaderboard; each row counts once."""
    if not (place.folder / "runs").exists():
        place.run("import", "hhem", str(output), "--scoring", "corrected")
    place.board(
        "Hallucination rates", "--least-answered", "95", "--plot", "board.png",
        *if_known("--preset", "hhem"),
    )  # fmt: skip


# -- SEA-HELM ----------------------------------------------------------------------------------


def make_sea_helm(place: Workplace, checkout: Path, golden: Path) -> None:
    """Tasks of SEA-HELM's own files in ten languages, with recorded replies."""
    tree = place.folder / "tree"
    lines = [
        line
        for line in golden_lines(golden)
        if not line["task"].endswith("-logprobs") and line.get("rows")
    ]
    kept = cut_checkout(checkout, tree, lines)
    replies = recorded_replies(tree, kept)
    models = []
    for model, share in DEGRADED.items():
        path = place.folder / f"{model}.jsonl"
        write_lines(path, degraded(replies, model, share))
        models.append({"model": f"replay/{path.name}", "label": model})
    suite = {
        "tasks": ["sea-helm:recorded"],
        "dialect": {"task_root": "tree"},
        "models": models,
    }
    write_json(place.folder / "suite.json", suite)
    if not (place.folder / "runs").exists():
        place.run("run", "--config", "suite.json", "--name", "sea", "--quiet")
    place.board("SEA-HELM", *if_known("--preset", "sea-helm"))


def golden_lines(golden: Path) -> list[dict[str, Any]]:
    """Read the lines that have replies to the rows of a task."""
    with gzip.open(golden, "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [
        line
        for line in lines
        if line["kind"] == "metrics" and line["variant"] == "mixed"
    ]


def cut_checkout(
    checkout: Path, tree: Path, lines: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Copy SEA-HELM's files, with the rows that have replies; return the lines that fit."""
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(
        checkout / "seahelm_tasks",
        tree / "seahelm_tasks",
        ignore=shutil.ignore_patterns("*.py", "books", "vocab"),
    )
    configs = file_by_task(tree)
    kept: list[Mapping[str, Any]] = []
    cut: dict[str, list[int]] = {}
    for line in lines:
        path = configs.get((line["task"], line["lang"]), "")
        if not path or not (tree / path).is_file():
            continue
        rows = cut.setdefault(path, line["row_index"])
        if rows == line["row_index"]:
            kept.append(line)
    for path, indices in cut.items():
        rows_of_file = (tree / path).read_text(encoding="utf-8").split("\n")
        chosen = [rows_of_file[index] for index in indices]
        (tree / path).write_text("\n".join(chosen) + "\n", encoding="utf-8")
    tasks: dict[str, list[str]] = {}
    for line in kept:
        tasks.setdefault(line["lang"], []).append(line["task"])
    write_json(tree / "seahelm_tasks" / "task_config.yaml", {"recorded": tasks})
    return kept


def file_by_task(tree: Path) -> dict[tuple[str, str], str]:
    """Find the data file of each task and language that has one in the repository."""
    import yaml

    files = {}
    for config in tree.glob("seahelm_tasks/**/config.yaml"):
        for name, task in yaml.safe_load(config.read_text(encoding="utf-8")).items():
            languages = task.get("languages")
            if not isinstance(languages, Mapping):
                continue
            for language, settings in languages.items():
                path = (settings or {}).get("filepath")
                if isinstance(path, str):
                    files[name, language] = path
    return files


def recorded_replies(
    tree: Path, lines: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Find what is asked for each row, as the project asks it, with the recorded reply."""
    from evalwright.core.requests import prompt_payload
    from evalwright.tasks.loading import load_tasks

    replies = []
    for line in lines:
        name = f"sea-helm:{line['task']}/{line['lang']}"
        (task,) = load_tasks(name, dialect={"task_root": str(tree)}, chat=True)
        for index, row in enumerate(line["rows"]):
            prompt = asyncio.run(prompt_of(task, index))
            replies.append(
                {
                    "task": line["task"],
                    "language": line["lang"],
                    "prompt": prompt_payload(prompt),
                    "response": row["response"] or "",
                }
            )
    return replies


async def prompt_of(task: Any, index: int) -> Any:
    """Return the prompt of a sample's first request."""
    from evalwright.core.responses import Response

    prompts = []

    async def ask(role: str, request: Any) -> Response:
        prompts.append(request.prompt)
        return Response("none")

    await task.strategy(task.samples[index], ask, 0)
    return prompts[0]


def degraded(
    replies: Sequence[Mapping[str, Any]], model: str, share: float
) -> Iterator[dict[str, Any]]:
    """Replace a share of the replies by the one to the next row of the same task."""
    for index, reply in enumerate(replies):
        # Some languages and tasks are harder for some models, as they are for real ones.
        local = share * (0.4 + 1.2 * chance(model, reply["language"]))
        local *= 0.6 + 0.8 * chance(model, reply["task"])
        following = replies[(index + 1) % len(replies)]
        is_replaced = chance(model, index) < local
        text = following["response"] if is_replaced else reply["response"]
        yield {"prompt": reply["prompt"], "response": text}


# -- our own tasks on its rows -------------------------------------------------------------------


def make_sea_native(place: Workplace, checkout: Path) -> None:
    """Our own tasks in ten languages, on the files of SEA-HELM's repository, as a tree."""
    for part in ("knowledge", "nlu", "safety"):
        source = checkout / "seahelm_tasks" / part
        shutil.copytree(
            source, place.folder / "seahelm_tasks" / part, dirs_exist_ok=True
        )
    os.chdir(place.folder)
    write_made_models(place, {name: {} for name in NATIVE_TASKS}, limit=100)
    suite: dict[str, Any] = {
        "tasks": list(NATIVE_TASKS),
        "limit": 100,
        "models": models_of(place),
    }
    if "--by" in known_options():
        suite["tree"] = {
            "name": "Southeast Asia",
            "by": ["language", "competency", "family"],
        }
    run_suite(place, suite, "sea")
    place.board("Southeast Asia", *if_known("--by", "language,competency,family"))


def make_korean(place: Workplace) -> None:
    """Korean benchmarks on rows of our own, by category."""
    os.chdir(place.folder)
    overrides = {}
    for task, key in KOREAN_TASKS.items():
        overrides[task] = {"dataset.path": str(write_table(place.folder, key))}
    write_made_models(place, overrides)
    if not (place.folder / "runs").exists():
        # A suite has one set of overrides for all tasks, and each of these has a file of its own.
        from evalwright import evaluate
        from evalwright.tasks.loading import load_task

        tasks = [
            load_task(task, chat=True, overrides=settings)
            for task, settings in overrides.items()
        ]
        models = [replay["model"] for replay in models_of(place)]
        evaluate(tasks, models, name="korean", out="runs")
    place.board("Korean", *if_known("--by", "category"), *if_known("--preset", "hret"))


def write_table(folder: Path, key: str) -> Path:
    """Write a benchmark's rows as a file for each part; return the pattern of their names."""
    table = json.loads((KOREAN_TABLES / f"{key}.json").read_text(encoding="utf-8"))
    for name, rows in table["tables"].items():
        write_lines(folder / "tables" / key / f"{name}.jsonl", rows)
    return folder / "tables" / key / "*.jsonl"


def write_made_models(
    place: Workplace,
    overrides_by_task: Mapping[str, Mapping[str, Any]],
    limit: int | None = None,
) -> None:
    """Write a file of replies for each made model: right or wrong with its chance."""
    from evalwright.core.requests import prompt_payload
    from evalwright.tasks.loading import load_task

    questions = []
    for name, overrides in overrides_by_task.items():
        task = load_task(name, chat=True, overrides=overrides)
        render: Any = task.strategy
        metadata = task.metadata
        topic = metadata.get("category", metadata.get("competency"))
        group = f"{metadata['language']}/{topic}"
        for sample in task.samples:
            prompt = render.render(sample)
            wrong = wrong_reply(sample)
            questions.append(
                (group, prompt_payload(prompt), right_reply(sample, prompt), wrong)
            )
    for model, skill in SKILLS.items():
        lines = []
        for index, (group, payload, right, wrong) in enumerate(questions):
            local = min(0.98, skill * (0.75 + 0.4 * chance(model, group)))
            text = right if chance(model, index) < local else wrong
            lines.append({"prompt": payload, "response": text})
        write_lines(place.folder / f"{model}.jsonl", lines)


def right_reply(sample: Any, prompt: Any) -> str:
    """The right answer as the prompt asks for it."""
    if not sample.choices:
        return rf"\boxed{{{sample.target}}}"
    text = prompt[-1].text
    marks = re.findall(r"[\"“「]([^\"”」:：]+[:：៖])[^\"”」]*[\"”」]", text)
    mark = marks[-1] if marks else "Answer:"
    option = sample.choices[sample.gold[0]]
    letter = "ABCDEFGHIJ"[sample.gold[0]]
    return f"{mark} {letter if f'{letter}. ' in text else option}"


def wrong_reply(sample: Any) -> str:
    """An answer that is wrong, in words that any task reads."""
    if not sample.choices:
        return r"\boxed{-12345}"
    wrong = next(
        index for index in range(len(sample.choices)) if index not in sample.gold
    )
    return str(sample.choices[wrong])


def models_of(place: Workplace) -> list[dict[str, str]]:
    """The made models as a suite names them."""
    return [{"model": f"replay/{model}.jsonl", "label": model} for model in SKILLS]


def run_suite(place: Workplace, suite: Mapping[str, Any], name: str) -> None:
    """Run a suite, unless its runs are there."""
    write_json(place.folder / "suite.json", suite)
    if not (place.folder / "runs").exists():
        place.run("run", "--config", "suite.json", "--name", name, "--quiet")


# -- factual questions -----------------------------------------------------------------------------


def make_factual(place: Workplace) -> None:
    """The bundled factual tasks with both demonstration models and a constant answer."""
    suite = {
        "tasks": list(FACTUAL_TASKS),
        "models": [
            "demo/small",
            "demo/large",
            {
                "model": "scripted/constant",
                "arguments": {"text": "No answer"},
                "label": "No answer",
            },
        ],
    }
    run_suite(place, suite, "factual")
    place.board(
        "Open factual questions", *if_known("--preset", "factual"),
        *(() if "--preset" in known_options() else if_known("--by", "category")),
    )  # fmt: skip


# -- files ---------------------------------------------------------------------------------------


def write_lines(path: Path, rows: Any) -> None:
    """Write rows as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, which is YAML too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")


def main() -> None:
    """Make the boards whose data are there."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--hhem", type=Path)
    parser.add_argument("--sea-helm", type=Path)
    parser.add_argument("--golden", type=Path)
    parser.add_argument("--only", action="append", choices=BOARDS)
    options = parser.parse_args()
    out = options.out.resolve()
    hhem, checkout, golden = (
        path and path.resolve() for path in (options.hhem, options.sea_helm, options.golden)
    )  # fmt: skip
    for name in options.only or BOARDS:
        start = time.perf_counter()
        place = Workplace(out / name)
        if name == "hhem" and hhem:
            make_hhem(place, hhem)
        elif name == "sea-helm" and checkout and golden:
            make_sea_helm(place, checkout, golden)
        elif name == "sea-native" and checkout:
            make_sea_native(place, checkout)
        elif name == "korean":
            make_korean(place)
        elif name == "factual":
            make_factual(place)
        else:
            print(f"{name}: its data are not named", flush=True)
            continue
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
