"""Reads a folder of a task, in the first format of Terminal-Bench or in Harbor's.

First format: `task.yaml`, `Dockerfile`, `docker-compose.yaml`, `run-tests.sh`, `tests/`, and
`solution.sh` or `solution.yaml`. Harbor: `task.toml`, `instruction.md`, `environment/Dockerfile`,
`tests/test.sh` and `solution/solve.sh`.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from evalwright.extend import TaskError, parse_yaml, regular_file, reraise_as

FIRST_FORMAT = "terminal-bench"
HARBOR = "harbor"
TASK_FILES = {"task.yaml": FIRST_FORMAT, "task.toml": HARBOR}
PARSERS = ("pytest", "swebench")
"""What the first format calls the ways to read the output of tests, as far as they are known."""
MAX_FILE_BYTES = 64 << 20
MAX_TREE_BYTES = 256 << 20
MAX_DEPTH = 3
AGENT_SECONDS = 360.0
TEST_SECONDS = 60.0
HARBOR_AGENT_SECONDS = 600.0
HARBOR_TEST_SECONDS = 600.0
MEMORY_MB = 2_048
_SOLUTION_FOLDER = "/solution"


@dataclass(frozen=True, slots=True)
class TerminalTask:
    """A task as its folder says it.

    Args:
        name: the folder's name.
        folder: the folder.
        format: which of the formats it has.
        instruction: what the model is asked to do.
        parser: how the output of the tests is read; "reward" in Harbor's format.
        context: the folder with the Dockerfile, from which it copies.
        agent_seconds: how long the model may act.
        test_seconds: how long the tests may take.
        memory_mb: memory of the sandbox, in MiB.
        network: whether the task says that it may use the network.
        environment: variables that the tests get.
        metadata: what the record has of it.
    """

    name: str
    folder: Path
    format: str
    instruction: str
    parser: str
    context: Path
    agent_seconds: float
    test_seconds: float
    memory_mb: int = MEMORY_MB
    network: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dockerfile(self) -> Path:
        """The Dockerfile, which need not exist."""
        return self.context / "Dockerfile"

    @property
    def test_script(self) -> Path:
        """The script that runs the tests."""
        if self.format == HARBOR:
            return self.folder / "tests" / "test.sh"
        return self.folder / "run-tests.sh"

    @property
    def solution(self) -> str:
        """The reference solution as one bash script; "" if there is none."""
        if self.format == HARBOR:
            return _harbor_solution(self.folder / "solution")
        script = self.folder / "solution.sh"
        if script.is_file():
            return read_text(script)
        listed = self.folder / "solution.yaml"
        return _listed_commands(listed) if listed.is_file() else ""

    @property
    def digest(self) -> str:
        """A digest of all that decides scores: the script and files of the tests."""
        state = hashlib.sha256(
            json.dumps(
                [self.parser, self.test_seconds, dict(self.environment)]
            ).encode()
        )
        paths = [self.test_script, *tree_of(self.folder / "tests")]
        for path in dict.fromkeys(paths):
            content = read_bytes(path)
            name = path.relative_to(self.folder).as_posix()
            state.update(json.dumps([name, len(content)]).encode())
            state.update(content)
        return state.hexdigest()[:32]


def find_tasks(roots: Sequence[str | Path]) -> dict[str, list[Path]]:
    """Find the folders of tasks below others.

    Args:
        roots: folders with tasks, with folders of tasks, or a task's own.

    Returns:
        The tasks' folders by the name of the folder that has them, in the order of names. A
        root that is a task is under "".
    """
    tasks: dict[str, list[Path]] = {}
    for root in map(Path, roots):
        if is_task(root):
            tasks.setdefault("", []).append(root)
            continue
        for folder in _folders_of_tasks(root, MAX_DEPTH):
            name = (
                folder.name if folder == root else folder.relative_to(root).as_posix()
            )
            tasks.setdefault(name or folder.resolve().name, []).extend(
                sorted(path for path in folder.iterdir() if is_task(path))
            )
    return tasks


def _folders_of_tasks(root: Path, depth: int) -> Iterator[Path]:
    if not root.is_dir():
        return
    inner = sorted(path for path in root.iterdir() if path.is_dir())
    if any(map(is_task, inner)):
        yield root
    if depth > 0:
        for path in inner:
            is_hidden = path.name.startswith(".") or path.is_symlink()
            if not is_hidden and not is_task(path):
                yield from _folders_of_tasks(path, depth - 1)


def is_task(folder: Path) -> bool:
    """Return whether a folder has a task of one of the formats."""
    if not folder.is_dir():
        return False
    is_harbor = (folder / "task.toml").is_file() and (
        (folder / "instruction.md").is_file() or (folder / "steps").is_dir()
    )
    return is_harbor or (folder / "task.yaml").is_file()


def read_task(folder: Path) -> TerminalTask:
    """Read the task of a folder.

    Raises:
        TaskError: a file is missing, cannot be read, or says what cannot be done here.
    """
    is_harbor = (folder / "task.toml").is_file()
    task = _read_harbor(folder) if is_harbor else _read_first_format(folder)
    if not task.test_script.is_file():
        raise TaskError(
            f"{folder}: there is no {task.test_script.relative_to(folder)}, which would run the"
            " tests."
        )
    return task


def _read_first_format(folder: Path) -> TerminalTask:
    path = folder / "task.yaml"
    document = _parse(path)
    if not isinstance(document, Mapping):
        raise TaskError(f"{path}: a task is a mapping with an `instruction`.")
    parser = str(document.get("parser_name") or "pytest")
    if parser not in PARSERS:
        raise TaskError(
            f"{path}: the output of the tests is read by the parser '{parser}', and only"
            f" {' and '.join(PARSERS)} are known here."
        )
    services = _services(folder)
    if len(services) > 1:
        raise TaskError(
            f"{folder}: the task needs {len(services)} containers, {', '.join(services)}, and a"
            " sandbox is one."
        )
    return TerminalTask(
        name=folder.name,
        folder=folder,
        format=FIRST_FORMAT,
        instruction=_instruction(document, path),
        parser=parser,
        context=_context(folder, services),
        agent_seconds=_number(document, "max_agent_timeout_sec", AGENT_SECONDS, path),
        test_seconds=_number(document, "max_test_timeout_sec", TEST_SECONDS, path),
        metadata=_metadata(document),
    )


def _read_harbor(folder: Path) -> TerminalTask:
    path = folder / "task.toml"
    try:
        document = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise TaskError(f"{path}: it is no TOML: {error}.") from None
    if "steps" in document or (folder / "steps").is_dir():
        raise TaskError(
            f"{folder}: the task has several steps with tests of their own, and only tasks of one"
            " step are read."
        )
    environment = _table(document, "environment")
    verifier = _table(document, "verifier")
    image = environment.get("docker_image")
    return TerminalTask(
        name=folder.name,
        folder=folder,
        format=HARBOR,
        instruction=read_text(folder / "instruction.md").strip(),
        parser="reward",
        context=folder / "environment",
        agent_seconds=_number(
            _table(document, "agent"), "timeout_sec", HARBOR_AGENT_SECONDS, path
        ),
        test_seconds=_number(verifier, "timeout_sec", HARBOR_TEST_SECONDS, path),
        memory_mb=int(_number(environment, "memory_mb", MEMORY_MB, path)),
        network=bool(environment.get("allow_internet", False)),
        environment={
            str(name): str(text) for name, text in _table(verifier, "env").items()
        },
        metadata={
            **_metadata(_table(document, "metadata")),
            **({"image": str(image)} if image else {}),
        },
    )


def _instruction(document: Mapping[str, Any], path: Path) -> str:
    instruction = document.get("instruction")
    if isinstance(instruction, str) and instruction.strip():
        return instruction.strip()
    descriptions = document.get("descriptions")
    if isinstance(descriptions, list):
        texts = [
            str(part.get("description", ""))
            for part in descriptions
            if isinstance(part, Mapping)
        ]
        if any(text.strip() for text in texts):
            return "\n\n".join(text.strip() for text in texts)
    raise TaskError(f"{path}: there is no `instruction`.")


def _metadata(document: Mapping[str, Any]) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for key in ("difficulty", "category"):
        if isinstance(document.get(key), str):
            chosen[key] = document[key]
    if isinstance(document.get("tags"), list):
        chosen["tags"] = [str(tag) for tag in document["tags"]]
    return chosen


def _services(folder: Path) -> Mapping[str, Any]:
    path = folder / "docker-compose.yaml"
    if not path.is_file():
        return {}
    document = _parse(path)
    services = document.get("services") if isinstance(document, Mapping) else None
    return services if isinstance(services, Mapping) else {}


def _context(folder: Path, services: Mapping[str, Any]) -> Path:
    service = next(iter(services.values()), None)
    build = service.get("build") if isinstance(service, Mapping) else None
    context = build.get("context", ".") if isinstance(build, Mapping) else "."
    chosen = (folder / str(context)).resolve()
    if not chosen.is_relative_to(folder.resolve()):
        raise TaskError(
            f"{folder}: the image is built from '{context}', outside the task's folder."
        )
    return folder if chosen == folder.resolve() else chosen


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = document.get(key)
    return table if isinstance(table, Mapping) else {}


def _number(document: Mapping[str, Any], key: str, default: float, path: Path) -> float:
    number = document.get(key, default)
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    if not is_number or not 0 < number < 1e9:
        raise TaskError(f"{path}: `{key}` is a number above 0, not {number!r:.80}.")
    return float(number)


def _harbor_solution(folder: Path) -> str:
    script = folder / "solve.sh"
    if not script.is_file():
        return ""
    more = [path for path in tree_of(folder) if path != script]
    if not more:
        return read_text(script)
    lines = [f"mkdir -p {_SOLUTION_FOLDER}"]
    for path in [script, *more]:
        place = f"{_SOLUTION_FOLDER}/{path.relative_to(folder).as_posix()}"
        lines.append(_put_script(place, read_bytes(path)))
    lines.append(f"exec bash {_SOLUTION_FOLDER}/solve.sh")
    return "\n".join(lines)


def _put_script(place: str, content: bytes) -> str:
    from base64 import encodebytes
    from shlex import quote

    encoded = encodebytes(content).decode()
    return (
        f'mkdir -p "$(dirname {quote(place)})"\n'
        f"base64 -d > {quote(place)} <<'END_OF_FILE'\n{encoded}END_OF_FILE"
    )


def _listed_commands(path: Path) -> str:
    document = _parse(path)
    commands = document if isinstance(document, list) else []
    lines = [
        str(command.get("command", ""))
        for command in commands
        if isinstance(command, Mapping)
    ]
    return "\n".join(lines)


def tree_of(folder: Path) -> list[Path]:
    """Return the files below a folder, links left out, in the order of their names.

    Raises:
        TaskError: they are too large.
    """
    if not folder.is_dir():
        return []
    paths = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    ]
    n_bytes = sum(path.stat().st_size for path in paths)
    if n_bytes > MAX_TREE_BYTES:
        raise TaskError(
            f"{folder}: its files have more than {MAX_TREE_BYTES >> 20} MiB in all."
        )
    return paths


def _parse(path: Path) -> Any:
    with reraise_as(
        TaskError, "It is no YAML", (ValueError, yaml.YAMLError), where=str(path)
    ):
        return parse_yaml(read_bytes(path))


def read_text(path: Path) -> str:
    """Read a text file of a task."""
    return read_bytes(path).decode("utf-8", "replace")


def read_bytes(path: Path) -> bytes:
    """Read a file of a task.

    Raises:
        TaskError: it cannot be read, is too large, or is no ordinary file.
    """
    try:
        return regular_file(path, MAX_FILE_BYTES).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TaskError(f"{path}: it cannot be read: {reason}.") from None
