"""Builds the wheel and the source distribution, checks them, and uses the installed wheel as a
newcomer does.

    python scripts/check_wheel.py [FOLDER]

The tools that build are installed into an environment of their own, the wheel into another one
outside the source tree; `init`, a run of the demonstration models, a page and the Python call must
work there. FOLDER (default: a temporary one) keeps what was built.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "evalwright"
CONSTRAINTS = ROOT / "requirements" / "constraints.txt"
COMMANDS = (
    "evalwright --version",
    "evalwright tasks list",
    "evalwright completion bash",
    "evalwright init --task questions.csv --model demo/small --model demo/large",
    "evalwright run --config suite.yaml --quiet",
    (
        "evalwright run factual-choice --model demo/small --model demo/large --limit 5"
        " --name first --quiet"
    ),
    "evalwright compare first-demo-large first-demo-small",
    (
        "evalwright leaderboard first-demo-large first-demo-small --html board.html"
        " --pages pages"
    ),
    "hhem-leaderboard --help",
)


def run(*command: str | Path, folder: Path) -> str:
    """Run a command without anything of ours in its environment; its output.

    Ends the program where it fails.
    """
    environment_kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("EVALWRIGHT_", "PYTHON"))
    }
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment_kept,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(
            f"{' '.join(map(str, command))}\nexit"
            f" {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
    return done.stdout


def environment(folder: Path, *packages: str | Path) -> Path:
    """Create an environment with these packages; returns the folder of its commands."""
    venv.create(folder, with_pip=True)
    commands = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = (
        commands / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-compile",
    )
    run(*pip, "--constraint", CONSTRAINTS, *packages, folder=folder)
    return commands


def check_files(wheel: Path, source: Path) -> None:
    """Raise SystemExit where the wheel lacks a file of the package, or has one that it must not."""
    tracked = (
        run("git", "ls-files", "src/evalwright", folder=ROOT).splitlines()
        if (ROOT / ".git").exists()
        else []
    )
    expected = {
        name.removeprefix("src/") for name in tracked if (ROOT / name).is_file()
    } or {
        path.relative_to(ROOT / "src").as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(source) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    missing = sorted(expected - names)
    if missing:
        raise SystemExit(
            f"{wheel.name} lacks {len(missing)} files of the package:"
            f" {', '.join(missing[:10])}"
        )
    if lost := sorted(name for name in expected if f"src/{name}" not in sources):
        raise SystemExit(f"{source.name} lacks {', '.join(lost[:10])}")
    unexpected = [
        name for name in names if name not in expected and ".dist-info/" not in name
    ]
    if unexpected:
        raise SystemExit(
            f"{wheel.name} has what is not of the package:"
            f" {', '.join(sorted(unexpected)[:10])}"
        )


def try_wheel(wheel: Path, folder: Path) -> None:
    """Install the wheel and use it as a newcomer does, in an empty folder outside the source."""
    commands = environment(folder / "installed", wheel)
    place = folder / "place"
    place.mkdir()
    for line in COMMANDS:
        name, *arguments = line.split()
        run(commands / name, *arguments, folder=place)
    script = (
        "import evalwright; from evalwright import evaluate;"
        " print(evalwright.__file__); evaluate('factual-choice', 'demo/small', limit=2)"
    )
    where = run(commands / "python", "-c", script, folder=place).splitlines()[0]
    if not Path(where).is_relative_to(folder / "installed"):
        raise SystemExit(
            f"The package was imported from {where}, not from where the wheel was"
            " installed."
        )
    for path in (
        "suite.yaml",
        ".github/workflows/evalwright.yml",
        "board.html",
        "pages",
    ):
        if not (place / path).exists():
            raise SystemExit(f"The installed package did not write {path}.")


def main() -> None:
    """Build, check, install and try the wheel."""
    with tempfile.TemporaryDirectory(prefix="evalwright-wheel-") as temporary:
        folder = Path(temporary)
        built = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else folder / "built"
        tools = environment(folder / "tools", "build", "twine")
        run(tools / "python", "-m", "build", "--outdir", built, ROOT, folder=folder)
        (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
        run(
            tools / "python",
            "-m",
            "twine",
            "check",
            "--strict",
            wheel,
            source,
            folder=folder,
        )
        check_files(wheel, source)
        try_wheel(wheel, folder)
        print(f"{wheel.name} and {source.name}: built, checked, installed and used.")


if __name__ == "__main__":
    main()
