"""What an evaluation needs where it runs: files, keys, and extras of this package.

Nothing is opened or sent.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import evalwright
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.evaluation.origins import FILES, listed
from evalwright.models.built_in import EXTRAS, KEYS
from evalwright.models.remote.providers import Provider, find, may_have_keys
from evalwright.runs.accepted_failures import is_id_file
from evalwright.tasks.definitions import Definition
from evalwright.tasks.dialects import named
from evalwright.tasks.loading import find_definitions, names_like
from evalwright.tasks.overrides import nested

FORMAT_EXTRAS = {".parquet": "parquet", ".xlsx": "xlsx"}
"""The extra that reading a data file needs, by its suffix."""
_PACKAGE = Path(evalwright.__file__).parent


def keys_of(configuration: Configuration) -> list[str]:
    """List the environment variables in which the models look for keys and accounts.

    Providers in the configuration's own plug-ins are known only once those are loaded.
    """
    specs = (*configuration.models, *configuration.roles.values())
    return list(dict.fromkeys(name for spec in specs for name in _keys_of(spec)))


def _keys_of(spec: ModelSpec) -> Iterator[str]:
    provider = spec.model.partition("/")[0]
    row = find(provider)
    arguments = [spec.arguments, *_replicas(spec.arguments)]
    named_keys = [
        str(mapping["api_key_env"])
        for mapping in arguments
        if mapping.get("api_key_env")
    ]
    yield from named_keys
    if row is None:
        if provider in KEYS and not named_keys:
            yield KEYS[provider]
        return
    if row.key and not named_keys and _gets_keys(spec, row):
        yield row.key[0]
    placed_variables = spec.arguments.get("variables")
    placed = placed_variables if isinstance(placed_variables, Mapping) else {}
    for name, variables in row.variables.items():
        if name not in placed and not _addresses(spec):
            yield variables.partition("|")[0]


def _gets_keys(spec: ModelSpec, row: Provider) -> bool:
    """Return whether the provider's key is sent to a model; a server of one's own gets none."""
    addresses = _addresses(spec)
    return not addresses or any(may_have_keys(row, address) for address in addresses)


def _addresses(spec: ModelSpec) -> list[str]:
    """List the addresses of servers that a model's name or arguments give."""
    in_name = spec.model.partition("/")[2].partition("#")[0]
    addresses = [in_name] if in_name.startswith(("http://", "https://")) else []
    base_url = spec.arguments.get("base_url")
    return [*addresses, str(base_url)] if base_url else addresses


def _replicas(arguments: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    replicas = arguments.get("replicas")
    return [replica for replica in listed(replicas) if isinstance(replica, Mapping)]


def extras_of(configuration: Configuration) -> list[str]:
    """List the package extras that the configuration's models and the data of its tasks need."""
    specs = (*configuration.models, *configuration.roles.values())
    providers = (spec.model.partition("/")[0] for spec in specs)
    extras = [EXTRAS[provider] for provider in providers if provider in EXTRAS]
    extras += [
        FORMAT_EXTRAS[suffix]
        for file in files_of(configuration)
        if (suffix := Path(file).suffix.lower()) in FORMAT_EXTRAS
    ]
    if any(map(is_from_hub, _definitions(configuration))):
        extras.append("hub")
    return list(dict.fromkeys(extras))


def is_from_hub(definition: Any) -> bool:
    """Return whether a task's data come from the Hugging Face Hub."""
    document = getattr(definition, "document", None)  # a task made by Python has none
    dataset = document.value.get("dataset") if document else None
    return isinstance(dataset, dict) and "hub" in dataset


def files_of(configuration: Configuration) -> list[str]:
    """List the user's own files that the evaluation reads.

    They are relative to the working folder, with forward slashes: plug-ins, task files with what
    they include, prompts, data, and files of given-up samples. Files of this package are left out.
    Patterns of names stay patterns.
    """
    files = [Path(file) for file in configuration.plugins]
    files += [Path(id_file) for id_file in configuration.give_up if is_id_file(id_file)]
    files += [Path(name) for name in _named_in(nested(configuration.overrides))]
    for definition in _definitions(configuration):
        files += _files_of_task(definition)
    own_files = (file for file in files if not file.resolve().is_relative_to(_PACKAGE))
    return list(
        dict.fromkeys(Path(os.path.relpath(file)).as_posix() for file in own_files)
    )


def _definitions(configuration: Configuration) -> list[Any]:
    """Return the definitions of the tasks, without those of other frameworks.

    Those have files of their own.
    """
    definitions: list[Any] = []
    for name in configuration.tasks:
        if named(name) is None:
            overrides = configuration.overrides or None
            definitions += [
                definition
                for member in names_like(name)
                for definition in find_definitions(member, overrides=overrides)
            ]
    return definitions


def _files_of_task(definition: Any) -> list[Path]:
    if not isinstance(definition, Definition):
        return []
    document = definition.document
    data_files = [
        document.folder(path) / name
        for path in FILES
        for name in _names_at(document.value, path)
    ]
    return [*document.files, *data_files]


def _named_in(settings: Mapping[str, Any]) -> list[str]:
    return [name for path in FILES for name in _names_at(settings, path)]


def _names_at(node: Any, path: Sequence[str]) -> list[str]:
    """List the names of files at a place of a definition, without "" and other types of values."""
    for key in path:
        node = node.get(key) if isinstance(node, Mapping) else None
    return [name for name in listed(node) if isinstance(name, str) and name]
