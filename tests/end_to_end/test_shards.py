"""A run in shards, by processes of their own: merged it is the run that one process makes, also where a
shard was killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from support import postgres
from support.command import ROOT, environment, record, records, wait_until
from support.forked import start_forked, write_command
from support.openai_server import OpenAIServer, running, serving
from support.typed import typed
from support.wire_schemas import InvalidRequest

SCHEMA = ROOT / "src/evalwright/runs/schemas/run.schema.json"
SUITE: dict[str, Any] = {
    "tasks": ["law.yaml", "sums.yaml", "texts.yaml"],
    "models": [{"model": "openai/gpt-4o-mini", "label": "Small"}, "openai/gpt-4.1"],
    "limit": 37,
    "seed": 3,
    "tree": {
        "name": "all",
        "parts": [
            {"name": "reading", "average": "pooled", "parts": ["law", "texts"]},
            "sums",
        ],
    },
}
NUMBER = re.compile(r"number (\d+)")


def write_tasks(folder: Path) -> None:
    """Passages with several questions and a judge; a vote of three draws, twice; and a metric
    over a corpus.
    """
    law = [
        {"id": f"l{n}", "input": f"Is number {n} so?", "target": "yes", "passage": f"p{n // 3}", "topic": "ab"[n % 2]} for n in range(60)
    ]  # fmt: skip
    sums = [
        {"id": f"s{n}", "input": f"What is number {n} and 1?", "target": str(n + 1)}
        for n in range(40)
    ]
    texts = [
        {
            "id": f"t{n}",
            "input": f"Describe number {n}.",
            "target": f"It is number {n} of all.",
        }
        for n in range(30)
    ]
    tasks: dict[str, dict[str, Any]] = {
        "law": {
            "dataset": {"rows": law},
            "sample": {"id": "{{ id }}", "input": "{{ input }}", "target": "{{ target }}", "cluster": "{{ passage }}"},
            "scorers": ["exact-match", {"judge-correct": {"template": "grader.txt"}}],
            "metrics": ["accuracy", {"accuracy": {"scorer": "judge-correct"}}],
            "slices": ["topic"],
        },
        "sums": {
            "dataset": {"rows": sums},
            "strategy": {"name": "self-consistency", "n": 3},
            "answer": {"temperature": 0.7, "max_tokens": 20, "seed": 5, "draws": 2},
            "scorers": [{"final-answer": {"kind": "number"}}],
        },
        "texts": {"dataset": {"rows": texts}, "scorers": ["bleu"], "metrics": ["bleu"]},
    }  # fmt: skip
    for name, task in tasks.items():
        content = {
            "task": name,
            "answer": {"mode": "generate", "max_tokens": 20},
            **task,
        }
        (folder / f"{name}.yaml").write_text(json.dumps(content), encoding="utf-8")
    (folder / "grader.txt").write_text(
        "Grade {predicted_answer} by {target}: {question}", encoding="utf-8"
    )
    (folder / "suite.yaml").write_text(json.dumps(SUITE), encoding="utf-8")


def answered(reply: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """Answers that depend on the whole request; every eleventh number is rejected, some replies
    are cut, some verdicts cannot be read.
    """
    text = json.dumps(body, sort_keys=True)
    number = int(NUMBER.findall(text)[0])
    chance = random.Random(text)
    choice = reply["choices"][0]
    if "Grade" in text:
        choice["message"]["content"] = chance.choice(["A", "B", "C", "I cannot say."])
        return reply
    if number % 11 == 10:
        raise InvalidRequest("This number is not allowed.")
    said = f"It is number {number + chance.choice([0, 1, 1, 2])} {chance.choice(['of all', 'or so'])}."
    choice["message"]["content"] = (
        chance.choice(["yes", "no"]) if "so?" in text else said
    )
    if number % 13 == 12:
        choice |= {
            "message": {"role": "assistant", "content": "", "refusal": None},
            "finish_reason": "length",
        }
    return reply


def command(server: OpenAIServer, name: str, *more: str) -> list[str]:
    models = [
        "-M",
        f"base_url={server.url}",
        "--judge",
        "openai/judge",
        "-R",
        f"judge.base_url={server.url}",
    ]
    return [
        "run",
        "--config",
        "suite.yaml",
        *models,
        "-M",
        "max_concurrency=4",
        "--price",
        "0.15/0.6",
        "--name",
        name,
        "--quiet",
        *more,
    ]


def told(run: Path) -> dict[str, Any]:
    """What two runs of one evaluation have in common."""
    data = record(run)
    jsonschema.validate(data, json.loads(SCHEMA.read_text(encoding="utf-8")))
    for key in ("id", "started", "seconds", "hardware", "merged_from"):
        data.pop(key, None)
    data["configuration"].pop("name")
    data["samples"].pop("sha256")
    usage = data["usage"]
    data["usage"] = {
        "requested": usage["requested"],
        "failures": usage["failures"],
        "answers": usage["answers"],
    }
    return data


class StallingServer(OpenAIServer):
    """A server that answers so many requests, and keeps further ones waiting meanwhile."""

    most_replies: int | None = None

    @property
    def n_received(self) -> int:
        return sum(self.received.values())

    async def _good(self, interface: str, body: Mapping[str, Any]) -> dict[str, Any]:
        number = self.n_received
        while self.most_replies is not None and number > self.most_replies:
            await asyncio.sleep(0.01)
        return await super()._good(interface, body)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the whole run, and four shards of it of which one was killed, merged."""
    folder = tmp_path_factory.mktemp("shards")
    write_tasks(folder)
    stalling = StallingServer(edit=answered, latency=0.02, spread=0.3)
    with running(stalling) as server:
        done = typed(
            *command(server, "whole"), folder=folder, extra={"EVALWRIGHT_HOME": "whole"}
        )
        assert done.code == 1, done.text
        before = sum(server.received.values())
        own = {"EVALWRIGHT_HOME": "parts"}
        server.most_replies = before + 10
        killed = start_forked(command(server, "parts", "--shard", "2/4"), folder, own)
        wait_until(lambda: server.n_received > before + 10, killed)
        killed.kill()
        out, err = killed.communicate(timeout=1800)
        assert killed.returncode == -9, out + err
        server.most_replies = None
        shards = [
            start_forked(command(server, "parts", "--shard", f"{n}/4"), folder, own)
            for n in (1, 3, 4)
        ]
        for process in shards:
            out, err = process.communicate(timeout=1800)
            assert process.returncode == 1, out + err
        missing = typed("runs", "merge", "parts", folder=folder)
        assert missing.code == 2
        assert (
            "shard 2 of 4 is missing. Run the same command with --shard 2/4"
            in missing.text
        )
        assert not (folder / "runs/parts-Small").exists()
        again = typed(
            *command(server, "parts", "--shard", "2/4"), folder=folder, extra=own
        )
        assert again.code == 1, again.text
        sent = sum(server.received.values())
        merged = typed("runs", "merge", "parts", folder=folder)
        assert merged.code == 1, merged.text
        # From the store of the shards, so that latencies are the same, too.
        assert typed(*command(server, "replayed"), folder=folder, extra=own).code == 1
        assert sum(server.received.values()) - sent <= before
    return folder


@pytest.mark.parametrize("model", ["Small", "openai-gpt-4.1"])
def test_merged_shards_are_the_whole_run(made: Path, model: str) -> None:
    whole, parts, replayed = (
        made / "runs" / f"{name}-{model}" for name in ("whole", "parts", "replayed")
    )
    assert records(parts) == records(whole)
    assert (parts / "samples.jsonl").read_bytes() == (
        replayed / "samples.jsonl"
    ).read_bytes()
    assert told(parts) == told(whole)
    data = record(parts)
    assert data["usage"]["answers"]["cost"] > 0
    assert {group["name"] for group in data["groups"]} == {"all", "reading"}
    assert all(task["n_missing"] for task in data["tasks"])
    assert data["tasks"][0]["failures"].keys() >= {
        "request rejected",
        "judge: bad verdict",
    }
    assert (
        data["tasks"][0]["outcomes"]["cut"]
        and "cut" not in data["tasks"][0]["failures"]
    )
    assert [one["run"] for one in data["merged_from"]] == [
        f"parts-{model}.shard-{n}-of-4" for n in range(1, 5)
    ]
    checked = [
        typed("runs", "check", f"{name}-{model}", folder=made).text
        for name in ("parts", "whole")
    ]
    assert checked[0].replace("parts", "whole") == checked[1]


def test_samples_of_a_cluster_and_draws_are_in_one_shard(made: Path) -> None:
    seen: dict[tuple[str, str], set[int]] = {}
    sizes = []
    for number in range(1, 5):
        rows = records(made / "runs" / f"parts-Small.shard-{number}-of-4")
        sizes.append(len(rows))
        for row in rows:
            seen.setdefault((row["task"], row.get("cluster") or row["id"]), set()).add(
                number
            )
    assert all(len(shards) == 1 for shards in seen.values())
    assert sum(sizes) == 37 + 2 * 37 + 30
    assert max(sizes) - min(sizes) <= 4


def test_a_shard_says_what_it_is_and_stands_for_nothing_else(made: Path) -> None:
    shard = "parts-Small.shard-3-of-4"
    shown = typed("runs", "show", shard, folder=made)
    assert shown.code == 0
    assert "shard 3 of 4 of 'parts-Small'" in shown.text
    assert "evalwright runs merge parts" in shown.text
    assert "Small (shard 3 of 4)" in typed("runs", "list", folder=made).text.replace(
        "\n", " "
    )
    for other in (
        ["compare", shard, "parts-openai-gpt-4.1"],
        ["compare", shard, shard.replace("3", "1"), "parts-Small"],
        [
            "compare",
            shard,
            "parts-openai-gpt-4.1",
            "--fail-if",
            "accuracy is below 0.1",
        ],
        ["leaderboard", shard],
        ["score", shard],
        ["runs", "aggregate", shard],
        ["export", "parquet", shard],
        ["runs", "plot", "scores", shard, "parts-Small", "--into", "scores.svg"],
    ):
        done = typed(*other, folder=made)
        assert done.code == 2, done.text
        assert "Traceback" not in done.text
        assert "evalwright runs merge parts" in done.text.replace("\n", " "), done.text


def shims(folder: Path) -> dict[str, str]:
    """An environment with our command, and with `sbatch` and `qsub` that run what they are given
    at once, an array side by side.
    """
    place = folder / "bin"
    place.mkdir()
    slurm = """
array= ; dependency=no
while case "$1" in --*) true ;; *) false ;; esac; do
  case "$1" in --array=1-*) array=${1#--array=1-} ;; --dependency=afterany:7) dependency=yes ;; esac; shift
done
echo "$dependency" >> sbatch.log
if [ -n "$array" ]; then
  for i in $(seq "$array"); do SLURM_JOB_ID=7 SLURM_ARRAY_TASK_ID=$i bash "$@" > "log.$i" 2>&1 & done; wait; echo "7;cluster"
else bash "$@" >&2; fi
"""
    pbs = """
array=
while case "$1" in -*) true ;; *) false ;; esac; do
  case "$1" in -J) array=${2#1-} ;; -v) export "${2%%,*}" ;; -W) [ "$2" = "depend=afterany:7[]" ] ;; esac; shift 2
done
export PBS_O_WORKDIR="$PWD" PBS_ENVIRONMENT=PBS_BATCH; file=$PWD/$1; cd /
if [ -n "$array" ]; then
  for i in $(seq "$array"); do PBS_ARRAY_INDEX=$i bash "$file" > "$PBS_O_WORKDIR/log.$i" 2>&1 & done; wait; echo "7[]"
else bash "$file" >&2; fi
"""
    for name, text in (
        ("sbatch", f"set -eu{slurm}"),
        ("qsub", f"set -eu{pbs}"),
    ):
        (place / name).write_text(f"#!/bin/bash\n{text}", encoding="utf-8")
        (place / name).chmod(0o755)
    write_command(place / "evalwright", "-m", "evalwright")
    return environment({"PATH": f"{place}:{os.environ['PATH']}"})


def test_two_tasks_of_one_srun_take_a_shard_each(tmp_path: Path) -> None:
    task = {
        "task": "asked",
        "dataset": {
            "rows": [{"id": str(n), "input": f"{n}?", "target": "1"} for n in range(9)]
        },
    }
    (tmp_path / "asked.yaml").write_text(json.dumps(task), encoding="utf-8")
    command = [
        "run",
        "asked.yaml",
        "--model",
        "scripted/hash",
        "--name",
        "both",
        "--quiet",
    ]
    tasks = [
        {"SLURM_STEP_NUM_TASKS": "2", "SLURM_NTASKS": "2", "SLURM_PROCID": str(rank)}
        for rank in range(2)
    ]
    for settings in tasks:
        refused = typed(*command, folder=tmp_path, extra=settings)
        assert refused.code == 2
        assert "--shard auto" in refused.err and "-M devices=all" in refused.err
    assert not (tmp_path / "runs").exists()
    processes = [
        start_forked([*command, "--shard", "auto"], tmp_path, settings)
        for settings in tasks
    ]
    for process in processes:
        out, err = process.communicate(timeout=1800)
        assert process.returncode == 0, out + err
    merged = typed("runs", "merge", "both", folder=tmp_path)
    assert merged.code == 0, merged.text
    assert len(records(tmp_path / "runs/both")) == 9


N_JOBS = 2
HOSTILE = 'it\'s "$(touch hostile)" `touch hostile`; touch hostile #@RUN@'


@pytest.mark.parametrize("system", ["slurm", "pbs", "kubernetes"])
def test_job_files_run_the_shards_and_merge_them(system: str, tmp_path: Path) -> None:
    """The files are those that a cluster gets; only who starts their steps is a stand-in of a
    few lines.
    """
    rows = [
        {"id": f"q{n}", "input": f"Question {n}?", "target": str(n)} for n in range(20)
    ]
    (tmp_path / "asked.yaml").write_text(
        json.dumps({"task": "asked", "dataset": {"rows": rows}}), encoding="utf-8"
    )
    model = ["--model", "scripted/constant", "-M", f"text={HOSTILE}"]
    command = [
        "run",
        "asked.yaml",
        *model,
        "--name",
        HOSTILE.replace("/", ""),
        "--quiet",
    ]
    image = ["--image", "registry/image:1"] if system == "kubernetes" else []
    done = typed(
        "jobs",
        system,
        "--shards",
        f"{N_JOBS}",
        *image,
        "--into",
        f"file.{system}",
        "--",
        *command,
        folder=tmp_path,
    )
    assert done.code == 0, done.text
    env = shims(tmp_path)
    for _ in range(2):  # submitted again it resumes: everything is there
        if system == "kubernetes":
            run_kubernetes(tmp_path / f"file.{system}", env)
        else:
            subprocess.run(["bash", "-n", f"file.{system}"], cwd=tmp_path, check=True)
            ran = subprocess.run(
                ["bash", f"file.{system}"],
                cwd=tmp_path,
                env=env,
                capture_output=True,
                text=True,
                check=False,
            )
            assert ran.returncode == 0, ran.stderr + "".join(
                log.read_text() for log in tmp_path.glob("log.*")
            )
    if system == "slurm":
        assert (tmp_path / "sbatch.log").read_text().split() == ["no", "yes"] * 2
    assert not (tmp_path / "hostile").exists()
    whole = typed(*command[:-3], "--name", "whole", folder=tmp_path)
    assert whole.code == 0, whole.text
    merged = next(
        run
        for run in (tmp_path / "runs").iterdir()
        if "shard" not in run.name and run.name != "whole"
    )
    assert records(merged) == records(tmp_path / "runs/whole")
    assert told(merged) == told(tmp_path / "runs/whole")
    end = ".jsonl.gz" if system == "kubernetes" else ""
    assert {
        place.name
        for place in (tmp_path / ".evalwright").iterdir()
        if place.name.startswith("shard")
    } == {f"shard-{n}-of-{N_JOBS}{end}" for n in range(1, N_JOBS + 1)}
    for shard in (tmp_path / "runs").glob("*.shard-*"):
        usage = record(shard)["usage"]
        assert (usage["sent"], usage["stored"]) == (0, 20 / N_JOBS), (
            "nothing is sent again"
        )


@pytest.mark.parametrize("system", ["slurm", "pbs"])
def test_job_files_run_workers(
    system: str, tmp_path: Path, server: postgres.Server
) -> None:
    """Tasks of the array that start after the run is written end at once, as do those of a second
    submission.
    """
    rows = [
        {"id": f"q{n}", "input": f"Question {n}?", "target": str(n)} for n in range(20)
    ]
    (tmp_path / "asked.yaml").write_text(
        json.dumps({"task": "asked", "dataset": {"rows": rows}}), encoding="utf-8"
    )
    model = ["--model", "scripted/constant", "-M", f"text={HOSTILE}"]
    command = ["run", "asked.yaml", *model, "--name", "board", "--quiet"]
    options = ["--workers", f"{N_JOBS}", "--into", f"file.{system}"]
    done = typed("jobs", system, *options, "--", *command, folder=tmp_path)
    assert done.code == 0, done.text
    env = {**shims(tmp_path), "EVALWRIGHT_STORE": server.url()}
    written = []
    for _ in range(2):
        ran = subprocess.run(
            ["bash", f"file.{system}"],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        logs = "".join(log.read_text() for log in tmp_path.glob("log.*"))
        assert ran.returncode == 0, ran.stderr + logs
        assert "Error" not in logs
        written.append((tmp_path / "runs/board/run.json").read_bytes())
    assert written[0] == written[1]
    whole = typed(*command[:-3], "--name", "whole", folder=tmp_path)
    assert whole.code == 0, whole.text
    assert records(tmp_path / "runs/board") == records(tmp_path / "runs/whole")


def run_kubernetes(file: Path, env: dict[str, str]) -> None:
    """The containers' commands, as Kubernetes makes them of the file: `$$` is `$`, `$(NAME)` a
    variable of the container.
    """
    shards, merge = yaml.safe_load_all(file.read_text(encoding="utf-8"))
    assert shards["spec"]["completionMode"] == "Indexed"
    assert (shards["spec"]["completions"], shards["spec"]["parallelism"]) == (
        N_JOBS,
        N_JOBS,
    )

    def words(job: Any) -> list[str]:
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert not re.search(r"(?<!\$)(\$\$)*\$\(", " ".join(container["command"]))
        return [word.replace("$$", "$") for word in container["command"]]

    def on_its_disk(command: list[str], index: int) -> list[str]:
        """A pod's disk is new for every pod."""
        disk = file.parent / f"disk-{index}"
        shutil.rmtree(disk, ignore_errors=True)
        return [word.replace('="/store', f'="{disk}') for word in command]

    started = [
        subprocess.Popen(
            on_its_disk(words(shards), index),
            cwd=file.parent,
            env={**env, "JOB_COMPLETION_INDEX": str(index)},
        )
        for index in range(N_JOBS)
    ]
    assert [process.wait(timeout=1800) for process in started] == [0] * N_JOBS
    subprocess.run(
        words(merge), cwd=file.parent, env=env, check=True, stdout=subprocess.DEVNULL
    )


def test_a_budget_is_a_limit_for_all_shards_also_where_one_is_killed(
    tmp_path: Path,
) -> None:
    """Real processes and a real server, which counts what it gets."""
    # A shard has more questions than all may ask, so that none ends before the budget does.
    rows = [
        {"id": f"q{n}", "input": f"Question {n}?", "target": "1"} for n in range(400)
    ]
    (tmp_path / "asked.yaml").write_text(
        json.dumps({"task": "asked", "dataset": {"rows": rows}}), encoding="utf-8"
    )
    home = {"EVALWRIGHT_HOME": "shared"}
    with serving(latency=0.02) as server:

        def shard(number: int, budget: str) -> Any:
            model = ["--model", f"openai/{server.url}#m", "-M", "max_concurrency=4"]
            command = [
                "run",
                "asked.yaml",
                *model,
                "--name",
                "paid",
                "--quiet",
                "--budget",
                budget,
            ]
            return start_forked([*command, "--shard", f"{number}/4"], tmp_path, home)

        def ended(processes: list[Any]) -> list[int]:
            outs = [process.communicate(timeout=1800) for process in processes]
            for process, (out, err) in zip(processes, outs, strict=True):
                assert "Traceback" not in err, out + err
                if process.returncode == 1:
                    assert "was spent by all 4 shards together" in err
            return [process.returncode for process in processes]

        def requests() -> int:
            return sum(server.received.values())

        processes = [shard(number, "80 requests") for number in range(1, 5)]
        wait_until(lambda: requests() > 20, processes[1])
        processes[1].kill()
        # A shard that began early may have its 50 answers before the budget is spent.
        codes = ended(processes)
        assert codes.pop(1) == -9
        assert codes.count(1) >= 2 and set(codes) <= {0, 1}
        # What the killed one had set aside counts as spent, and is 80 / 16 and its like.
        assert 60 <= requests() <= 80
        codes = ended([shard(number, "80 requests") for number in range(1, 5)])
        assert codes.count(1) >= 3 and set(codes) <= {0, 1}
        assert requests() <= 80
        merged = typed("runs", "merge", "paid", folder=tmp_path)
        assert merged.code == 0, merged.text
        assert "Stopped early because the budget was spent" in merged.text
        partial = record(tmp_path / "runs/paid")
        assert (
            partial["samples"]["records"]
            == partial["stopping"]["tasks"][0]["asked"]
            < 400
        )
        assert (
            "not adjusted for ending early"
            in partial["tasks"][0]["metrics"][0]["method"]
        )
        info = typed("store", "info", "--json", folder=tmp_path, extra=home)
        missing = 400 - json.loads(info.out)["responses"]
        sent = requests()
        assert ended([shard(number, "1000 requests") for number in range(1, 5)]) == [
            0,
            0,
            0,
            0,
        ]
        assert requests() == sent + missing, (
            "what was lost at the kill is sent again, and nothing else"
        )
    merged = typed("runs", "merge", "paid", folder=tmp_path)
    assert merged.code == 0, merged.text
    assert "Stopped early" not in merged.text
    assert record(tmp_path / "runs/paid")["samples"]["records"] == 400


def test_a_budget_of_shards_with_stores_of_their_own_is_refused(tmp_path: Path) -> None:
    command = [
        "run",
        "factual-choice",
        "--model",
        "demo/small",
        "--budget",
        "5 requests",
        "--shard",
        "1/2",
    ]
    done = typed(
        *command, folder=tmp_path, extra={"EVALWRIGHT_HOME": ".evalwright/shard-1-of-2"}
    )
    assert done.code == 2
    assert "limit for all shards together" in done.err
    assert "EVALWRIGHT_STORE" in done.err
