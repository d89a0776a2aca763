"""The origin of settings, and what a file may not decide by itself.

A suite file or a `run.json` may come from anybody. It decides what is evaluated and how. Settings
that run code, send keys or prompts elsewhere, use another store's responses, or leave the file's
folder and the working folder are only proposed by it: the user allows them, by `--trust-file FILE`
for one command, or in their own trust file for that content. What the command line, the environment
or Python sets comes from the user and is not examined here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evalwright.core.errors import ConfigurationError
from evalwright.core.private import check_ordinary
from evalwright.core.secrets import mask
from evalwright.evaluation.judge_setting import PANEL, split_panel
from evalwright.models.built_in import OPEN_ARGUMENTS
from evalwright.models.function_files import PROVIDER as PYTHON_FUNCTIONS
from evalwright.models.remote import providers
from evalwright.models.remote.keys import find_key
from evalwright.models.trust import trust_path, trusted
from evalwright.tasks.folder_files import FROM
from evalwright.tasks.safe_files import is_within
from evalwright.tasks.sandbox_keys import is_fixed_image
from evalwright.tasks.templates import is_template
from evalwright.tasks.yaml_files import KeyPath

_SAFE = frozenset({
    "batch", "batch_poll", "batch_size", "deadline", "max_attempts", "max_concurrency",
    "max_tokens", "replicas_differ", "requests_per_minute", "revision", "seed", "temperature",
    "timeout", "top_p",
    # of remote models
    "bos", "cleaning", "context_length", "echo", "language", "leave_out", "max_tokens_field",
    "min_p", "reasoning_effort", "stream", "thinking", "top_k",
    # of local models
    "add_bos", "add_special_tokens", "chat_template_args", "chunk", "device", "device_map",
    "devices", "devices_per_replica", "dtype", "enable_thinking", "fit", "label", "latency",
    "local", "max_length", "max_memory", "memory", "prefix_token", "preset", "prompt",
    "quantization", "scoring", "sentences", "share", "text", "threads", "use_fast_tokenizer",
})  # fmt: skip
"""Arguments of models that a file may set, because they change only answers, costs and speed.

All others are only proposed.
"""
_SAFE_INTERFACES = frozenset({"chat", "completions", "embeddings"})
"""Interfaces that a file may choose; others may run tools and keep what is sent."""
_SAFE_BODY_NUMBERS = frozenset(
    {
        "add_special_tokens",
        "cache_prompt",
        "enable_thinking",
        "frequency_penalty",
        "include_reasoning",
        "length_penalty",
        "min_p",
        "min_tokens",
        "no_repeat_ngram_size",
        "presence_penalty",
        "repetition_penalty",
        "seed",
        "skip_special_tokens",
        "temperature",
        "tfs_z",
        "thinking",
        "top_a",
        "top_k",
        "top_p",
        "typical_p",
    }
)
"""Fields of a request's body that a file may set, to a number or to true or false.

They only change how a token is drawn.
"""
_EFFORTS = frozenset({"none", "minimal", "low", "medium", "high", "xhigh"})
_NAMES = frozenset(("chat_template", "file", "offload_folder", "peft", "tokenizer"))
"""Arguments that may name a file or folder.

A file may set them within its own folder and the working folder.
"""
_DATASETS = (("dataset",), ("prompt", "few_shot", "dataset"))
_MADE = ("needles", "common_words")
_MADE_OF = (("needles", "words"), ("needles", "books"), ("common_words", "words"))
FILES: frozenset[tuple[str, ...]] = frozenset(
    {
        ("dataset",),
        ("dataset", "path"),
        ("for_each", "table"),
        ("prompt", "file"),
        ("prompt", "few_shot", "dataset"),
        ("prompt", "few_shot", "dataset", "path"),
        *((*dataset, *key) for dataset in _DATASETS for key in _MADE_OF),
    }
)
"""Settings of tasks that are names of files."""
SANDBOX = "sandbox"
"""The setting of tasks that says what a model acts in."""
_WITH_FOLDERS = (("files",), ("scorers",))
"""Settings of tasks in which `from` names a folder that is put into a sandbox."""
TOOLS = "tools"
"""The setting of tasks that may name Python files and servers."""
_TOKENIZERS = frozenset(
    (*dataset, dataset_kind, "tokenizer")
    for dataset in _DATASETS
    for dataset_kind in _MADE
)
"""Settings of tasks that name a folder or a repository of the hub."""
_WITHOUT_FILES = frozenset(("litellm", "reward-server", "vectara"))
"""Backends in code whose models are those of a server."""
_AROUND_MODELS = frozenset(("likelihood", "verdict"))
"""Backends whose names contain the name of another model."""
_LONGEST = 2000
_HERE = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that a file proposes, with its place in the file."""

    path: KeyPath
    value: Any

    def describe(self, at: Callable[[KeyPath], str]) -> str:
        """Describe the setting in one line that a person can read."""
        text = mask(json.dumps(self.value, ensure_ascii=False, default=str))
        name = ".".join(json.dumps(str(key))[1:-1] for key in self.path)
        if len(text) > _LONGEST:
            text = f"{text[:_LONGEST]}… ({len(text):,} characters: read the file)"
        return f"  {name}: {text}   ({at(self.path)})"


def proposed(
    values: Mapping[str, Any], folder: Path, *, budget: bool = False
) -> list[Setting]:
    """List the settings in a file that are for the user to decide.

    Args:
        values: the file's values that nothing on the command line replaces.
        folder: the folder from which names of files in them start.
        budget: whether the user set a budget, which means nothing at somebody else's prices.
    """
    return list(
        _proposed(
            values,
            folder,
            ("plugins", "home", "replace", *(("price",) if budget else ())),
        )
    )


def arguments_needing_trust(arguments: Mapping[str, Any]) -> list[str]:
    """Find the arguments of a model that only the user may set.

    These run code, name an address, or read or write files.

    Args:
        arguments: a model's arguments, as a file that the user did not write gives them.

    Returns:
        The names of those that the user has to allow.
    """
    needing_trust = _arguments(arguments, set(), ())
    return [str(setting.path[-1]) for setting in needing_trust]


def require_allowed(
    file: Path,
    settings: Sequence[Setting],
    trust_file: str | None,
    folder: Path,
    at: Callable[[KeyPath], str],
) -> None:
    """Raise ConfigurationError, showing the settings, unless the user allows this file to set them.

    Args:
        trust_file: the file that the user named for this. Naming one that proposes nothing is an
            error as well.
        folder: the folder from which the names of its plug-ins start.
        at: returns file and line of a setting.
    """
    if trust_file is not None:
        if Path(trust_file).resolve() != file.resolve():
            raise ConfigurationError(
                f"--trust-file names '{trust_file}', but the settings are read from"
                f" '{file}': name that file, or leave it out."
            )
        if not settings:
            raise ConfigurationError(
                f"'{file}' proposes nothing that needs your permission: leave out"
                " --trust-file."
            )
        return
    if not settings:
        return
    digest = _digest(file, settings, folder)
    if digest in trusted().files:
        return
    lines = [
        (
            f"'{file}' has settings that need your permission, because they run code, send"
            " keys and prompts somewhere, or read and write files. Nothing was done. They are:"
        ),
        *(setting.describe(at) for setting in settings),
        f"If you agree, add --trust-file '{file}'.",
    ]
    if digest:
        lines.append(
            f'To allow this content from now on, write "{digest}" = "{file.name}" under'
            f" [files] of {trust_path()}."
        )
    raise ConfigurationError("\n".join(lines))


def _digest(file: Path, settings: Sequence[Setting], folder: Path) -> str:
    """Return the digest of the file and the plug-ins that it names.

    It is "" if the file trusts folders, or runs functions, tools or servers, whose code may change
    at any time, as may what it imports.
    """
    if any(
        setting.path[:2] == ("dialect", "trust")
        or (isinstance(setting.value, str) and runs_python(setting.value))
        or TOOLS in setting.path
        for setting in settings
    ):
        return ""
    digest = hashlib.sha256(check_ordinary(file).read_bytes())
    for setting in settings:
        if setting.path == ("plugins",):
            for name in listed(setting.value):
                try:
                    digest.update(
                        b"\0"
                        + hashlib.sha256(
                            check_ordinary(folder / str(name)).read_bytes()
                        ).digest()
                    )
                except OSError:
                    return ""
    return digest.hexdigest()


def _proposed(
    values: Mapping[str, Any], folder: Path, keys: Sequence[str]
) -> Iterator[Setting]:
    for key in keys:
        if values.get(key):
            yield Setting((key,), values[key])
    if values.get("out") and not is_within(Path(str(values["out"])), Path.cwd()):
        yield Setting(("out",), values["out"])
    dialect = values.get("dialect")
    if isinstance(dialect, Mapping):
        for key in ("trust", "named_folders"):
            if dialect.get(key):
                yield Setting(("dialect", key), dialect[key])
    yield from _files(values.get("overrides"), folder, ("overrides",))
    for i, task in enumerate(listed(values.get("tasks") or ())):
        if Path(str(task)).suffix in (".yaml", ".yml") and not is_within(
            folder / str(task), folder, Path.cwd()
        ):
            yield Setting(("tasks", i), task)
    models = listed(values.get("models") or ())
    specs: list[tuple[KeyPath, Any]] = [
        (("models", i), spec) for i, spec in enumerate(models)
    ]
    judge, _ = split_panel(values.get("judge"))
    judge_place: KeyPath = ("judge",)
    if judge is not values.get("judge"):
        judge_place = ("judge", PANEL)
    judge_specs: list[tuple[KeyPath, Any]] = [
        ((*judge_place, i), spec) for i, spec in enumerate(listed(judge or ()))
    ]
    names = {_provider_of(spec) for _, spec in specs}
    roles = values.get("roles")
    specs += judge_specs
    specs += (
        [(("roles", role), spec) for role, spec in roles.items()]
        if isinstance(roles, Mapping)
        else []
    )
    yield from _arguments(values.get("common"), names, ("common",))
    for at, spec in specs:
        name = spec.get("model") if isinstance(spec, Mapping) else spec
        address = str(name).partition("/")[2]
        is_url = address.startswith(("http://", "https://"))
        if not (
            _is_harmless(address, {_provider_of(spec)})
            if is_url
            else _stays_here(str(name), folder)
        ):
            yield Setting((*at, "model") if isinstance(spec, Mapping) else at, name)
        if isinstance(spec, Mapping):
            yield from _arguments(
                spec.get("arguments"), {_provider_of(spec)}, (*at, "arguments")
            )


def runs_python(name: str) -> bool:
    """Return whether opening the model of this name runs a Python file that the name gives."""
    provider, _, path = name.partition("/")
    if provider in _AROUND_MODELS:
        return runs_python(path)
    return provider == PYTHON_FUNCTIONS


def refuse_recorded_python(name: str, option: str) -> None:
    """Raise ConfigurationError for a model of a record that runs Python.

    A record may come from anywhere, so it decides on no code.

    Args:
        name: the model's name in the record.
        option: what stands before a model's name on the command line, such as "--model ".
    """
    if runs_python(name):
        raise ConfigurationError(
            f"The record names the model '{name}', which runs Python of a file here, and"
            f" only you may decide that. If you agree, name it yourself: {option}{name}."
        )


def _stays_here(name: str, folder: Path) -> bool:
    """Return whether a model's name stays inside the file's folder and the working folder.

    It may not lead to a hidden file or folder either, nor to Python that is run. A repository of
    the hub (`hf/org/name`) looks like a folder in the working folder.
    """
    provider, _, path = name.partition("/")
    if runs_python(name):
        return False
    if providers.find(provider) is not None or provider in _WITHOUT_FILES:
        return True
    if provider in _AROUND_MODELS:
        return _stays_here(path, folder)
    if path.startswith("~"):
        return False
    return is_within(Path(path), folder, Path.cwd())


def _arguments(arguments: Any, names: set[str], at: KeyPath) -> Iterator[Setting]:
    for name, argument in arguments.items() if isinstance(arguments, Mapping) else ():
        if names & OPEN_ARGUMENTS or not _is_safe(str(name), argument, names):
            yield Setting((*at, str(name)), argument)


def _is_safe(name: str, argument: Any, names: set[str]) -> bool:
    """Return whether a file may set this argument.

    `names` are the providers of the models that get it.
    """
    text = str(argument)
    if name in _NAMES:
        return not text.startswith("~") and is_within(Path(text), Path.cwd())
    if name == "subfolder":
        return not Path(text).is_absolute() and ".." not in Path(text).parts
    if name == "base_url":
        return _is_harmless(text, names)
    if name == "replicas":
        replicas = text.split(",") if isinstance(argument, str) else listed(argument)
        settings = [
            replica if isinstance(replica, Mapping) else {"base_url": replica}
            for replica in replicas
        ]
        return isinstance(argument, int) or all(
            _is_safe(str(key), its, names)
            for settings in settings
            for key, its in settings.items()
        )
    if name == "interface":
        return text.removeprefix("openai-") in _SAFE_INTERFACES
    if name == "extra_body":
        return _is_safe_body(argument)
    if name == "attn_implementation":
        return text.isidentifier()  # other names are repositories of compiled code
    return name in _SAFE or (name == "trust_remote_code" and argument is False)


def _is_safe_body(fields: Any) -> bool:
    """Return whether a file may add these fields to every request.

    Each must be known, and known to only change sampling.
    """
    if not isinstance(fields, Mapping):
        return False
    for name, setting in fields.items():
        if (
            name == "reasoning_effort"
            and isinstance(setting, str)
            and setting in _EFFORTS
        ):
            continue
        if name == "chat_template_kwargs" and _is_safe_body(setting):
            continue
        if name not in _SAFE_BODY_NUMBERS or not isinstance(setting, int | float):
            return False
    return True


def _is_harmless(address: str, names: set[str]) -> bool:
    """Return whether an address is harmless.

    It is if it is on this machine, of providers whose servers run there, and no key would be sent
    to it.
    """
    rows = [providers.find(name) for name in names]
    places = [address, *("" if row is None else row.base_url for row in rows)]
    return all(
        "\\" not in url and urlsplit(url).hostname in _HERE for url in places
    ) and not any(
        find_key(variable) for row in rows if row is not None for variable in row.key
    )


def _provider_of(spec: Any) -> str:
    name = spec.get("model") if isinstance(spec, Mapping) else spec
    return str(name).partition("/")[0]


def _files(
    overrides: Any, folder: Path, at: KeyPath, path: tuple[str, ...] = ()
) -> Iterator[Setting]:
    """Yield the settings in overrides that the user has to allow.

    These are names of files that lead outside, tools that run something, and sandboxes with a
    network, options, or an image whose content is not fixed.
    """
    if path[:1] == (SANDBOX,) and _opens_sandbox(overrides, path):
        yield Setting(at, overrides)
    elif path[:1] in _WITH_FOLDERS and path[-1:] == (FROM,):
        if _leads_out(overrides, folder):
            yield Setting(at, overrides)
    elif path[:1] == ("scorers",) and isinstance(overrides, list | tuple):
        for index, use in enumerate(overrides):
            yield from _files(use, folder, (*at, index), path)
    elif path[:1] == (TOOLS,):
        if _runs_tools(overrides, path) or any(
            not is_within(folder / file, folder, Path.cwd())
            for file in listed(overrides)
            if isinstance(file, str) and file.endswith(".json")
        ):
            yield Setting(at, overrides)
    elif isinstance(overrides, Mapping):
        for key, override in overrides.items():
            yield from _files(
                override, folder, (*at, str(key)), (*path, *str(key).split("."))
            )
    elif (
        path in FILES
        and any(
            has_magic(str(file))
            or not is_within(folder / str(file), folder, Path.cwd())
            for file in listed(overrides)
        )
    ) or (
        path in _TOKENIZERS
        and not (
            not str(overrides).startswith("~")
            and is_within(Path(str(overrides)), folder, Path.cwd())
        )
    ):
        yield Setting(at, overrides)


def _opens_sandbox(setting: Any, path: tuple[str, ...]) -> bool:
    """Return whether a task's `sandbox`, or one key of it, needs the user's permission."""
    if path == (SANDBOX,):
        keys = setting.items() if isinstance(setting, Mapping) else ()
        return any(
            _opens_sandbox(inner, (*path, *str(key).split("."))) for key, inner in keys
        )
    key = path[1]
    if key == "image":
        return bool(setting) and not is_fixed_image(str(setting))
    return key in ("network", "options") and bool(setting)


def _leads_out(name: Any, folder: Path) -> bool:
    """Return whether what is put into a sandbox may be outside of the file's and this folder."""
    return is_template(name) or not is_within(
        Path.cwd() / str(name), folder, Path.cwd()
    )


def _runs_tools(tools: Any, path: tuple[str, ...]) -> bool:
    """Return whether a task's `tools` name a Python file or an MCP server."""
    if "mcp" in path:
        return True
    if isinstance(tools, Mapping):
        return "mcp" in tools
    if isinstance(tools, list | tuple):
        return any(_runs_tools(entry, ()) for entry in tools)
    return isinstance(tools, str) and (tools.endswith(".py") or ".py:" in tools)


def listed(setting: Any) -> list[Any]:
    """Return a value that may be single or a list as a list."""
    return list(setting) if isinstance(setting, (list, tuple)) else [setting]
