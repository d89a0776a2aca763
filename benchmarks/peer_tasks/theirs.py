"""The same jobs as `ours.yaml`, as inspect_ai's documentation writes such tasks."""

from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.agent import react
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.scorer import Score, accuracy, scorer, stderr
from inspect_ai.tool import bash, python
from inspect_ai.util import sandbox

FOLDER = Path(__file__).parent


def job(row):
    files = {".": str(FOLDER / "_tasks" / row["id"] / "files")}
    return Sample(
        id=row["id"], input=row["instruction"], files=files, setup=row["setup"] or None
    )


@scorer(metrics=[accuracy(), stderr()])
def hidden_check():
    async def score(state, target):
        tests = FOLDER / "_tasks" / state.sample_id / "tests"
        for path in [*tests.iterdir(), FOLDER / "_checks" / "checks.py"]:
            await sandbox().write_file(f".checks/{path.name}", path.read_text())
        command = ["python3", "-B", ".checks/check.py"]
        checked = await sandbox().exec(command, timeout=60)
        return Score(value=float(checked.success), explanation=checked.stderr)

    return score


@task
def terminal_jobs():
    return Task(
        dataset=json_dataset(str(FOLDER / "rows.jsonl"), job),
        solver=react(tools=[bash(timeout=60), python(timeout=60)]),
        scorer=hidden_check(),
        sandbox="local",
        message_limit=100,
    )
