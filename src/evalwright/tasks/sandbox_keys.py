"""`sandbox`, `files`, `setup`, `solution` and `limits` of a task file.

    sandbox: {backend: jail, limits: {seconds: 60}}    or only `sandbox: jail`
    files:                                             what is in it when the model begins
      /work/app.py: "{{ app }}"                        content, a template over the row
      /work/data: {from: "data/{{ id }}"}              a folder beside the task file, or a file
    setup: "python3 make_data.py"                      bash, before the model
    solution: "{{ solution }}"                         bash, the reference solution
    limits: {messages: 50, tokens: 200000}

A task file from another person may have a sandbox without network; a network, options of the
backend, and an image whose content its name does not fix need the user's permission.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalwright.core.errors import UnknownName
from evalwright.core.samples import Sample
from evalwright.sandboxes.backends import BUNDLED, backend_of
from evalwright.sandboxes.plan import PlannedFile, SandboxPlan
from evalwright.sandboxes.protocol import SandboxLimits, SandboxSettings
from evalwright.scorers.effort import SHOWN
from evalwright.strategies.limits import Limits
from evalwright.tasks import schema, templates
from evalwright.tasks.folder_files import (
    DIGEST,
    FROM,
    MAX_TOTAL_BYTES,
    digest_of,
    is_from,
    placed_at,
    read_tree,
    recorded_from,
    too_large,
)
from evalwright.tasks.offered_tools import SANDBOX_TOOLS
from evalwright.tasks.prompts import Renderer, per_sample
from evalwright.tasks.samples import Placed, RowError
from evalwright.tasks.scoring import default_metrics, default_scorers
from evalwright.tasks.yaml_files import Document, KeyPath, kind_of, plain
from evalwright.tools.task_tools import TaskTools

KEYS = ("sandbox", "files", "setup", "solution", "limits")
"""The keys of a task file that are about acting."""
EFFORT = "effort"
"""The scorer and the metric of what an answer took."""
AGENTS = frozenset({"agent", "agent-command"})
"""Bundled strategies that act in a sandbox."""
MAX_SCRIPT_CHARS = 1 << 20
"""Most characters of `setup` and `solution`."""
_BY_DIGEST = re.compile(r"(?:[^\s@]+@)?sha256:[0-9a-f]{64}")


class TaskSandbox:
    """The sandbox of a task's samples, compiled.

    Args:
        file: the task file; it has `sandbox`.
        document: the task's definition.
        renderer: what templates see of a row.

    Attributes:
        recorded: plain JSON for the task's definition.
        varies: whether files beside the task file are other ones for other rows.

    Raises:
        TaskError: something cannot be used, or needs the user's permission.
    """

    def __init__(
        self, file: schema.TaskFile, document: Document, renderer: Renderer
    ) -> None:
        assert file.sandbox is not None
        self._use = file.sandbox
        self._document = document
        self._renderer = renderer
        _check_backend(self._use, document)
        _check_permission(self._use, document)
        self._image = self._text(self._use.image, "sandbox", "image")
        self._environment = {
            name: self._text(text, "sandbox", "environment", name)
            for name, text in self._use.environment.items()
        }
        self._setup = self._text(file.setup or "", "setup")
        self._solution = (
            None if file.solution is None else self._text(file.solution, "solution")
        )
        self._files = _Files(file.files, document)
        self.varies = self._files.varies
        self.recorded = {
            "sandbox": self._use.model_dump(),
            **({"files": self._files.recorded} if self._files.recorded else {}),
            **({} if file.setup is None else {"setup": file.setup}),
            **({} if file.solution is None else {"solution": file.solution}),
        }

    @property
    def has_solution(self) -> bool:
        """Whether there is a reference solution."""
        return self._solution is not None

    def plan(self, sample: Sample) -> SandboxPlan:
        """Return the sandbox of a sample.

        Raises:
            DatasetError: a template cannot be filled in with its row.
            TaskError: a file that it names cannot be read, or an image needs permission.
        """
        return per_sample(sample, self._plan)

    def solution(self, sample: Sample) -> str:
        """Return the reference solution of a sample, a bash script; "" if it has none."""
        if self._solution is None:
            return ""
        solution = self._solution
        return per_sample(
            sample, lambda sample: _script(solution, self._renderer.context(sample))
        )

    def check(self, sample: Sample) -> bytes:
        """Check the sandbox of a sample.

        Returns:
            What identifies files of the row that are beside the task file.

        Raises:
            RowError: a template cannot be filled in.
            TaskError: as `plan`.
        """
        plan = self._plan(sample)
        if self._solution is not None:
            _script(self._solution, self._renderer.context(sample))
        return plan.fingerprint.encode() if self.varies else b""

    def _plan(self, sample: Sample) -> SandboxPlan:
        context = self._renderer.context(sample)
        image = self._image(context)
        if image and templates.is_template(self._use.image):
            _check_image(image, self._document)
        settings = SandboxSettings(
            backend=self._use.backend,
            image=image,
            network=self._use.network,
            folder=self._use.folder,
            environment={
                name: render(context) for name, render in self._environment.items()
            },
            limits=SandboxLimits(**self._use.limits.model_dump()),
            options=plain(self._use.options),
        )
        setup = _script(self._setup, context)
        return SandboxPlan(settings, self._files.of_row(context), setup)

    def _text(self, source: str, *at: str) -> Placed:
        return Placed(templates.text, source, ".".join(at), self._document, at)


def _script(template: Placed, context: Mapping[str, Any]) -> str:
    script: str = template(context)
    if len(script) > MAX_SCRIPT_CHARS:
        raise RowError(
            f"`{template.name}` has {len(script):,} characters; at most"
            f" {MAX_SCRIPT_CHARS:,} are run"
        )
    if "\0" in script:
        raise RowError(f"`{template.name}` has a null character")
    return script


@dataclass
class _Files:
    """The `files` of a task: a mapping, or a template that gives one."""

    setting: dict[str, Any] | str | None
    document: Document
    recorded: Any = None
    varies: bool = False
    _parts: list[_FilePart] = field(default_factory=list)
    _of_rows: Placed | None = None

    def __post_init__(self) -> None:
        at: KeyPath = ("files",)
        if isinstance(self.setting, str):
            if not templates.is_template(self.setting):
                raise self.document.error(
                    at,
                    '`files` is a mapping of paths to contents, or a template ("{{ files'
                    f" }}}}\") that gives one, not the text '{self.setting[:80]}'.",
                )
            self._of_rows = Placed(
                templates.native, self.setting, "files", self.document, at
            )
            self.recorded = self.setting
            return
        listed = self.setting or {}
        self._parts = [
            _FilePart(path, content, self.document) for path, content in listed.items()
        ]
        self.recorded = {part.path: part.recorded for part in self._parts}
        self.varies = any(part.varies for part in self._parts)

    def of_row(self, context: Mapping[str, Any]) -> tuple[PlannedFile, ...]:
        """Return the files of one row. Raises RowError or TaskError."""
        files = (
            [file for part in self._parts for file in part.of_row(context)]
            if self._of_rows is None
            else _listed_files(self._of_rows(context))
        )
        if sum(len(file.content) for file in files) > MAX_TOTAL_BYTES:
            raise too_large(("files",), self.document)
        return tuple(files)


class _FilePart:
    """One entry of `files`."""

    def __init__(self, path: str, content: Any, document: Document) -> None:
        at: KeyPath = ("files", path)
        has_template = templates.is_template(path)
        if not has_template and (why := schema.why_no_path(path)):
            raise document.error(at, f"a path of `files` {why}: '{path[:80]}'.")
        self.path = path
        self._render_path = (
            Placed(templates.text, path, "a path of `files`", document, at)
            if has_template
            else None
        )
        self._at = at
        self._document = document
        self._tree: tuple[PlannedFile, ...] | None = None
        is_tree = is_from(content)
        source = content[FROM] if is_tree else content
        if isinstance(source, int | float) and not isinstance(source, bool):
            source = str(source)
        unknown = set(content) - {FROM, DIGEST} if is_tree else set()
        if not isinstance(source, str) or unknown:
            raise document.error(
                at,
                "the content of a file is text, or {from: FOLDER} for a folder or file"
                f" beside the task file, not {kind_of(content)}.",
            )
        name = f"files.{path}.from" if is_tree else f"files.{path}"
        self._render = Placed(templates.text, source, name, document, at)
        self.varies = is_tree and templates.is_template(source)
        self._is_tree = is_tree
        digest = ""
        if is_tree and not self.varies:
            self._tree = read_tree(source, at, document)
            digest = digest_of(self._tree)
        self.recorded: Any = recorded_from(source, digest) if is_tree else source

    def of_row(self, context: Mapping[str, Any]) -> list[PlannedFile]:
        """Return its files for a row. Raises RowError or TaskError."""
        path = self._path_of_row(context)
        if self._tree is not None:
            return placed_at(path, self._tree)
        text: str = self._render(context)
        if self._is_tree:
            return placed_at(path, read_tree(text, self._at, self._document))
        return [PlannedFile(path, text.encode("utf-8", "surrogatepass"))]

    def _path_of_row(self, context: Mapping[str, Any]) -> str:
        if self._render_path is None:
            return self.path
        path: str = self._render_path(context)
        if why := schema.why_no_path(path):
            raise RowError(f"a path of `files` {why}: '{path[:80]}'")
        return path


def _listed_files(listed: Any) -> list[PlannedFile]:
    """Return the files that a row lists as a mapping of paths to texts. Raises RowError."""
    if listed is None or listed == "":
        return []
    if not isinstance(listed, Mapping):
        raise RowError(f"`files` gives {kind_of(listed)}, not a mapping of paths")
    files: list[PlannedFile] = []
    for path, content in listed.items():
        if why := schema.why_no_path(str(path)):
            raise RowError(f"a path of `files` {why}: '{str(path)[:80]}'")
        if not isinstance(content, str):
            raise RowError(f"the file '{path}' has {kind_of(content)}, not text")
        files.append(PlannedFile(str(path), content.encode("utf-8", "surrogatepass")))
    return files


def _check_backend(use: schema.SandboxUse, document: Document) -> None:
    if use.backend in BUNDLED:
        return
    try:
        backend_of(use.backend)
    except UnknownName as error:
        raise document.error(("sandbox", "backend"), str(error)) from None


def _check_permission(use: schema.SandboxUse, document: Document) -> None:
    """Raise TaskError for what only the user allows."""
    if use.network:
        document.require_trust(
            ("sandbox", "network"), "gives programs of a model the network"
        )
    for name in use.options:
        document.require_trust(
            ("sandbox", "options", name),
            f"sets the option '{name[:80]}' of the sandbox",
        )
    if use.image and not templates.is_template(use.image):
        _check_image(use.image, document)


def is_fixed_image(image: str) -> bool:
    """Return whether the name of an image says what is in it."""
    return _BY_DIGEST.fullmatch(image) is not None


def _check_image(image: str, document: Document) -> None:
    if not is_fixed_image(image):
        document.require_trust(
            ("sandbox", "image"),
            f"runs the image '{image[:200]}', whose content its name does not fix (write"
            " NAME@sha256:DIGEST)",
        )


def read_limits(file: schema.TaskFile) -> Limits | None:
    """Return how long the model may act; None if the task does not say."""
    return None if file.limits is None else Limits(**file.limits.model_dump())


def recorded_acting(
    file: schema.TaskFile, sandbox: TaskSandbox | None
) -> dict[str, Any]:
    """Return the keys about acting that a task has, for its definition."""
    limits = {} if file.limits is None else {"limits": file.limits.model_dump()}
    return {**({} if sandbox is None else sandbox.recorded), **limits}


def with_default_tools(file: schema.TaskFile) -> schema.TaskFile:
    """Return the file with the built-in tools, if its strategy is the agent and it names none."""
    is_agent = file.strategy is not None and file.strategy.name == "agent"
    if not is_agent or file.tools is not None:
        return file
    return file.model_copy(update={"tools": list(SANDBOX_TOOLS)})


def with_effort(file: schema.TaskFile) -> schema.TaskFile:
    """Return the file with what its agents take among its numbers.

    A task that names no metrics gets those of steps, tokens, dollars and seconds beside its own;
    one that names metrics of `effort` gets the scorer.
    """
    is_agent = file.strategy is not None and file.strategy.name in AGENTS
    names_effort = any(use.use == EFFORT for use in file.metrics or ())
    if not is_agent or (file.metrics is not None and not names_effort):
        return file
    scorers = [*(file.scorers or default_scorers(file))]
    if not any(use.name == EFFORT for use in scorers):
        scorers.append(schema.ScorerUse.model_validate(EFFORT))
    metrics = [
        use.model_copy(update={"scorer": EFFORT})
        if use.use == EFFORT and use.scorer is None
        else use
        for use in file.metrics or default_metrics(scorers)
    ]
    if file.metrics is None:
        shown = ({"name": part, "use": EFFORT, "part": part} for part in SHOWN)
        metrics += [
            schema.MetricUse.model_validate({**use, "scorer": EFFORT}) for use in shown
        ]
    return file.model_copy(update={"scorers": scorers, "metrics": metrics})


def check_acting(file: schema.TaskFile, document: Document) -> None:
    """Check that the keys about acting go together.

    Raises:
        TaskError: a key has no effect, or one is missing.
    """
    if file.sandbox is None:
        for key in ("files", "setup", "solution"):
            if getattr(file, key) is not None:
                raise document.error(
                    (key,),
                    f"`{key}` needs a `sandbox`, such as `sandbox: jail`: it is about"
                    " what a model acts in.",
                )
    name = "" if file.strategy is None else file.strategy.name
    may_have_none = name == "agent" and file.tools is not None
    if name in AGENTS and file.sandbox is None and not may_have_none:
        raise document.error(
            ("strategy",),
            f"the strategy '{name}' needs a `sandbox`, such as `sandbox: jail`"
            f"{', or `tools`' if name == 'agent' else ''}.",
        )


def check_strategy_acts(
    file: schema.TaskFile,
    document: Document,
    tools: TaskTools | None,
    *,
    uses_sandbox: bool,
) -> None:
    """Check that a strategy acts, if the task has a sandbox, limits or built-in tools.

    Raises:
        TaskError: it does not.
    """
    if uses_sandbox:
        return
    name = "single-draw" if file.strategy is None else file.strategy.name
    for key in ("sandbox", "limits"):
        if getattr(file, key) is not None:
            raise document.error(
                (key,),
                f"`{key}` has no effect: the strategy '{name}' does not act in a"
                " sandbox. Use `strategy: agent`, or leave it out.",
            )
    if tools is not None and tools.programs:
        raise document.error(
            ("tools",),
            f"the program '{tools.programs[0].command[0]}' runs in a sandbox, and the"
            f" strategy '{name}' does not act in one: use `strategy: agent` with a"
            " `sandbox`.",
        )
    if tools is not None and tools.sandbox_tools:
        raise document.error(
            ("tools",),
            f"the built-in tool '{tools.sandbox_tools[0]}' acts in a sandbox, and the"
            f" strategy '{name}' does not: use `strategy: agent` with a `sandbox`.",
        )
