"""Reads settings from a suite file (YAML) or from the `run.json` of an earlier run, strictly, with
the flags of a command over them.

    tasks: [factual, my_task.yaml]
    common: {temperature: 1.0}          # arguments of every model
    models:
      - demo/small
      - model: openai/gpt-4o-mini
        arguments: {temperature: 0.7}   # wins over the common ones
        label: GPT-4o mini
    limit: 100
    tree: {average: macro, parts: [factual, {name: mine, average: pooled, parts: [law, logic]}]}
    suites:                             # by name, what differs from the above
      test: {limit: 3}

Task files and the TOML files of `plugins` (providers and prices) are relative to the suite file.
Flags of the command line win over the file. What only a person decides, the file only proposes: see
`origins`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.private import no_file
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.evaluation.origins import FILES, listed, proposed, require_allowed
from evalwright.evaluation.settings import (
    KINDS,
    TEXTS,
    Origin,
    Settings,
    check_kind,
    present_names,
)
from evalwright.metrics.tree import read_tree
from evalwright.runs.accepted_failures import is_id_file
from evalwright.tasks.data_files import as_data_file
from evalwright.tasks.definitions import merged
from evalwright.tasks.files import is_within, read_json
from evalwright.tasks.overrides import nested
from evalwright.tasks.yaml_files import Document, KeyPath, read_document

KEYS = ("tasks", "models", *TEXTS, *KINDS)
FORMATS = ("auto", "chat", "text")


def read_settings(
    file: str | None,
    flags: Mapping[str, Any],
    model_arguments: Mapping[str, Any] | None = None,
    suite: str | None = None,
    trust_file: str | None = None,
) -> Settings:
    """The settings of a file, if there is one, with flags over them.

    Args:
        file: a suite file, a `run.json`, or the folder of a run.
        flags: fields of a Configuration that were set on the command line.
        model_arguments: added to the arguments of every model of the file.
        suite: which of the file's suites.
        trust_file: the file again, where the person allows it what only a person decides.

    Raises:
        ConfigurationError: a setting is not what it must be; the message names file and line.
        UnknownName: there is no such setting or suite; the message has the closest.
    """
    for option, argument in (("--suite", suite), ("--trust-file", trust_file)):
        if argument is not None and not file:
            raise ConfigurationError(
                f"{option} {argument} can only be used with --config FILE."
            )
    settings = Settings()
    if file:
        reader = _opened(Path(file))
        settings = reader.read(suite)
        remaining = reader.remaining(suite, flags, model_arguments or {})
        proposals = proposed(remaining, reader.folder, budget="budget" in flags)
        require_allowed(reader.path, proposals, trust_file, reader.folder, reader.at)
    settings = _with_flags(settings, flags)
    return _with_arguments(settings, model_arguments) if model_arguments else settings


def read_configuration(
    path: Path, suite: str | None = None, trust_file: str | None = None
) -> Configuration:
    """The configuration in a suite file or a `run.json`, as `read_settings` without flags."""
    return read_settings(str(path), {}, None, suite, trust_file).configuration


def _with_flags(settings: Settings, flags: Mapping[str, Any]) -> Settings:
    """What a flag sets wins; overrides and the settings of dialects are put over the file's."""
    configuration = settings.configuration
    fields = dict(flags)
    if configuration.overrides and "overrides" in fields:
        fields["overrides"] = merged(
            nested(configuration.overrides), nested(fields["overrides"])
        )
    if "dialect" in fields:
        fields["dialect"] = {**configuration.dialect, **fields["dialect"]}
    options = {key: Origin("command line", f"--{key}") for key in flags}
    return replace(
        settings,
        configuration=replace(configuration, **fields),
        origins={**settings.origins, **options},
    )


def _with_arguments(settings: Settings, arguments: Mapping[str, Any]) -> Settings:
    """Every model with these arguments over its own."""
    models = settings.configuration.models
    if not models:
        raise ConfigurationError(
            "-M sets an argument of a model, but no model is named. Add --model"
            " provider/name."
        )
    return settings.having(
        models=tuple(
            replace(spec, arguments=merged(spec.arguments, arguments))
            for spec in models
        )
    )


def _opened(path: Path) -> _Reader:
    if path.is_dir():
        path = path / "run.json"
    if path.suffix == ".json":
        return _Reader(_from_json(path), path, relative=False)
    if not path.is_file():
        raise ConfigurationError(f"The configuration '{path}' {no_file(path)}.")
    document = read_document(path, "suite file")
    return _Reader(document.value, path, relative=True, document=document)


def _from_json(path: Path) -> Any:
    data = read_json(path, ConfigurationError, f"The configuration '{path}'")
    return data.get("configuration", data) if isinstance(data, dict) else data


def with_present_names(settings: Any) -> Any:
    """A file's settings with the names that they have now; suites within it too."""
    if not isinstance(settings, Mapping):
        return settings
    renamed = present_names(settings, "The setting")
    suites = renamed.get("suites")
    if isinstance(suites, Mapping):
        renamed["suites"] = {
            name: (
                present_names(suite, "The setting")
                if isinstance(suite, Mapping)
                else suite
            )
            for name, suite in suites.items()
        }
    return renamed


class _Reader:
    """Turns the plain values of a file into settings; says where one is wrong."""

    def __init__(
        self,
        value: Any,
        path: Path,
        *,
        relative: bool,
        document: Document | None = None,
    ) -> None:
        self.value = with_present_names(value)
        self.path = path
        self.relative = relative
        self.document = document
        self.folder = path.parent if relative else Path.cwd()
        """Where names of files start."""
        self.of_suite: dict[Any, KeyPath] = {}
        """Where the keys stand that came from a suite."""

    def read(self, suite: str | None = None) -> Settings:
        """All settings of the file, with file and line of each."""
        if not isinstance(self.value, Mapping):
            raise ConfigurationError(
                f"{self.path} must be a mapping with keys such as 'tasks' and 'models'."
            )
        self._known(self.value, (*KEYS, "suites"), ())
        fields: dict[str, Any] = {}
        origins: dict[str, Origin] = {}
        for key, setting in self._of_suite(suite).items():
            fields[key] = self._field(key, setting)
            origins[key] = Origin("file", self.at((key,)))
        dialect = fields.get("dialect", {})
        if "num_fewshot" in dialect:  # where it was before it held for every task
            fields.setdefault("num_fewshot", dialect.pop("num_fewshot"))
        common = fields.pop("common", {})
        if common:
            fields["models"] = tuple(
                _with_common(spec, common) for spec in fields.get("models", ())
            )
        return Settings(Configuration(**fields), origins)

    def remaining(
        self, suite: str | None, flags: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The file's values that no flag and no argument of the command line replaces."""
        settings = self._of_suite(suite)
        out = {key: setting for key, setting in settings.items() if key not in flags}
        if "models" in flags:
            out.pop("common", None)
        if "dialect" in flags and "dialect" in settings:
            out["dialect"] = _without(
                settings["dialect"], dict.fromkeys(flags["dialect"])
            )
        if "overrides" in flags and "overrides" in settings:
            out["overrides"] = _without(
                nested(settings["overrides"]), nested(flags["overrides"])
            )
        if out.get("models") is not None:
            out["models"] = [
                _without(spec, {"arguments": arguments})
                for spec in listed(out["models"])
            ]
        return {**out, "common": _without(out.get("common", {}), arguments)}

    def _of_suite(self, suite: str | None) -> Mapping[str, Any]:
        """The file's values, those of the suite over them.

        A file with suites is nothing without the name of one.
        """
        suites = self.value.get("suites")
        if suites is None:
            if suite is not None:
                raise ConfigurationError(
                    f"{self.path} has no suites: leave out the name '{suite}', or write"
                    " them under 'suites:'."
                )
            whole: Mapping[str, Any] = self.value
            return whole
        self._is(suites, Mapping, "a mapping of names to suites", ("suites",))
        if suite is None:
            raise ConfigurationError(
                f"{self.path} has several suites: name one with --suite. It has:"
                f" {', '.join(suites)}."
            )
        if suite not in suites:
            raise UnknownName(
                "suite", suite, suites, f"{self.path} has: {', '.join(suites)}."
            )
        own = suites[suite]
        self._is(
            own,
            Mapping,
            "a mapping with keys such as 'tasks' and 'models'",
            ("suites", suite),
        )
        self._known(own, KEYS, ("suites", suite))
        self.of_suite = dict.fromkeys(own, ("suites", suite))
        shared = {key: value for key, value in self.value.items() if key != "suites"}
        for key in ("common", "overrides"):
            if isinstance(shared.get(key), Mapping) and isinstance(
                own.get(key), Mapping
            ):
                own = {**own, key: merged(nested(shared[key]), nested(own[key]))}
        return {**shared, **own}

    def _field(self, key: str, value: Any) -> Any:
        if key in KINDS and not (key == "limit" and value is None):
            self._is(value, *KINDS[key], (key,))
            if key == "accept_failures":
                return str(value)
        if key in TEXTS:
            if key == "give_up":
                value = [
                    str(entry) if type(entry) is int else entry
                    for entry in listed(value)
                ]
            for i, entry in enumerate(listed(value)):
                self._is(
                    entry, str, f"{TEXTS[key]} in quotes, or a list of them", (key, i)
                )
            if key == "give_up":
                return tuple(map(self._given_up, value))
            return tuple(
                map(self._plugin, listed(value)) if key == "plugins" else listed(value)
            )
        if key == "tasks":
            return tuple(
                self._task(entry, ("tasks", i)) for i, entry in enumerate(listed(value))
            )
        if key == "models":
            return tuple(
                self._model(entry, ("models", i))
                for i, entry in enumerate(listed(value))
            )
        if key == "roles":
            return {
                role: self._model(entry, ("roles", role))
                for role, entry in value.items()
            }
        if key == "tree":
            return read_tree(value, f"{self.at((key,))}: tree").as_dict()
        if key == "overrides" and self.relative:
            return self._beside(value)
        if key == "format" and value not in FORMATS:
            raise UnknownName(
                "format",
                value,
                FORMATS,
                f"Known: {', '.join(FORMATS)}. ({self.at((key,))})",
            )
        return dict(value) if isinstance(value, Mapping) else value

    def _task(self, entry: Any, where: KeyPath) -> str:
        self._is(entry, str, "the name or file of a task", where)
        beside = self.path.parent / entry
        # The file may be followed by one of its tasks: "exams.yaml:exams-law".
        file = beside
        if beside.name and not beside.is_file():
            file = beside.with_name(beside.name.rpartition(":")[0] or beside.name)
        data = file if self.relative and file.is_file() else Path(entry)
        if as_data_file(str(data)) and not is_within(data, self.folder, Path.cwd()):
            raise ConfigurationError(
                f"{self.at(where)}: the data file '{entry}' is outside of this file's"
                " folder and the working folder, or hidden there. Name it on the"
                " command line instead."
            )
        return str(beside) if self.relative and file.is_file() else str(entry)

    def _beside(
        self, overrides: Mapping[str, Any], path: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Settings of tasks, their file names made relative to the suite file as those of tasks
        are.
        """
        out: dict[str, Any] = {}
        for key, value in overrides.items():
            here = (*path, *str(key).split("."))
            if isinstance(value, Mapping):
                out[key] = self._beside(value, here)
            elif here in FILES:
                several = [
                    str(self.path.parent / one) if isinstance(one, str) else one
                    for one in listed(value)
                ]
                out[key] = several if isinstance(value, (list, tuple)) else several[0]
            else:
                out[key] = value
        return out

    def _plugin(self, entry: str) -> str:
        """A file of providers. Python runs only where a person names it, on the command line."""
        if not entry.endswith(".toml"):
            raise ConfigurationError(
                f"{self.at(('plugins',))}: '{entry}' is not a TOML file of providers."
                " Name Python files on the command line, with --plugin, because they"
                " are executed."
            )
        return str(self.path.parent / entry) if self.relative else entry

    def _given_up(self, entry: str) -> str:
        """The id of a sample, or a file of ids, which the record would show: so it stays where the
        person works.
        """
        if not is_id_file(entry) or not self.relative:
            return entry
        file = self.path.parent / entry
        if not is_within(file, self.folder, Path.cwd()):
            raise ConfigurationError(
                f"{self.at(('give_up',))}: the file '{entry}' is outside of this file's"
                " folder and the working folder, or hidden there. Name it on the"
                " command line instead, with --give-up."
            )
        return str(file)

    def _model(self, entry: Any, where: KeyPath) -> ModelSpec:
        if isinstance(entry, str):
            return ModelSpec(entry)
        self._is(entry, Mapping, "a model's name or a mapping with 'model'", where)
        self._known(entry, ("model", "arguments", "label"), where)
        if "model" not in entry:
            raise ConfigurationError(
                f"{self.at(where)}: the key 'model' is missing, for example 'model:"
                " demo/small'."
            )
        self._is(entry["model"], str, "a model's name", (*where, "model"))
        self._is(
            entry.get("arguments", {}), Mapping, "a mapping", (*where, "arguments")
        )
        return ModelSpec(
            entry["model"],
            dict(entry.get("arguments", {})),
            str(entry.get("label", "")),
        )

    def _known(
        self, given: Mapping[str, Any], known: tuple[str, ...], where: KeyPath
    ) -> None:
        for key in given:
            if key not in known:
                hint = f"Known: {', '.join(known)}. ({self.at((*where, key))})"
                raise UnknownName("key", str(key), known, hint)

    def _is(self, value: Any, kind: Any, words: str, where: KeyPath) -> None:
        name = ".".join(map(str, where))
        check_kind(value, kind, words, name, f"{self.at(where)}: ")

    def at(self, where: KeyPath) -> str:
        """File and line of a setting; of JSON the file and the name of the setting in it."""
        whole = (*self.of_suite.get(where[0], ()), *where) if where else where
        return self.document.at(whole) if self.document else str(self.path)


def _with_common(spec: ModelSpec, common: Mapping[str, Any]) -> ModelSpec:
    """A model with the arguments of all put below its own; where it says null it wants none of
    them.
    """
    unwanted = {
        name
        for name, value in spec.arguments.items()
        if value is None and name in common
    }
    own = {
        name: value for name, value in spec.arguments.items() if name not in unwanted
    }
    shared = {name: value for name, value in common.items() if name not in unwanted}
    names = tuple(name for name in shared if name not in own)
    return replace(spec, arguments=merged(shared, own), common=names)


def _without(value: Any, over: Mapping[str, Any]) -> Any:
    """A mapping without the leaves that `over` replaces, however deep they are; anything else as it
    is.
    """
    if not isinstance(value, Mapping):
        return value
    out = {}
    for key, item in value.items():
        inner = over.get(key)
        if key not in over or (
            isinstance(item, Mapping) and isinstance(inner, Mapping)
        ):
            out[key] = _without(item, inner) if isinstance(inner, Mapping) else item
    return out
