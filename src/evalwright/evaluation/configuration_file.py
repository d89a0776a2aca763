"""Reads settings strictly from a suite file (YAML) or a run's `run.json`, with flags.

    tasks: [factual, my_task.yaml]
    common: {temperature: 1.0}          # arguments of every model
    models:
      - demo/small
      - model: openai/gpt-4o-mini
        arguments: {temperature: 0.7}   # take precedence over the common ones
        label: GPT-4o mini
        facts: {licence: proprietary, open: no, released: 2024-07-18}  # shown on boards
    judge: openai/gpt-4.1               # or several, or mappings like those of models, or
                                        # {panel: [...], combine: majority, needs: 2}
    limit: 100
    tree: {average: macro, parts: [factual, {name: mine, average: pooled, parts: [law, logic]}]}
    suites:                             # by name, what differs from the above
      test: {limit: 3}

Task files and the TOML files of `plugins` (providers and prices) are relative to the suite file.
Flags of the command line take precedence over the file. Settings that only the user may decide are
only proposed by the file: see `origins`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.private import no_file
from evalwright.evaluation.configuration import Configuration, ModelSpec, PromptSpec
from evalwright.evaluation.judge_setting import (
    PANEL,
    panel_setting,
    roles_with_judges,
    split_panel,
    unsure_scorer,
)
from evalwright.evaluation.origins import (
    FILES,
    Setting,
    listed,
    proposed,
    require_allowed,
)
from evalwright.evaluation.prompts import checked
from evalwright.evaluation.settings import (
    KINDS,
    TEXTS,
    Origin,
    Settings,
    check_kind,
    present_names,
)
from evalwright.models.remote.providers import add_file
from evalwright.runs.accepted_failures import is_id_file
from evalwright.runs.model_facts import check_facts
from evalwright.tasks.data_files import as_data_file
from evalwright.tasks.definitions import merged
from evalwright.tasks.overrides import nested
from evalwright.tasks.safe_files import is_within, read_json
from evalwright.tasks.yaml_files import Document, KeyPath, read_document

KEYS = ("tasks", "models", "prompts", "judge", *TEXTS, *KINDS)


def read_settings(
    file: str | None,
    flags: Mapping[str, Any],
    model_arguments: Mapping[str, Any] | None = None,
    suite: str | None = None,
    trust_file: str | None = None,
) -> Settings:
    """Read the settings of a file, if there is one, overridden by flags.

    The providers and prices in files that the settings name are registered by it.

    Args:
        file: a suite file, a `run.json`, or the folder of a run.
        flags: fields of a Configuration that were set on the command line.
        model_arguments: added to the arguments of every model of the file.
        suite: which of the file's suites.
        trust_file: the file again, if the user allows it to decide what only the user may decide.

    Raises:
        ConfigurationError: a setting has a wrong value; the message names file and line.
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
    if model_arguments:
        settings = _with_arguments(settings, model_arguments)
    for plugin in settings.configuration.plugins:
        add_file(Path(plugin))
    return settings


def read_configuration(
    path: Path, suite: str | None = None, trust_file: str | None = None
) -> Configuration:
    """Read the configuration in a suite file or a `run.json`: `read_settings` without flags."""
    return read_settings(str(path), {}, None, suite, trust_file).configuration


def read_recorded(run_file: Path) -> Configuration:
    """Read what a run was made with, for those who send no request by it.

    Nothing is asked of the user, and no file of providers is registered.

    Raises:
        UsageError: the `run.json` cannot be read, or a setting in it.
    """
    return _opened(run_file).read().configuration


def read_part(
    document: Document, key: str, path: Path
) -> tuple[Configuration, list[Setting]]:
    """Read a suite that is a part of another file.

    Args:
        document: the file.
        key: the part.
        path: the file's path, from which relative paths start.

    Returns:
        The configuration, and the settings in it that are for the user to decide.

    Raises:
        UsageError: a setting is wrong; the message names file and line.
    """
    places = {
        place_path[1:]: place
        for place_path, place in document.places.items()
        if place_path[:1] == (key,)
    }
    part = replace(document, value=document.value[key], places=places)
    reader = _Reader(part.value, path, relative=True, document=part)
    configuration = reader.read().configuration
    remaining = reader.remaining(None, {}, {})
    return configuration, proposed(remaining, reader.folder)


def _with_flags(settings: Settings, flags: Mapping[str, Any]) -> Settings:
    """Apply flags to settings; overrides and settings of dialects are merged over the file's."""
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
    """Add these arguments to every model, over its own."""
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
    document = read_json(path, ConfigurationError, f"The configuration '{path}'")
    return (
        document.get("configuration", document)
        if isinstance(document, dict)
        else document
    )


def with_present_names(settings: Any) -> Any:
    """Rename old names of settings to the present ones, in suites too."""
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
        document_value: Any,
        path: Path,
        *,
        relative: bool,
        document: Document | None = None,
    ) -> None:
        self.value = with_present_names(document_value)
        self.path = path
        self.relative = relative
        self.document = document
        self.folder = path.parent if relative else Path.cwd()
        """The folder from which relative file names start."""
        self.of_suite: dict[Any, KeyPath] = {}
        """The places of the keys that came from a suite."""

    def read(self, suite: str | None = None) -> Settings:
        """Read all settings of the file, with file and line of each."""
        if not isinstance(self.value, Mapping):
            raise ConfigurationError(
                f"{self.path} must be a mapping with keys such as 'tasks' and 'models'."
            )
        self._check_keys(self.value, (*KEYS, "suites"), ())
        fields: dict[str, Any] = {}
        origins: dict[str, Origin] = {}
        for key, setting in self._of_suite(suite).items():
            fields[key] = self._field(key, setting)
            origins[key] = Origin("file", self.at((key,)))
        dialect = fields.get("dialect", {})
        if "num_fewshot" in dialect:  # its place before it applied to every task
            fields.setdefault("num_fewshot", dialect.pop("num_fewshot"))
        judges, panel_options = fields.pop("judge", ((), {}))
        if judges or panel_options:
            where = f"{self.at(('judge',))}: "
            fields["roles"] = roles_with_judges(judges, fields.get("roles", {}), where)
            fields["panel"] = panel_setting(judges, panel_options, where)
            fields.setdefault("unsure", unsure_scorer(judges, panel_options))
        common = fields.pop("common", {})
        if common:
            fields["models"] = tuple(
                _with_common(spec, common) for spec in fields.get("models", ())
            )
        return Settings(Configuration(**fields), origins)

    def remaining(
        self, suite: str | None, flags: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the file's values that no flag and no argument of the command line replaces."""
        settings = self._of_suite(suite)
        remaining = {
            key: setting for key, setting in settings.items() if key not in flags
        }
        if "models" in flags:
            remaining.pop("common", None)
        if "roles" in flags:
            remaining.pop("judge", None)
        if "dialect" in flags and "dialect" in settings:
            remaining["dialect"] = _without(
                settings["dialect"], dict.fromkeys(flags["dialect"])
            )
        if "overrides" in flags and "overrides" in settings:
            remaining["overrides"] = _without(
                nested(settings["overrides"]), nested(flags["overrides"])
            )
        if remaining.get("models") is not None:
            remaining["models"] = [
                _without(spec, {"arguments": arguments})
                for spec in listed(remaining["models"])
            ]
        return {**remaining, "common": _without(remaining.get("common", {}), arguments)}

    def _of_suite(self, suite: str | None) -> Mapping[str, Any]:
        """Return the file's values, overridden by those of the suite.

        A file with suites needs the name of one.
        """
        suites = self.value.get("suites")
        if suites is None:
            if suite is not None:
                raise ConfigurationError(
                    f"{self.path} has no suites: leave out the name '{suite}', or write"
                    " them under 'suites:'."
                )
            without_suites: Mapping[str, Any] = self.value
            return without_suites
        self._check_kind(suites, Mapping, "a mapping of names to suites", ("suites",))
        if suite is None:
            raise ConfigurationError(
                f"{self.path} has several suites: name one with --suite. It has:"
                f" {', '.join(suites)}."
            )
        if suite not in suites:
            raise UnknownName(
                "suite", suite, suites, f"{self.path} has: {', '.join(suites)}."
            )
        suite_settings = suites[suite]
        self._check_kind(
            suite_settings,
            Mapping,
            "a mapping with keys such as 'tasks' and 'models'",
            ("suites", suite),
        )
        self._check_keys(suite_settings, KEYS, ("suites", suite))
        self.of_suite = dict.fromkeys(suite_settings, ("suites", suite))
        shared = {
            key: setting for key, setting in self.value.items() if key != "suites"
        }
        for key in ("common", "overrides"):
            if isinstance(shared.get(key), Mapping) and isinstance(
                suite_settings.get(key), Mapping
            ):
                suite_settings = {
                    **suite_settings,
                    key: merged(nested(shared[key]), nested(suite_settings[key])),
                }
        return {**shared, **suite_settings}

    def _field(self, key: str, setting: Any) -> Any:
        if key in KINDS and not (key == "limit" and setting is None):
            self._check_kind(setting, *KINDS[key], (key,))
            if key == "accept_failures":
                return str(setting)
        if key in TEXTS:
            if key == "give_up":
                setting = [
                    str(text) if type(text) is int else text for text in listed(setting)
                ]
            for i, text in enumerate(listed(setting)):
                self._check_kind(
                    text, str, f"{TEXTS[key]} in quotes, or a list of them", (key, i)
                )
            if key == "give_up":
                return tuple(map(self._given_up, setting))
            return tuple(
                map(self._plugin, listed(setting))
                if key == "plugins"
                else listed(setting)
            )
        if key == "tasks":
            return tuple(
                self._task(task, ("tasks", i)) for i, task in enumerate(listed(setting))
            )
        if key == "models":
            return self._models(setting, (key,))
        if key == "judge":
            judges, panel_options = split_panel(setting)
            place: KeyPath = (key,) if judges is setting else (key, PANEL)
            return self._models(judges, place), panel_options
        if key == "prompts":
            return checked(
                [
                    self._prompt(prompt, ("prompts", i))
                    for i, prompt in enumerate(listed(setting))
                ]
            )
        if key == "roles":
            return {
                role: self._model(model, ("roles", role))
                for role, model in setting.items()
            }
        if key == "overrides" and self.relative:
            return self._beside(setting)
        return dict(setting) if isinstance(setting, Mapping) else setting

    def _models(self, setting: Any, where: KeyPath) -> tuple[ModelSpec, ...]:
        return tuple(
            self._model(model, (*where, i)) for i, model in enumerate(listed(setting))
        )

    def _task(self, name: Any, where: KeyPath) -> str:
        self._check_kind(name, str, "the name or file of a task", where)
        beside = self.path.parent / name
        # The file may be followed by one of its tasks: "exams.yaml:exams-law".
        file = beside
        if beside.name and not beside.is_file():
            file = beside.with_name(beside.name.rpartition(":")[0] or beside.name)
        task_file = file if self.relative and file.is_file() else Path(name)
        if as_data_file(str(task_file)) and not is_within(
            task_file, self.folder, Path.cwd()
        ):
            raise ConfigurationError(
                f"{self.at(where)}: the data file '{name}' is outside of this file's"
                " folder and the working folder, or hidden there. Name it on the"
                " command line instead."
            )
        return str(beside) if self.relative and file.is_file() else str(name)

    def _beside(
        self, overrides: Mapping[str, Any], path: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Make file names in tasks' settings relative to the suite file, like tasks' names."""
        relocated: dict[str, Any] = {}
        for key, override in overrides.items():
            here = (*path, *str(key).split("."))
            if isinstance(override, Mapping):
                relocated[key] = self._beside(override, here)
            elif here in FILES:
                paths = [
                    str(self.path.parent / file) if isinstance(file, str) else file
                    for file in listed(override)
                ]
                relocated[key] = (
                    paths if isinstance(override, (list, tuple)) else paths[0]
                )
            else:
                relocated[key] = override
        return relocated

    def _prompt(self, prompt: Any, where: KeyPath) -> PromptSpec:
        """A prompt: the name of a text file, or a mapping with `name`, and `file` or `text`.

        The mapping may have `system` besides.
        """
        if isinstance(prompt, str):
            prompt = {"name": Path(prompt).stem, "file": prompt}
        words = "the name of a text file, or a mapping with 'name' and 'file' or 'text'"
        self._check_kind(prompt, Mapping, words, where)
        self._check_keys(prompt, ("name", "system", "file", "text"), where)
        for key, content in prompt.items():
            self._check_kind(content, str, "text", (*where, key))
        if not prompt.get("name") or ("file" in prompt) == ("text" in prompt):
            raise ConfigurationError(
                f"{self.at(where)}: a prompt has a 'name', and either a 'file' or a"
                " 'text'."
            )
        system = prompt.get("system", "")
        if "text" in prompt:
            return PromptSpec(prompt["name"], text=prompt["text"], system=system)
        file = self.path.parent / prompt["file"] if self.relative else prompt["file"]
        if self.relative and not is_within(file, self.folder, Path.cwd()):
            raise ConfigurationError(
                f"{self.at(where)}: the file '{prompt['file']}' is outside of this"
                " file's folder and the working folder, or hidden there. Name it on the"
                " command line instead, with --prompt."
            )
        return PromptSpec(prompt["name"], file=str(file), system=system)

    def _plugin(self, file: str) -> str:
        """Check a file of providers. Python files are only allowed on the command line."""
        if not file.endswith(".toml"):
            raise ConfigurationError(
                f"{self.at(('plugins',))}: '{file}' is not a TOML file of providers."
                " Name Python files on the command line, with --plugin, because they"
                " are executed."
            )
        return str(self.path.parent / file) if self.relative else file

    def _given_up(self, id_or_file: str) -> str:
        """Check an id of a sample, or a file of ids.

        The record shows the name of the file, so it must be inside the user's working folder.
        """
        if not is_id_file(id_or_file) or not self.relative:
            return id_or_file
        file = self.path.parent / id_or_file
        if not is_within(file, self.folder, Path.cwd()):
            raise ConfigurationError(
                f"{self.at(('give_up',))}: the file '{id_or_file}' is outside of this file's"
                " folder and the working folder, or hidden there. Name it on the"
                " command line instead, with --give-up."
            )
        return str(file)

    def _model(self, model: Any, where: KeyPath) -> ModelSpec:
        if isinstance(model, str):
            return ModelSpec(model)
        self._check_kind(
            model, Mapping, "a model's name or a mapping with 'model'", where
        )
        self._check_keys(model, ("model", "arguments", "label", "facts"), where)
        if "model" not in model:
            raise ConfigurationError(
                f"{self.at(where)}: the key 'model' is missing, for example 'model:"
                " demo/small'."
            )
        self._check_kind(model["model"], str, "a model's name", (*where, "model"))
        self._check_kind(
            model.get("arguments", {}), Mapping, "a mapping", (*where, "arguments")
        )
        facts = model.get("facts") or {}
        self._check_kind(facts, Mapping, "a mapping", (*where, "facts"))
        return ModelSpec(
            model["model"],
            dict(model.get("arguments", {})),
            str(model.get("label", "")),
            facts=check_facts(facts, self.at((*where, "facts"))),
        )

    def _check_keys(
        self, settings: Mapping[str, Any], known_keys: tuple[str, ...], where: KeyPath
    ) -> None:
        for key in settings:
            if key not in known_keys:
                hint = f"Known: {', '.join(known_keys)}. ({self.at((*where, key))})"
                raise UnknownName("key", str(key), known_keys, hint)

    def _check_kind(
        self, setting: Any, expected_type: Any, words: str, where: KeyPath
    ) -> None:
        name = ".".join(map(str, where))
        check_kind(setting, expected_type, words, name, f"{self.at(where)}: ")

    def at(self, where: KeyPath) -> str:
        """Return file and line of a setting; for JSON the file and the setting's name."""
        full_path = (*self.of_suite.get(where[0], ()), *where) if where else where
        return self.document.at(full_path) if self.document else str(self.path)


def _with_common(spec: ModelSpec, common: Mapping[str, Any]) -> ModelSpec:
    """Add the common arguments to a model's own, which win; an own null leaves one out."""
    unwanted = {
        name
        for name, argument in spec.arguments.items()
        if argument is None and name in common
    }
    own_arguments = {
        name: argument
        for name, argument in spec.arguments.items()
        if name not in unwanted
    }
    shared = {
        name: argument for name, argument in common.items() if name not in unwanted
    }
    names = tuple(name for name in shared if name not in own_arguments)
    return replace(spec, arguments=merged(shared, own_arguments), common=names)


def _without(setting: Any, over: Mapping[str, Any]) -> Any:
    """Return a mapping without the leaves that `over` replaces, at any depth.

    Anything else is returned as it is.
    """
    if not isinstance(setting, Mapping):
        return setting
    remaining = {}
    for key, inner_setting in setting.items():
        inner = over.get(key)
        if key not in over or (
            isinstance(inner_setting, Mapping) and isinstance(inner, Mapping)
        ):
            remaining[key] = (
                _without(inner_setting, inner)
                if isinstance(inner, Mapping)
                else inner_setting
            )
    return remaining
