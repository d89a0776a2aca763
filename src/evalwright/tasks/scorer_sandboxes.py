"""Scorers of a task that look at the sandbox: their templates, and files that the model never saw.

Their options may have templates over the sample. The columns that these read are kept in the
sample's metadata, so that a finished run can be scored again. `{from: FOLDER}` in their option
`files` is read when the task is; a record has its digest, and its content is kept in the home
folder, beside the snapshots that the scorer starts from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalwright.core.actions import actions_of
from evalwright.core.ask import Ask
from evalwright.core.errors import Failure, RequestFailed, ScoringError, UsageError
from evalwright.core.private import check_ordinary
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Scored, Scorer
from evalwright.sandboxes.backends import SNAPSHOTS_FOLDER
from evalwright.sandboxes.plan import PlannedFile
from evalwright.sandboxes.protocol import SandboxLimits, SandboxSettings
from evalwright.scorers.registry import bind, is_on_state
from evalwright.scorers.sandbox.state import acted_in
from evalwright.strategies.agent_sandbox import snapshot_home
from evalwright.tasks import schema, templates
from evalwright.tasks.folder_files import (
    DIGEST,
    FROM,
    below,
    digest_of,
    fixed_folder,
    is_from,
    packed,
    read_tree,
    recorded_from,
    unpacked,
)
from evalwright.tasks.safe_files import write_bytes
from evalwright.tasks.samples import KNOWN_METADATA, Placed
from evalwright.tasks.sandbox_keys import TaskSandbox
from evalwright.tasks.yaml_files import Document, KeyPath

FILES = "files"
"""The option of scorers that has hidden files."""
PART = "part"
"""The key under which a record has a template for the part of a folder."""
KEPT_FOLDER = "hidden"
"""The folder, beside those of snapshots, that has the files of scorers."""
_OF_SAMPLES = frozenset(
    ("id", "input", "choices", "target", "targets", "passages", "metadata")
)
_FUNCTIONS = frozenset(("range", "dict", "zip", "namespace", "loop"))
HARMLESS_OPTIONS = frozenset(("allow_tag", "user"))
"""Options of a sandbox that a record may decide, because a snapshot has what they were about."""
MAX_ARCHIVE_BYTES = 128 << 20
Trees = Mapping[str, tuple[PlannedFile, ...]]
"""Folders of files by the digest of their content."""


def kept_columns(file: schema.TaskFile, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata for the columns that templates of these scorers, and of the sandbox, read.

    Args:
        file: the task file.
        variables: its values of `for_each`.
    """
    uses = [use for use in file.scorers or () if is_on_state(use.use)]
    if not uses or file.sandbox is None:
        return {}
    sources: list[Any] = [use.options for use in uses]
    sources += [file.sandbox.image, file.sandbox.environment]
    names = frozenset[str]().union(*map(_names_in, sources))
    own = file.sample.metadata.keys() | _OF_SAMPLES | _FUNCTIONS
    return {
        name: variables.get(name, f"{{{{ {name} }}}}")
        for name in sorted(names - own - set(KNOWN_METADATA))
    }


def _names_in(source: Any) -> frozenset[str]:
    if isinstance(source, Mapping):
        source = list(source.values())
    return templates.names_in(source)


def context_of(sample: Sample) -> dict[str, Any]:
    """Return what templates of scorers see of a sample, recorded or not."""
    return {
        **sample.metadata,
        "id": sample.id,
        "input": sample.input,
        "choices": sample.choices,
        "target": sample.target,
        "targets": sample.targets,
        "passages": sample.passages,
        "metadata": sample.metadata,
    }


class ScorerSandboxes:
    """What the scorers of a task need that look at the sandbox.

    Args:
        sandbox: the task's.
        document: the task's definition.
        scorers: all scorers, with their options as the file has them.

    Attributes:
        scorers: the scorers, with their templates filled in for each sample, and with the options
            that a record has.

    Raises:
        TaskError: a folder cannot be read, or a template cannot be used.
    """

    def __init__(
        self,
        sandbox: TaskSandbox | None,
        document: Document,
        scorers: Sequence[Scorer],
    ) -> None:
        self._sandbox = sandbox
        self._document = document
        self._placed: list[Placed] = []
        self.scorers = tuple(
            self._bound(scorer, ("scorers", index))
            if is_on_state(scorer.kind)
            else scorer
            for index, scorer in enumerate(scorers)
        )

    def check(self, sample: Sample) -> None:
        """Raise RowError if a template of a scorer cannot be filled in with a sample."""
        for placed in self._placed:
            placed(context_of(sample), sample.row)

    def _bound(self, scorer: Scorer, at: KeyPath) -> Scorer:
        if self._sandbox is None:
            raise self._document.error(
                at,
                f"the scorer '{scorer.name}' looks at the sandbox in which a model acted:"
                " add `sandbox: jail` and `strategy: agent`.",
            )
        options = dict(scorer.options)
        trees: dict[str, tuple[PlannedFile, ...]] = {}
        if isinstance(options.get(FILES), Mapping):
            options[FILES] = {
                path: self._recorded(content, at, trees)
                for path, content in options[FILES].items()
            }
        self._placed.append(
            Placed(
                templates.structure,
                options,
                f"scorers.{scorer.name}",
                self._document,
                at,
            )
        )
        plan = self._sandbox.plan
        return over_samples(
            replace(scorer, options=options),
            trees,
            lambda sample: plan(sample).settings,
        )

    def _recorded(
        self, content: Any, at: KeyPath, trees: dict[str, tuple[PlannedFile, ...]]
    ) -> Any:
        """Read a folder of hidden files, and return what a record says of it."""
        if not is_from(content):
            return content
        name = str(content[FROM])
        folder, part = fixed_folder(name)
        if not folder:
            raise self._document.error(
                at,
                f"the folder '{name[:80]}' begins with a template: name its first part.",
            )
        tree = read_tree(folder, at, self._document)
        digest = digest_of(tree)
        trees[digest] = tree
        return recorded_from(folder, digest) | ({PART: part} if part else {})


def over_samples(
    scorer: Scorer,
    trees: Trees,
    settings_of: Callable[[Sample], SandboxSettings] | None,
) -> Scorer:
    """Return a scorer whose templates and hidden files are filled in for each sample.

    Args:
        scorer: a scorer that looks at the sandbox.
        trees: folders of hidden files that were read; others are in the home folder.
        settings_of: the sandbox of a sample; None where it is not known.
    """
    render = templates.structure(dict(scorer.options))

    async def score(sample: Sample, answer: Answer, ask: Ask) -> Scored:
        options = _filled(render, sample, scorer)
        home = snapshot_home(actions_of(ask))
        if isinstance(options.get(FILES), Mapping):
            options[FILES] = {
                path: _with_content(content, trees, home)
                for path, content in options[FILES].items()
            }
        try:
            bound = bind(scorer.kind, options, scorer.name)
        except UsageError as error:
            raise ScoringError(f"For the sample '{sample.id}': {error}") from None
        known: AbstractContextManager[None] = nullcontext()
        if settings_of is not None:
            known = acted_in(settings_of(sample))
        with known:
            scored: Scored = await bound.function(sample, answer, ask)  # type: ignore[misc]
        return scored

    return replace(scorer, function=score)


def _filled(
    render: Callable[[Mapping[str, Any]], Any], sample: Sample, scorer: Scorer
) -> dict[str, Any]:
    try:
        options: dict[str, Any] = render(context_of(sample))
    except templates.TemplateError as error:
        reason = str(error)
        if error.missing:
            reason = templates.missing_column(error.missing, context_of(sample))
        raise ScoringError(
            f"An option of the scorer '{scorer.name}' cannot be filled in for the sample"
            f" '{sample.id}': {reason}"
        ) from None
    return options


def _with_content(content: Any, trees: Trees, home: Path) -> Any:
    """Return the files of a folder that an entry names; other entries as they are."""
    if not is_from(content):
        return content
    digest = str(content.get(DIGEST, ""))
    tree = trees.get(digest)
    if tree is None:
        tree = _kept_tree(digest, home)
    else:
        _keep(digest, tree, home)
    part = str(content.get(PART, ""))
    files = below(tree, part)
    if not files:
        raise ScoringError(
            f"The folder '{content[FROM]}' of hidden files has no files in '{part[:200]}'."
        )
    return files


def _keep(digest: str, tree: Sequence[PlannedFile], home: Path) -> None:
    """Keep the files of a folder in the home folder, for those who score the run again."""
    place = _place(digest, home)
    if place.exists():
        return
    write_bytes(place, packed(tree), private=True)


def _kept_tree(digest: str, home: Path) -> tuple[PlannedFile, ...]:
    """Return the files of a folder from the home folder.

    Raises:
        RequestFailed: they are not there, or damaged.
    """
    is_digest = len(digest) == 64 and set(digest) <= set("0123456789abcdef")
    try:
        if is_digest:
            archive = check_ordinary(
                _place(digest, home), MAX_ARCHIVE_BYTES
            ).read_bytes()
            tree = unpacked(archive)
            if digest_of(tree) == digest:
                return tree
    except (OSError, ValueError):
        pass
    raise RequestFailed(
        Failure(
            "files missing",
            "scorer",
            "The hidden files of the scorer are not in the home folder of this machine"
            f" (sha256 {digest[:16]}): score the run where it was made, or make it again from"
            " its task file.",
        )
    )


def _place(digest: str, home: Path) -> Path:
    return home / SNAPSHOTS_FOLDER / KEPT_FOLDER / f"{digest}.tar"


def recorded_over_samples(scorer: Scorer, definition: Mapping[str, Any]) -> Scorer:
    """Return a scorer of a finished run, with what its task's recorded definition says.

    Args:
        scorer: the scorer, bound with its recorded options.
        definition: the recorded definition of the task.
    """
    if not is_on_state(scorer.kind):
        return scorer
    recorded = definition.get("sandbox")
    if not isinstance(recorded, Mapping):
        return over_samples(scorer, {}, None)
    return over_samples(
        scorer, {}, lambda sample: _recorded_settings(recorded, sample, scorer)
    )


def _recorded_settings(
    recorded: Mapping[str, Any], sample: Sample, scorer: Scorer
) -> SandboxSettings:
    """Return the sandbox of a sample as a record says it; a record decides on no permission.

    Raises:
        RequestFailed: it had options that the user allowed.
    """
    use = schema.SandboxUse.model_validate(dict(recorded))
    if needing := sorted(use.options.keys() - HARMLESS_OPTIONS):
        raise RequestFailed(
            Failure(
                "sandbox failed",
                "sandbox",
                f"The sandbox had options that a record may not decide ({', '.join(needing)})."
                " Make the run again from its task file: responses in the store are not paid"
                " for again.",
            )
        )
    render = templates.structure(
        {"image": use.image, "environment": dict(use.environment)}
    )
    filled = _filled(render, sample, scorer)
    return SandboxSettings(
        backend=use.backend,
        image=str(filled["image"]),
        folder=use.folder,
        environment={name: str(text) for name, text in filled["environment"].items()},
        limits=SandboxLimits(**use.limits.model_dump()),
        options=dict(use.options),
    )
