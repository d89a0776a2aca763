"""Reads a Dockerfile into steps, and says which of them a sandbox without network can do."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

BASES = (
    "ubuntu",
    "debian",
    "python",
    "buildpack-deps",
    "ghcr.io/laude-institute/t-bench/ubuntu-24-04",
    "ghcr.io/laude-institute/t-bench/python-3-13",
    "public.ecr.aws/docker/library/python",
    "public.ecr.aws/docker/library/ubuntu",
    "public.ecr.aws/docker/library/debian",
)
"""Images of which a task may use nothing but Python, a shell and the usual programs."""
HARNESS_PACKAGES = frozenset(
    [
        "asciinema",
        "ca-certificates",
        "curl",
        "locales",
        "procps",
        "sudo",
        "tini",
        "tmux",
        "tzdata",
        "vim",
        "wget",
        "nano",
        "less",
    ]
)
"""Packages that the framework itself installs, or that no test needs."""
TEST_PACKAGES = frozenset(
    {"pytest", "pip", "setuptools", "wheel", "uv", "pytest-json-ctrf"}
)
"""Python packages that are there for the tests."""
_PACKAGE_MANAGERS = frozenset({"apt", "apt-get"})
_OTHER_MANAGERS = frozenset(
    [
        "apk",
        "yum",
        "dnf",
        "snap",
        "brew",
        "conda",
        "mamba",
        "npm",
        "npx",
        "yarn",
        "pnpm",
        "gem",
        "cargo",
        "rustup",
        "mvn",
        "gradle",
        "./gradlew",
        "add-apt-repository",
        "luarocks",
        "opam",
        "stack",
        "cabal",
        "nvm",
    ]
)
_FETCHING = frozenset({"curl", "wget", "ftp", "scp", "rsync"})
_SILENT = re.compile(r"rm\s+-[rf]+\s+/var/lib/apt/lists\S*")
_COMPLEX = re.compile(
    r"(^|[\s;&|(])(if|for|while|until|case|function)\s|<<|\$\(|`|\|\|"
)
_ADDRESS = re.compile(r"\b(?:https?|ftp|git)://|git@")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))")
_ESCAPED_NEWLINE = re.compile(r"\\[ \t]*\n")
_HEREDOC = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?")


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction of a Dockerfile.

    Args:
        word: the instruction, in capitals.
        text: what follows it.
        line: its line.
    """

    word: str
    text: str
    line: int


@dataclass(slots=True)
class Build:
    """What a Dockerfile comes to where no image is built.

    Attributes:
        folder: the working folder at its end.
        environment: variables of every command.
        copies: (sources, place, working folder) of each COPY, in their order.
        scripts: (working folder, script) of what is run, in their order.
        refusals: why a step cannot be done, each with its line.
    """

    folder: str = "/"
    environment: dict[str, str] = field(default_factory=dict)
    copies: list[tuple[list[str], str, str]] = field(default_factory=list)
    scripts: list[tuple[str, str]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)


def read_steps(text: str) -> list[Step]:
    """Split a Dockerfile into its instructions."""
    lines = text.splitlines()
    steps: list[Step] = []
    index = 0
    while index < len(lines):
        first = index
        line = lines[index].strip()
        index += 1
        if not line or line.startswith("#"):
            continue
        while line.endswith("\\") and index < len(lines):
            following = lines[index].strip()
            index += 1
            if following.startswith("#"):
                continue
            line = f"{line[:-1].rstrip()} {following}"
        word, _, rest = line.partition(" ")
        word = word.upper()
        marker = _HEREDOC.search(rest) if word in ("RUN", "COPY") else None
        if marker is not None:
            body: list[str] = []
            while index < len(lines) and lines[index].strip() != marker[1]:
                body.append(lines[index])
                index += 1
            index += 1
            rest = "\n".join([rest, *body, marker[1]])
        steps.append(Step(word, rest.strip(), first + 1))
    return steps


def plan_build(
    text: str, installed: Collection[str], modules: Collection[str]
) -> Build:
    """Say what a Dockerfile's steps come to without building an image.

    Args:
        text: the Dockerfile.
        installed: packages of the distribution that this machine has.
        modules: Python packages that programs in the sandbox can import.
    """
    build = Build()
    arguments: dict[str, str] = {}
    n_stages = 0
    for step in read_steps(text):
        known = {**arguments, **build.environment}
        if step.word == "FROM":
            n_stages += 1
            _plan_base(build, step, known)
        elif step.word == "WORKDIR":
            build.folder = _joined(build.folder, _filled(_unquoted(step.text), known))
            build.scripts.append(("/", f"mkdir -p {shlex.quote(build.folder)}"))
        elif step.word == "ENV":
            build.environment |= {
                name: value
                for name, value in _assignments(step.text, known).items()
                if name != "PATH"  # of programs that are elsewhere here
            }
        elif step.word == "ARG":
            arguments |= _assignments(step.text, known)
        elif step.word in ("COPY", "ADD"):
            _plan_copy(build, step, known)
        elif step.word == "RUN":
            _plan_run(build, step, installed, modules)
    if n_stages > 1:
        build.refusals.append(f"it builds {n_stages} images, one for the other")
    return build


def _plan_base(build: Build, step: Step, known: Mapping[str, str]) -> None:
    words = [word for word in step.text.split() if not word.startswith("--")]
    image = _filled(words[0], known) if words else ""
    name = image.partition("@")[0]
    if ":" in name.rpartition("/")[2]:
        name = name.rpartition(":")[0]
    if name not in BASES:
        build.refusals.append(
            f"line {step.line}: the image '{image}' may have programs that are not here"
        )


def _plan_copy(build: Build, step: Step, known: Mapping[str, str]) -> None:
    text = step.text
    if "<<" in text:
        build.refusals.append(f"line {step.line}: it copies a text of the Dockerfile")
        return
    words = _words(text)
    flags = [word for word in words if word.startswith("--")]
    words = [_filled(word, known) for word in words if not word.startswith("--")]
    if any(flag.startswith("--from") for flag in flags):
        build.refusals.append(f"line {step.line}: it copies from another image")
        return
    if len(words) < 2:
        build.refusals.append(f"line {step.line}: '{text[:60]}' copies nothing")
        return
    if any(_ADDRESS.search(word) for word in words):
        build.refusals.append(f"line {step.line}: '{words[0][:80]}' needs the network")
        return
    build.copies.append((words[:-1], words[-1], build.folder))


def _words(text: str) -> list[str]:
    if text.lstrip().startswith("["):
        try:
            listed = json.loads(text)
        except ValueError:
            listed = None
        if isinstance(listed, list):
            return [str(word) for word in listed]
    try:
        return shlex.split(text.replace("\n", " "))
    except ValueError:
        return text.split()


def _plan_run(
    build: Build, step: Step, installed: Collection[str], modules: Collection[str]
) -> None:
    script = step.text
    while script.startswith("--"):
        script = script.partition(" ")[2].lstrip()
    if script.startswith("["):
        script = shlex.join(_words(script))
    marker = _HEREDOC.match(script)
    if marker is not None:
        script = script.split("\n", 1)[1].rpartition("\n")[0]
    kept, reasons = doable(script, installed, modules)
    build.refusals += [f"line {step.line}: {reason}" for reason in reasons]
    if kept.strip():
        build.scripts.append((build.folder, kept))


def doable(
    script: str, installed: Collection[str], modules: Collection[str]
) -> tuple[str, list[str]]:
    """Say what of a script can be run without network and packages of others.

    Returns:
        The script without what need not be done, and why parts cannot be done.
    """
    script = _ESCAPED_NEWLINE.sub(" ", script)
    if _COMPLEX.search(script):
        return script, _reasons_of_text(script)
    kept: list[str] = []
    reasons: list[str] = []
    for command in _commands(script):
        verdict = _verdict(command, installed, modules)
        if verdict == "":
            kept.append(command)
        elif verdict is not None:
            reasons.append(verdict)
    return "\n".join(kept), reasons


def _commands(script: str) -> list[str]:
    """Split a script without control structures into its simple commands."""
    lexer = shlex.shlex(script, posix=False, punctuation_chars=";&\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands: list[list[str]] = [[]]
    try:
        for word in lexer:
            if set(word) <= set(";&\n"):
                commands.append([])
            else:
                commands[-1].append(word)
    except ValueError:
        return [script]
    return [" ".join(words) for words in commands if words]


def _verdict(
    command: str, installed: Collection[str], modules: Collection[str]
) -> str | None:
    """Return "" for a command that is run, None for one that need not be, or why it cannot be."""
    if _SILENT.fullmatch(command.strip()):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    while words and (
        "=" in words[0].split("/")[0] or words[0] in ("sudo", "exec", "-E")
    ):
        words = words[1:]
    if not words:
        return ""
    program = words[0].rpartition("/")[2]
    if program in _PACKAGE_MANAGERS:
        return _packages_verdict(words, installed)
    pip = _pip_arguments(words)
    if pip is not None:
        return _modules_verdict(pip, modules)
    if program in _OTHER_MANAGERS or words[0] in _OTHER_MANAGERS:
        return f"'{' '.join(words[:3])[:80]}' needs the network"
    if program == "ln" and words[-1].startswith("/usr/"):
        return None  # a second name of a program; what is in /usr cannot be changed
    if program in ("go", "uv", "git") and words[1:2] and words[1] in _FETCHING_WORDS:
        return f"'{' '.join(words[:3])[:80]}' needs the network"
    if program in _FETCHING or _ADDRESS.search(command):
        return f"'{' '.join(words[:3])[:80]}' needs the network"
    return ""


_FETCHING_WORDS = frozenset(
    ["install", "get", "mod", "clone", "sync", "add", "init", "tool", "python", "fetch"]
)


def _packages_verdict(words: Sequence[str], installed: Collection[str]) -> str | None:
    arguments = [word for word in words[1:] if not word.startswith("-")]
    if not arguments or arguments[0] != "install":
        return None
    absent = [
        package
        for package in arguments[1:]
        if package.partition("=")[0] not in installed
        and package.partition("=")[0] not in HARNESS_PACKAGES
    ]
    return (
        f"the packages {', '.join(absent)} are not installed here" if absent else None
    )


def _pip_arguments(words: Sequence[str]) -> list[str] | None:
    program = words[0].rpartition("/")[2]
    rest = list(words[1:])
    if program == "uv" and rest[:1] == ["pip"]:
        program, rest = "pip", rest[1:]
    if program.startswith("python") and rest[:2] == ["-m", "pip"]:
        program, rest = "pip", rest[2:]
    if not re.fullmatch(r"pip[\d.]*", program):
        return None
    return rest


def _modules_verdict(arguments: Sequence[str], modules: Collection[str]) -> str | None:
    if not arguments or arguments[0] != "install":
        return None
    names: list[str] = []
    skip = False
    for word in arguments[1:]:
        if skip:
            skip = False
        elif word in ("-r", "--requirement", "-c", "-e", "-f", "--find-links"):
            return f"'pip install {word} ...' needs packages that are not here"
        elif word in ("-i", "--index-url", "--extra-index-url", "--target", "-t"):
            skip = True
        elif not word.startswith("-"):
            names.append(re.split(r"[=<>~!\[; ]", word)[0].lower().replace("_", "-"))
    absent = [
        name for name in names if name not in modules and name not in TEST_PACKAGES
    ]
    if absent:
        return f"the Python packages {', '.join(absent)} are not here"
    return None


def _reasons_of_text(script: str) -> list[str]:
    found = _ADDRESS.search(script) or re.search(
        r"\b(?:apt-get|apt|pip3?|npm|conda|cargo)\s+(?:-\S+\s+)*install\b", script
    )
    if not found:
        return []
    line = script[: found.end()].rpartition("\n")[2].strip()
    return [f"'{line[:80]}' needs the network"]


def _assignments(text: str, known: Mapping[str, str]) -> dict[str, str]:
    words = _words(text)
    if words and "=" not in words[0]:
        # The old form: one name, and the rest of the line.
        if len(words) == 1:
            return {}
        return {words[0]: _filled(text.split(None, 1)[1].strip(), known)}
    pairs = [word.partition("=") for word in words if "=" in word]
    return {name: _filled(value, known) for name, _, value in pairs}


def _filled(text: str, known: Mapping[str, str]) -> str:
    return _VARIABLE.sub(
        lambda match: known.get(match[1] or match[3], match[2] or ""), text
    )


def _unquoted(text: str) -> str:
    words = _words(text)
    return words[0] if words else "/"


def _joined(folder: str, path: str) -> str:
    import posixpath

    return posixpath.normpath(posixpath.join(folder, path))
