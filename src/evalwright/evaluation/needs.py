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
from evalwright.models.function_files import function_file
from evalwright.models.remote.keys import key_variables
from evalwright.models.remote.providers import Provider, find, may_have_keys
from evalwright.runs.accepted_failures import is_id_file
from evalwright.tasks.definitions import Definition
from evalwright.tasks.dialects import named
from evalwright.tasks.folder_files import FROM, fixed_folder
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
    urls = [*_address_in_name(spec), *_base_urls(arguments)]
    if row.key and not named_keys:
        yield from dict.fromkeys(_provider_keys(row, urls))
    placed_variables = spec.arguments.get("variables")
    placed = placed_variables if isinstance(placed_variables, Mapping) else {}
    for name, variables in row.variables.items():
        if name not in placed and not urls:
            yield variables.partition("|")[0]


def _address_in_name(spec: ModelSpec) -> list[str]:
    """Return the address of a server that a model's name gives, if it gives one."""
    address = spec.model.partition("/")[2].partition("#")[0]
    return [address] if address.startswith(("http://", "https://")) else []


def _base_urls(arguments: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        str(mapping["base_url"]) for mapping in arguments if mapping.get("base_url")
    ]


def _provider_keys(provider: Provider, urls: Sequence[str]) -> Iterator[str]:
    """List the variable of a provider's key, unless requests go to addresses without it.

    A provider's key is only sent to its own hosts, and to those that the user's trust file allows.
    """
    if not urls:
        yield provider.key[0]
    for url in urls:
        is_own = may_have_keys(provider, url)
        yield from key_variables(url, None, provider.key, is_own)[:1]


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

    They are relative to the working folder, with forward slashes: plug-ins, functions, task files
    with what they include, prompts, data, and files of given-up samples. Files of this package are
    left out. Patterns of names stay patterns.
    """
    files = [Path(file) for file in configuration.plugins]
    files += [Path(id_file) for id_file in configuration.give_up if is_id_file(id_file)]
    specs = (*configuration.models, *configuration.roles.values())
    function_files = (function_file(spec.model) for spec in specs)
    files += [file for file in function_files if file is not None]
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
    copied = [
        document.folder(path) / name for path, name in _copied_folders(document.value)
    ]
    copied = [path / "**" if path.is_dir() else path for path in copied]
    return [*document.files, *data_files, *copied]


def _copied_folders(
    node: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Find the folders that a task copies into sandboxes: of a template, its fixed part."""
    if not path:
        for key in ("files", "scorers"):
            yield from _copied_folders(node.get(key), (key,))
    elif isinstance(node, Mapping):
        if path[0] in ("files", "scorers") and isinstance(node.get(FROM), str):
            folder, _ = fixed_folder(node[FROM])
            yield path, folder
            return
        for key, inner in node.items():
            yield from _copied_folders(inner, (*path, key))
    elif isinstance(node, list):
        for index, inner in enumerate(node):
            yield from _copied_folders(inner, (*path, index))


def _named_in(settings: Mapping[str, Any]) -> list[str]:
    return [name for path in FILES for name in _names_at(settings, path)]


def _names_at(node: Any, path: Sequence[str]) -> list[str]:
    """List the names of files at a place of a definition, without "" and other types of values."""
    for key in path:
        node = node.get(key) if isinstance(node, Mapping) else None
    return [name for name in listed(node) if isinstance(name, str) and name]
