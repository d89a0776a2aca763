"""`python -m benchmarks`: every benchmark is listed, shows its options without loading anything
heavy, and those that can be small run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from catalogue import (  # noqa: E402
    install_command,
    missing_modules,
    read_catalogue,
)

CATALOGUE = read_catalogue()
HEAVY = ["torch", "transformers", "ray", "onnxruntime", "lm_eval", "inspect_ai"]
# Started by benchmarks in processes of their own.
PARTS = ("_model", "_server", "_worker", "remote_bare", "theirs", "__main__")
QUICKEST = ("drift", "store")
"""Those that run here in a second or two; the others are marked slow."""
SHOW_HELP = f"""
import sys
from benchmarks.__main__ import main
for name in sys.argv[1:]:
    print("#", name)
    code = main([name, "--help"])
    loaded = sys.modules.keys() & {HEAVY}
    assert code == 0 and not loaded, (name, code, loaded)
"""


def python(
    *arguments: str, folder: Path = ROOT, code: int = 0
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    environment.pop("EVALWRIGHT_STORE", None)
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def is_program(path: Path) -> bool:
    return '\nif __name__ == "__main__":' in path.read_text(encoding="utf-8")


def test_every_program_is_listed_with_its_subject() -> None:
    paths = [*BENCHMARKS.glob("*.py"), *(BENCHMARKS / "parity").glob("*.py")]
    programs = {
        path for path in paths if is_program(path) and not path.stem.endswith(PARTS)
    }
    assert programs == {benchmark.path for benchmark in CATALOGUE.values()}
    lines = python("-m", "benchmarks").stdout.splitlines()
    for benchmark in CATALOGUE.values():
        (line,) = [line for line in lines if line.startswith(f"| {benchmark.name} |")]
        assert len(benchmark.subject.split()) > 4
        assert f"| {benchmark.subject} | {benchmark.minutes} |" in line
        for needed in (*benchmark.peers, benchmark.needs):
            assert needed in line


def test_peers_are_those_that_are_installed() -> None:
    from peers import PEERS

    for benchmark in CATALOGUE.values():
        assert set(benchmark.peers) <= PEERS.keys(), benchmark.name


def test_help_loads_nothing_heavy() -> None:
    printed = python("-c", SHOW_HELP, *CATALOGUE).stdout
    for shown in printed.split("# ")[1:]:
        name = shown.split("\n", 1)[0]
        assert f"usage: python -m benchmarks {name}" in shown


def test_the_pages_name_benchmarks_that_there_are() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    named = set(re.findall(r"python -m benchmarks ([a-z_]+)", text))
    assert len(named) > 20
    assert named <= CATALOGUE.keys()


def test_only_the_catalogue_says_how_long_a_benchmark_takes() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        reasons = re.findall(
            r"<!-- not run: (.*) -->\n```bash\npython -m benchmarks", text
        )
        timed = [reason for reason in reasons if re.search("minute|hour", reason)]
        assert not timed, page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["covrage"], "There is no benchmark 'covrage'. Did you mean coverage?"),
        (["drift", "--json"], "--json needs a file"),
        (["drift", "--json", "no/folder.json"], "its folder does not exist"),
        (["parity_models"], "'parity_models' needs: --data FOLDER"),
    ],
)
def test_wrong_usage_is_a_sentence(words: list[str], message: str) -> None:
    done = python("-m", "benchmarks", *words, code=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_missing_comes_with_the_command_that_installs_it() -> None:
    assert missing_modules(["json", "not_here"]) == ["not_here"]
    assert install_command(["torch", "click"]) == "pip install -e '.' -e '.[hf]'"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICKEST else [pytest.mark.slow])
        for name, benchmark in CATALOGUE.items()
        if benchmark.quick is not None
    ],
)
def test_it_runs_at_its_smallest_size(name: str, tmp_path: Path) -> None:
    """Numbers of so few trials may miss their aims, which is exit code 1."""
    file = tmp_path / "tables.json"
    options = [*(CATALOGUE[name].quick or ()), "--json", str(file)]
    command = [sys.executable, "-m", "benchmarks", name, *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    record = json.loads(file.read_text(encoding="utf-8"))
    assert record["exit_code"] == done.returncode
    assert record["tables"][0]
    assert record["machine"]["cores"] > 0
    for table in record["tables"]:
        first, *others = table
        assert all(row.keys() == first.keys() for row in others)
        assert "| " + " | ".join(first) + " |" in done.stdout
