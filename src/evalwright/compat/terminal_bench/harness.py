"""What the tests of a task find in their sandbox in place of a network.

The scripts of the format fetch a test runner before they run it. Here pytest is that of this
Python, and the programs that would fetch it (`apt-get`, `curl`, `uv`, `pip`, ...) are stand-ins:
they succeed where what is asked for is there, and note what is not. A note makes the sample one
without a score, because it says nothing about the model.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from evalwright.extend import ConfigurationError, PlannedFile

PLACE = "/opt/terminal-bench"
"""The folder in the sandbox; the scorer clears it before it puts this in."""
_RUNNER_MODULES = (
    "pytest",
    "_pytest",
    "pluggy",
    "py",
    "iniconfig",
    "packaging",
    "pygments",
)
_RUNNER_PACKAGES = ("pytest", "pluggy", "iniconfig", "packaging")
"""Packages whose versions the runner asks for."""
_STAND_INS = [
    "apt",
    "apt-get",
    "curl",
    "wget",
    "uv",
    "uvx",
    "pip",
    "pip3",
    "pytest",
    "git",
    "npm",
    "npx",
    "yarn",
    "pnpm",
    "cargo",
    "go",
    "conda",
    "mvn",
]
_DISTRIBUTION = Path("/var/lib/dpkg/info")

STAND_IN = '''#!/usr/bin/env python3
"""Stands in for a program that fetches something, where there is no network."""
import importlib.util
import os
import re
import subprocess
import sys

PLACE = os.environ.get("TERMINAL_BENCH_PLACE", "/opt/terminal-bench")
TEST_PACKAGES = {"pytest", "pytest-json-ctrf", "pip", "setuptools", "wheel", "uv"}
program = os.path.basename(sys.argv[0])
arguments = sys.argv[1:]


def unmet(what):
    with open(os.path.join(PLACE, "unmet"), "a") as notes:
        notes.write(what[:200].replace("\\n", " ") + "\\n")
    print(f"{program}: {what} needs the network, and there is none.", file=sys.stderr)
    sys.exit(1)


def real(name, given):
    folders = [f for f in os.environ.get("PATH", "").split(":") if f and not f.startswith(PLACE)]
    for folder in folders:
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            os.execv(path, [name, *given])
    print(f"{name}: command not found", file=sys.stderr)
    sys.exit(127)


def check_modules(names):
    for name in names:
        bare = re.split(r"[=<>~!\\[; ]", name)[0].lower().replace("_", "-")
        if bare in TEST_PACKAGES or bare in ("", "."):
            continue
        if importlib.util.find_spec(bare.replace("-", "_")) is None:
            unmet("the Python package " + bare)


def named(given, valued=()):
    names, skip = [], False
    for word in given:
        if skip:
            skip = False
        elif word in valued:
            skip = True
        elif not word.startswith("-"):
            names.append(word)
    return names


def run_pytest(given):
    kept, skip = [], False
    for word in given:
        if skip:
            skip = False
        elif word == "--ctrf":
            skip = True
        elif not word.startswith("--ctrf="):
            kept.append(word)
    os.execvp("python3", ["python3", "-P", "-m", "pytest", *kept])


def run(given):
    if not given:
        sys.exit(0)
    if given[0] in ("pytest", "py.test"):
        run_pytest(given[1:])
    if given[0].startswith("python") and given[1:3] == ["-m", "pytest"]:
        run_pytest(given[3:])
    os.execvp(given[0], given)


if program in ("apt", "apt-get"):
    words = named(arguments, ("-o", "-t"))
    if words[:1] == ["install"]:
        with open(os.path.join(PLACE, "packages")) as listed:
            known = set(listed.read().split())
        for package in words[1:]:
            name = package.partition("=")[0]
            has = name in known or subprocess.run(
                ["sh", "-c", 'dpkg -s "$1" 2>/dev/null', "sh", name], capture_output=True
            ).returncode == 0
            if not has:
                unmet("the package " + name)
elif program in ("curl", "wget"):
    text = " ".join(arguments)
    if "astral.sh/uv" in text:
        sys.exit(0)
    if re.search(r"//(localhost|127[.]|0[.]0[.]0[.]0|[[]::1)|(^| )localhost|(^| )127[.]", text):
        real(program, arguments)
    unmet(program + " " + text)
elif program in ("pip", "pip3"):
    if arguments[:1] != ["install"]:
        sys.exit(0)
    if any(word in ("-r", "--requirement", "-e") for word in arguments):
        unmet("pip " + " ".join(arguments))
    check_modules(named(arguments[1:], ("-i", "--index-url", "-f", "--find-links", "-t")))
elif program == "uvx":
    options = {"-p", "--python", "-w", "--with", "--from"}
    while arguments and arguments[0].startswith("-"):
        if arguments[0] in ("-w", "--with", "--from"):
            check_modules(arguments[1:2])
        arguments = arguments[2:] if arguments[0] in options else arguments[1:]
    arguments = [word.partition("==")[0] for word in arguments[:1]] + arguments[1:]
    run(arguments)
elif program == "uv":
    verb = arguments[0] if arguments else ""
    if verb == "pip":
        check_modules(named(arguments[2:], ("-i", "--index-url", "-p", "--python")))
    elif verb == "add":
        if any(word in ("-r", "--requirements") for word in arguments):
            unmet("uv " + " ".join(arguments))
        check_modules(named(arguments[1:], ("-p", "--python")))
    elif verb == "venv":
        names = named(arguments[1:], ("-p", "--python"))
        folder = os.path.join(names[0] if names else ".venv", "bin")
        os.makedirs(folder, exist_ok=True)
        open(os.path.join(folder, "activate"), "a").close()
    elif verb == "run":
        arguments = arguments[1:]
        while arguments and arguments[0].startswith("-"):
            option = arguments[0]
            valued = option in ("--with", "-w", "-p", "--python", "--project", "--directory")
            if option in ("--with", "-w"):
                check_modules(arguments[1:2])
            arguments = arguments[2:] if valued else arguments[1:]
        run(arguments)
elif program == "pytest":
    run_pytest(arguments)
elif program == "git":
    if re.search(r"(https?|git|ssh)://|git@", " ".join(arguments)):
        unmet("git " + " ".join(arguments[:3]))
    real("git", arguments)
elif program == "npx":
    real(program, arguments)
else:
    if arguments[:1] and arguments[0] in ("install", "i", "ci", "add", "get", "fetch"):
        unmet(program + " " + " ".join(arguments[:3]))
    real(program, arguments)
'''

READ_RESULTS = '''"""Reads what the tests said, and prints 1 if all passed, else 0."""
import json
import os
import re
import sys

parser, output_file, exit_code = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(output_file, "rb") as stream:
    output = stream.read().decode("utf-8", "replace")


def all_passed(text):
    parts = re.split(r"=+[ \\t]*short test summary info[ \\t]*=+", text, maxsplit=1, flags=re.I)
    if len(parts) < 2:
        return False
    passed, failed = set(), set()
    for line in parts[1].splitlines():
        if line.startswith("FAILED") and " - " in line:
            line = line.rpartition(" - ")[0]
        words = line.split(maxsplit=1)
        if len(words) < 2 or not words[1].split("::", 1)[-1].strip():
            continue
        status = words[0].strip().strip(":")
        if status in ("PASSED", "XFAIL", "SKIPPED"):
            passed.add(words[1])
        elif status in ("FAILED", "XPASS", "ERROR"):
            failed.add(words[1])
    return bool(passed) and not failed


def marked(text):
    begin, end = "SWEBench results starts here", "SWEBench results ends here"
    if begin not in text or end not in text:
        return False
    return text.split(begin, 1)[-1].rsplit(end, 1)[0].strip() == "PASSED"


def reward():
    folder = "/logs/verifier"
    try:
        with open(os.path.join(folder, "reward.txt")) as stream:
            return float(stream.read().strip())
    except (OSError, ValueError):
        pass
    try:
        with open(os.path.join(folder, "reward.json")) as stream:
            rewards = json.load(stream)
        if isinstance(rewards, dict):
            rewards = rewards.get("reward", next(iter(rewards.values())))
        return float(rewards)
    except (OSError, ValueError, TypeError, StopIteration):
        return float(exit_code == 0)


if parser == "reward":
    print(f"{reward():g}")
elif parser == "swebench":
    print(int(marked(output)))
else:
    print(int(all_passed(output)))
'''

RUN = """
unset PYTHONSAFEPATH PYTHONDONTWRITEBYTECODE
export TEST_DIR=/tests TERMINAL_BENCH_PLACE={place}
export PATH={place}/bin:$PATH PYTHONPATH={place}/site
{exports}
mkdir -p "$HOME/.local/bin" "$HOME/.cargo/bin" 2>/dev/null
: > "$HOME/.local/bin/env"; : > "$HOME/.cargo/env"
rm -rf /logs/verifier {place}/unmet; mkdir -p /logs/verifier /logs/agent
chmod +x {place}/bin/* 2>/dev/null
mkdir -p {place}/site && python3 -I -m tarfile -e {place}/site.tar {place}/site || exit 0
cd {folder} 2>/dev/null || cd /
bash {script} > {place}/output 2>&1 < /dev/null
code=$?
cat {place}/output
if [ -s {place}/unmet ]; then
  echo "The tests cannot be run without a network: $(sort -u {place}/unmet | tr '\\n' ';')"
  exit 0
fi
python3 -I -S {place}/read_results.py {parser} {place}/output "$code"
"""
"""Runs the tests. Its last line is the score; without one there is none."""


@lru_cache(maxsize=1)
def installed_packages() -> frozenset[str]:
    """Return the packages of the distribution that this machine has, of which a jail has the files.

    None where the distribution keeps no such list.
    """
    try:
        names = {path.stem.partition(":")[0] for path in _DISTRIBUTION.glob("*.list")}
    except OSError:
        names = set()
    return frozenset(names)


@lru_cache(maxsize=1)
def harness_files() -> tuple[PlannedFile, ...]:
    """Return what is put into `PLACE` before the tests run, with relative paths.

    Raises:
        ConfigurationError: this Python has no pytest.
    """
    from evalwright.compat.terminal_bench.dockerfiles import HARNESS_PACKAGES

    packages = "\n".join(sorted(installed_packages() | HARNESS_PACKAGES))
    stand_in = STAND_IN.encode()
    return (
        PlannedFile("read_results.py", READ_RESULTS.encode()),
        PlannedFile("packages", packages.encode()),
        *(PlannedFile(f"bin/{name}", stand_in, True) for name in _STAND_INS),
        PlannedFile("site.tar", _archive(_runner_files())),
    )


def _archive(files: Mapping[str, bytes]) -> bytes:
    """Pack files into one, because a sandbox is faster with one."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def _runner_files() -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for module in _RUNNER_MODULES:
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            if module in ("py", "pygments"):
                continue
            raise ConfigurationError(
                "The tests of Terminal-Bench are run by pytest, which is not installed in this"
                " Python: pip install pytest"
            )
        origin = Path(spec.origin)
        folder = origin.parent
        if origin.name != "__init__.py":
            files[origin.name] = origin.read_bytes()
            continue
        for path in sorted(folder.rglob("*.py")):
            files[f"{module}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
    for package in _RUNNER_PACKAGES:
        name = f"{package}-{version(package)}.dist-info/METADATA"
        text = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version(package)}\n"
        files[name] = text.encode()
    return files
