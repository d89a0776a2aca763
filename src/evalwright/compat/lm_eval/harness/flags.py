"""The flags of `lm_eval run` 0.4.13, parsed into one mapping with the names of its YAML `--config`.

Flags of older releases are refused with the current flag to use.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from evalwright.compat.lm_eval.tables import TABLES
from evalwright.extend import ConfigurationError, check_known, read_yaml, reraise_as

SEEDS = (0, 1234, 1234, 1234)
"""Default seeds of random, numpy, torch and few-shot sampling."""

DEFAULTS = {"model_args": {}, "batch_size": 1, "device": "cuda:0", "gen_kwargs": {}}
"""What lm_eval's command records for settings that were not given; in Python they are None."""

FLAGS: list[list[str]] = TABLES["flags"]
"""Each flag's name, short form, type and help."""
NATIVE_FLAGS: list[list[str]] = TABLES["own"]
"""Our own flags, in addition to lm_eval's."""
KINDS = {name: kind for name, _, kind, _ in FLAGS}
_NAMES = [name for name, *_ in (*FLAGS, *NATIVE_FLAGS)]
_COMMAND_LINE_ONLY = (
    "trust",
    "plugin",
    "trust_remote_code",
    "home",
    "wandb_args",
    "wandb_config_args",
    "trackio_args",
    "hf_hub_log_args",
)
_COMMAND_LINE_ONLY_ARGUMENTS = (
    "trust_remote_code",
    "base_url",
    "header",
    "headers",
    "auth_token",
    "api_key",
)
"""Model arguments that only the command line may set, not a file."""
_TRUE = ("true", "1", "yes")
_FALSE = ("false", "0", "no")
_CACHING = ("true", "refresh", "delete")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise wrong usage as an error of ours, with its exit code."""
        sentence = f"{message[0].upper()}{message[1:]}"
        raise ConfigurationError(
            f"{sentence}. `evalwright lm-eval --help` shows all flags."
        )


_PARSER_OPTIONS: dict[str, dict[str, Any]] = {
    "flag": {"action": "store_true"},
    "names": {"nargs": "+", "action": "extend"},
    "mapping": {"nargs": "+", "action": "extend"},
    "flag or text": {"nargs": "?", "const": True},
    "integer": {"type": int},
    "number": {"type": float},
}


def parser() -> argparse.ArgumentParser:
    """Create the parser of `lm_eval run`. Flags that are not given are absent from its result."""
    argument_parser = _Parser(
        prog="evalwright lm-eval", add_help=False, argument_default=argparse.SUPPRESS
    )
    for name, short, kind, _ in (*FLAGS, *NATIVE_FLAGS):
        argument_parser.add_argument(
            f"--{name}",
            *filter(None, [short]),
            dest=name,
            **_PARSER_OPTIONS.get(kind, {}),
        )
    return argument_parser


def read_arguments(arguments: Sequence[str]) -> dict[str, Any]:
    """Parse a command line; it overrides the file of --config.

    `named_folders` holds only folders from the command line. Raises ConfigurationError.
    """
    if obsolete := renamed_flags(arguments):
        raise ConfigurationError(" ".join(obsolete))
    flags = vars(parser().parse_args([_with_underscores(word) for word in arguments]))
    file_settings = read_config(flags["config"]) if "config" in flags else {}
    settings = normalise_settings({**file_settings, **flags})
    if "include_path" in flags:
        settings["named_folders"] = [str(flags["include_path"])]
    return settings


def _with_underscores(word: str) -> str:
    """Write a flag with underscores, as lm_eval does."""
    name, equals, value = word.partition("=")
    return (
        f"--{name[2:].replace('-', '_')}{equals}{value}"
        if re.match(r"--\w", word)
        else word
    )


def read_config(path: str) -> dict[str, Any]:
    """Read the settings of a YAML file. Raises ConfigurationError and UnknownName."""
    document = read_yaml(Path(path), "settings file")
    if not isinstance(document.value, Mapping):
        raise ConfigurationError(
            f"{path} must be a mapping of settings, such as `tasks: [arc_easy]`."
        )
    settings = dict(document.value)
    arguments = settings.get("model_args")
    inner = parse_mapping("model_args", arguments) if arguments else {}
    forbidden = [name for name in _COMMAND_LINE_ONLY if name in settings]
    forbidden += [
        f"model_args.{name}" for name in _COMMAND_LINE_ONLY_ARGUMENTS if name in inner
    ]
    if names_a_file(settings.get("model")):
        forbidden.append("model")
    if forbidden:
        raise ConfigurationError(
            f"{path} sets {forbidden[0]}, which a file may not: it decides what code runs, or"
            " who gets a key or the results. Give it on the command line."
        )
    for name, allowed_folder, reason in (
        ("include_path", Path(path).resolve().parent, "that is not beside it"),
        ("output_path", Path.cwd(), "outside the folder that you are in"),
    ):
        folder = settings.get(name)
        if not folder:
            continue
        if not Path(str(folder)).resolve().is_relative_to(allowed_folder):
            raise ConfigurationError(
                f"{path} sets {name} to a folder {reason}. Give it on the command line:"
                f" --{name} {folder}"
            )
    return settings


def normalise_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Convert settings to one form: mappings, lists of names, four seeds, numbers.

    Raises ConfigurationError, UnknownName.
    """
    normal_settings: dict[str, Any] = {}
    for name, value in settings.items():
        check_known("setting of lm_eval", [name], _NAMES, "")
        if (
            value is None
            or name == "config"
            or (value is False and name != "fewshot_as_multiturn")
        ):
            continue
        normal_settings[name] = _normalise_value(name, value)
    if output_path := normal_settings.get("hf_hub_log_args", {}).get("output_path"):
        normal_settings.setdefault("output_path", str(output_path))
    _check_settings(normal_settings)
    return normal_settings


def _normalise_value(name: str, value: Any) -> Any:
    kind = KINDS.get(name)
    reader = {
        "seed": _parse_seeds,
        "samples": _parse_samples,
        "limit": _parse_limit,
    }.get(name)
    if reader is not None:
        return reader(value)
    if kind == "mapping":
        return parse_mapping(name, value)
    if name in ("tasks", "trust", "plugin"):
        return [
            listed_name
            for text in ([value] if isinstance(value, str) else value)
            for listed_name in split_names(text)
        ]
    expected = ""
    if name == "fewshot_as_multiturn":
        if str(value).lower() in (*_TRUE, *_FALSE):
            return str(value).lower() in _TRUE
        expected = "true or false"
    elif name in ("batch_size", "max_batch_size"):
        if not is_size(value, auto=name == "batch_size"):
            expected = (
                "a whole number of at least"
                f" 1{', auto or auto:N' if name == 'batch_size' else ''}"
            )
    elif (
        name != "include_path"
        and kind in ("text", "integer")
        and isinstance(value, Mapping | list)
    ):
        expected = "one value"
    elif name == "cache_requests" and isinstance(value, str) and value not in _CACHING:
        expected = f"{', '.join(_CACHING)} or nothing"
    if expected:
        raise ConfigurationError(
            f"--{name} takes {expected}, not {quoted(str(value))}."
        )
    return value


def names_a_file(model: Any) -> bool:
    """Whether a model is given as a class in a Python file: `path.py:Class`."""
    return isinstance(model, str) and ".py:" in model


def is_size(value: Any, *, auto: bool = True) -> bool:
    """Whether a value is a batch size: a number above 0, or, with `auto`, "auto" or "auto:N"."""
    head, colon, number = str(value).partition(":")
    if auto and head == "auto" and not colon:
        return True
    text = number if auto and head == "auto" else str(value)
    return not isinstance(value, bool) and text.isdecimal() and int(text) > 0


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Raise for combinations that lm_eval refuses too."""
    if obsolete := renamed_values(settings):
        raise ConfigurationError(" ".join(obsolete))
    if settings.get("fewshot_as_multiturn") and not settings.get("apply_chat_template"):
        raise ConfigurationError("--fewshot_as_multiturn needs --apply_chat_template.")
    if settings.get("samples") and settings.get("limit") is not None:
        raise ConfigurationError("Give --samples or --limit, not both.")
    wants = [name for name in ("log_samples", "predict_only") if settings.get(name)]
    if wants and not settings.get("output_path"):
        raise ConfigurationError(
            f"--{wants[0]} needs --output_path: the folder for the files."
        )


def split_names(text: Any) -> list[Any]:
    """Split a text at commas into names; anything but text becomes a list of one."""
    return (
        [name.strip() for name in text.split(",") if name.strip()]
        if isinstance(text, str)
        else [text]
    )


def parse_mapping(name: str, value: Any) -> dict[str, Any]:
    """Parse `key=value` texts, a JSON object, or a mapping.

    Raises ConfigurationError.
    """
    if isinstance(value, Mapping):
        return dict(value)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(
        isinstance(text, str) for text in texts
    ):
        raise ConfigurationError(
            f"--{name} takes key=value, or a mapping, not {quoted(str(value))}."
        )
    if len(texts) == 1 and texts[0].lstrip().startswith("{"):
        with reraise_as(
            ConfigurationError,
            f"--{name}: {quoted(texts[0])} is not valid JSON",
            ValueError,
        ):
            content = json.loads(texts[0])
        return dict(content)
    mapping: dict[str, Any] = {}
    for pair in (pair for text in texts for pair in _split_top_level(text)):
        key, equals, content = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigurationError(f"--{name} takes key=value, not {quoted(pair)}.")
        mapping[key.strip()] = _parse_scalar(content)
    return mapping


def quoted(text: str) -> str:
    """Quote a command-line argument for a message, shortened to 80 characters."""
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def _split_top_level(text: str) -> list[str]:
    """Split at commas that are outside brackets and quotes."""
    segments = [""]
    depth = 0
    quote = ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "[({":
            depth += 1
        elif char in "])}":
            depth = max(depth - 1, 0)
        elif char == "," and not depth:
            segments.append("")
            continue
        segments[-1] += char
    return [segment for segment in segments if segment]


def _parse_scalar(text: str) -> Any:
    """Parse a value as lm_eval does: true, false, numbers, Python literals, else text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.isnumeric() and text.isascii():
        return int(text)
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _parse_limit(value: Any) -> float:
    try:
        limit = value if isinstance(value, int) else float(value)
        int(limit)
        return limit
    except (TypeError, ValueError, OverflowError):
        raise ConfigurationError(f"--limit takes a number, not {value!r}.") from None


def _parse_seeds(value: Any) -> tuple[int | None, ...]:
    seeds = value.split(",") if isinstance(value, str) else value
    try:
        seed_list = list(seeds) if isinstance(seeds, list | tuple) else [seeds]
        parsed = [
            None if str(seed).strip().lower() == "none" else int(seed)
            for seed in seed_list
        ]
    except (TypeError, ValueError):
        parsed = []
    if len(parsed) == 1:
        parsed *= len(SEEDS)
    elif len(parsed) == len(SEEDS) - 1:
        parsed.append(SEEDS[-1])
    if len(parsed) == len(SEEDS):
        return tuple(parsed)
    expected = "one whole number, or four with commas (None for no seed)"
    raise ConfigurationError(f"--seed takes {expected}, not {value!r}.")


def _parse_samples(value: Any) -> dict[str, list[int]]:
    """Parse --samples: row numbers by task. Raises ConfigurationError."""
    if isinstance(value, str):
        text = value
        try:
            if not text.lstrip().startswith(("{", "[")):
                text = Path(text).read_text(encoding="utf-8")
            value = json.loads(text)
        except OSError as error:
            message = (
                f"The file of --samples, {quoted(text)}, cannot be read:"
                f" {error.strerror}."
            )
            raise ConfigurationError(message) from error
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(
                f"--samples {quoted(text)} is not valid JSON: {error}."
            ) from error
    is_valid = isinstance(value, Mapping) and all(
        isinstance(rows, list)
        and rows
        and all(type(row) is int and row >= 0 for row in rows)
        for rows in value.values()
    )
    if is_valid and value:
        return {str(task): list(rows) for task, rows in value.items()}
    example = "'{\"arc_easy\": [0, 1, 2]}'"
    raise ConfigurationError(
        f"--samples takes rows by task, at least one each, such as {example}."
    )


# What older releases said

_OLD: dict[str, dict[str, str]] = TABLES["renamed"]
MODELS = _OLD["models"]


def renamed_flags(arguments: Sequence[str]) -> list[str]:
    """Return a sentence for each obsolete flag of a command line, and for its model class."""
    words = [
        token
        for word in arguments
        for token in (word.split("=", 1) if word[:2] == "--" else (word,))
    ]
    names = dict.fromkeys(
        word[2:].replace("-", "_") for word in words if word.startswith("--")
    )
    sentences = [
        _rename_hint(f"--{name}", _OLD["flags"][name])
        for name in names
        if name in _OLD["flags"]
    ]
    models = [
        model
        for flag, model in pairwise(words)
        if flag == "--model" and model in MODELS
    ]
    return sentences + [renamed_model(model) for model in models] if sentences else []


def renamed_model(name: str) -> str:
    """Return a sentence for an obsolete model class, "" if it never existed."""
    return (
        _rename_hint(f"--model {name}", f"--model {MODELS[name]}")
        if name in MODELS
        else ""
    )


def renamed_values(settings: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each obsolete model argument or task list. settings: normalised."""
    model = str(settings.get("model", "hf"))
    lists = _OLD["lists"]
    is_transformers = MODELS.get(model, model) in ("hf", "hf-auto", "huggingface")
    sentences = [
        _rename_hint(f"{key} in --model_args", replacement)
        for key, replacement in _OLD["arguments"].items()
        if is_transformers and key in settings.get("model_args", {})
    ]
    named = [
        name
        for name in settings.get("tasks") or ()
        if isinstance(name, str) and name in lists
    ]
    sentences += [
        _rename_hint(f"--tasks {name}", f"`evalwright lm-eval ls {lists[name]}`")
        for name in named
    ]
    return (
        [*sentences, renamed_model(model)]
        if sentences and model in MODELS
        else sentences
    )


def renamed_tasks(names: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each task that was renamed; used when a task is not found."""
    for name in names:
        for old, new in _OLD["tasks"].items():
            if match := re.fullmatch(old, name):
                yield _rename_hint(f"'{name}'", f"--tasks {match.expand(new)}")
                break


def _rename_hint(old: str, new: str) -> str:
    return f"{old} is of an older lm_eval: in its place write {new}."
