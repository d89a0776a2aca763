"""The task file as pydantic models: every key, its type and its default. Unknown keys are errors.

Short forms (`dataset: data.jsonl`, `scorers: [choice]`) become the long form before validation, so
the models and the recorded definition have one shape. Strings that are templates are checked where
they are compiled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from evalwright.core.outcomes import NoAnswer
from evalwright.tasks.call_columns import with_expected_calls
from evalwright.tasks.long_texts import CODE_POINTS
from evalwright.tasks.names import RULE, SOURCES, is_name
from evalwright.tasks.yaml_files import kind_of, plain

Mode = Literal[
    "generate",
    "likelihood",
    "letter",
    "continuation",
    "perplexity",
    "classify",
    "given",
]
Format = Literal["auto", "chat", "text"]


def _text(value: Any) -> Any:
    """Convert numbers to text as they were written; true, false and null are not text."""
    return (
        str(value)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else value
    )


def _listed(value: Any) -> Any:
    return value if value is None or isinstance(value, list | tuple) else [value]


Text = Annotated[str, BeforeValidator(_text)]
Texts = Annotated[list[Text], BeforeValidator(lambda value: list(_listed(value)))]


class Part(BaseModel):
    """A mapping in the task file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Made(Part):
    """Synthetic rows: `count` texts, each `tokens` tokens of `tokenizer` long.

    `seed` seeds the generator; `words` are files with one word per line to draw from.
    """

    tokens: int = Field(ge=1, le=10_000_000)
    tokenizer: Text = CODE_POINTS
    count: int = Field(default=50, ge=1)
    seed: int = Field(default=0, ge=0)
    words: Texts


class Needles(Made):
    """A long text with hidden sentences that give numbers for words.

    The text is from `books`, or sentences made of `frames`; it has `hidden` such sentences. The
    question asks for the numbers of `asked` words, or of one word that has `values` numbers. The
    marks of `language` end sentences.
    """

    sentence: Text
    books: Texts | None = None
    frames: Texts | None = None
    language: Text = ""
    hidden: int = Field(default=4, ge=1, le=1000)
    asked: int | None = Field(default=None, ge=1)
    values: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _fits(self) -> Needles:
        if not self.books and not self.frames:
            raise ValueError(
                "`needles` needs `books`, text files, or `frames`, sentences to make a"
                " text of"
            )
        for key, text, parts in (
            ("sentence", self.sentence, ("{word}", "{number}")),
            *(("frames", frame, ("{a}",)) for frame in self.frames or ()),
        ):
            if lacking := [part for part in parts if part not in text]:
                raise ValueError(
                    f"`{key}` has no {' and no '.join(lacking)}, where it is filled in:"
                    f" '{text}'"
                )
        if (self.asked is None) is (self.values is None):
            raise ValueError(
                "`needles` has one of `asked`, how many words are asked for, and"
                " `values`, how many numbers the one word has"
            )
        if (self.asked or self.values or 0) > self.hidden:
            raise ValueError(
                f"of {self.hidden} `hidden` needles no more can be asked for"
            )
        return self


class CommonWords(Made):
    """A numbered list in which `common` words appear at least `ratio` times as often as others."""

    common: int = Field(default=10, ge=1)
    ratio: int = Field(default=10, ge=2, le=1000)


class Dataset(Part):
    """Where rows come from: files, the hub, the task file itself, or a generator.

    `subset` names a column to add with the row's configuration or file name. `each` adds columns:
    every row is used once for every combination of their values.
    """

    path: Texts | None = None
    format: Literal["jsonl", "json", "csv", "tsv", "parquet", "xlsx"] | None = None
    key: Text | None = None
    hub: Text | None = None
    revision: Text | None = None
    config: Text | list[Text] | None = None
    split: Text | None = None
    subset: Text | None = None
    each: dict[Text, list[Any]] = Field(default_factory=dict)
    rows: list[dict[str, Any]] | None = None
    needles: Needles | None = None
    common_words: CommonWords | None = None
    duplicates: Literal["error", "drop"] = "error"

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_source(self) -> Dataset:
        sources = [name for name in SOURCES if getattr(self, name) is not None]
        if len(sources) != 1:
            problem = (
                f"it has {' and '.join(sources)}" if sources else "it has none of them"
            )
            alternatives = (
                f"{', '.join(f'`{name}`' for name in SOURCES[:-1])} and `{SOURCES[-1]}`"
            )
            raise ValueError(f"a dataset has exactly one of {alternatives}; {problem}")
        if sources != ["hub"]:
            for name in ("revision", "config", "split"):
                if getattr(self, name) is not None:
                    raise ValueError(
                        f"`{name}` can only be used with `hub`, not with `{sources[0]}`"
                    )
        elif not re.fullmatch(
            r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", self.hub or "", re.ASCII
        ):
            raise ValueError(
                f"`hub` is the id of a data set, such as 'owner/name', not '{self.hub}'"
            )
        elif self.revision is None:
            raise ValueError(
                "a dataset from the hub needs a `revision` (a commit), so that it stays"
                " the same"
            )
        if sources != ["path"] and (self.format or self.key):
            raise ValueError(
                "`format` and `key` can only be used with `path`, not with"
                f" `{sources[0]}`"
            )
        return self


class Sample(Part):
    """Templates that make a sample from a row.

    A key that is left out takes the column of that name, if there is one.
    """

    id: Text | None = None
    input: Text | None = None
    choices: Text | list[Any] | None = None
    shuffle: bool = False
    target: Any = None
    aliases: Any = None
    passages: Any = None
    cluster: Text | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


Where = dict[str, Any] | str | None


class FewShot(Part):
    """Worked examples before the question."""

    count: int = Field(ge=0)
    dataset: Dataset | None = None
    where: Where = None
    sample: Sample | None = None
    select: Literal["first", "random", "per-sample"] = "random"
    same: Texts = Field(default_factory=list)
    seed: int = 0


class Prompt(Part):
    """What the model reads, as templates.

    `file` is replaced by its text, as `user`, before validation.
    """

    file: Text | None = None
    fields: dict[str, Text] = Field(default_factory=dict)
    system: Text = ""
    user: Text | list[Text] | None = None
    assistant: Text | None = None
    images: Text | list[Text] | None = None
    prefill: Text = ""
    delimiter: Text = " "
    separator: Text = "\n\n"
    format: Format = "auto"
    few_shot: FewShot | None = None

    @field_validator("fields", mode="after")
    @classmethod
    def _words(cls, value: Any) -> Any:
        for name in value:
            if not name.isidentifier():
                raise ValueError(
                    f"the field '{name}' must be a valid template variable name"
                )
        return value

    @field_validator("user", mode="after")
    @classmethod
    def _turns(cls, value: Any) -> Any:
        if value == []:
            raise ValueError("a conversation needs at least one user turn")
        return value


class Drawing(Part):
    """How text is generated.

    An explicit null as temperature leaves all sampling to the model.
    """

    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=10)
    top_p: float | None = Field(default=None, gt=0, le=1)
    stop: Texts | None = None
    seed: int | None = None
    top_k: int | None = Field(default=None, ge=1)
    min_p: float | None = Field(default=None, gt=0, le=1)
    num_beams: int | None = Field(default=None, ge=1, le=1000)
    top_logprobs: int | None = Field(default=None, ge=0, le=100)
    reasoning_effort: Text | None = None
    reasoning_budget: int | None = Field(default=None, ge=1)
    json_schema: str | None = None
    tool_choice: Text | None = None
    parallel_tool_calls: bool | None = None

    @field_validator("json_schema", mode="before")
    @classmethod
    def _canonical(cls, value: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        if not isinstance(value, Mapping):
            raise ValueError(f"a JSON schema is a mapping, not {kind_of(value)}")
        return json.dumps(
            plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )

    @field_validator("json_schema", mode="after")
    @classmethod
    def _is_schema(cls, value: Any) -> Any:
        try:
            fits = value is None or isinstance(json.loads(value), dict)
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                "`json_schema` must be a JSON schema: a mapping, or the same as JSON"
            )
        return value

    @field_validator("stop", mode="after")
    @classmethod
    def _not_empty(cls, value: Any) -> Any:
        if value and "" in value:
            raise ValueError("an empty stop string would end every answer immediately")
        return value


class Answer(Drawing):
    """How an answer is formed.

    `column` is the column of the answers, if the mode is `given`. `text` and `chat` hold settings
    for one form of prompt only.
    """

    mode: Mode = "generate"
    column: Text | None = None
    draws: int = Field(default=1, ge=1)
    text: Drawing | None = None
    chat: Drawing | None = None


class StrategyUse(Part):
    """A strategy with its options."""

    name: Text
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"name": value}
        if not isinstance(value, Mapping) or "name" not in value:
            raise ValueError(
                "a strategy is a name, or a mapping with `name` and its options, not"
                f" {kind_of(value)}"
            )
        inline_options = {
            key: item for key, item in value.items() if key not in ("name", "options")
        }
        return {
            "name": value["name"],
            "options": {**dict(value.get("options") or {}), **inline_options},
        }


class ScorerUse(Part):
    """A scorer with its options, under the name of its column."""

    name: Text
    use: Text
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return _named_use(value, "scorer", ())


class MetricUse(Part):
    """A metric with its options, over one scorer's column; `name` is the label shown."""

    name: Text | None = None
    use: Text
    scorer: Text | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return _named_use(value, "metric", ("scorer",))


def _named_use(value: Any, kind: str, own_keys: tuple[str, ...]) -> Any:
    """Bring `name`, `{name: options}` and `{name: label, use: name, ...options}` into one form."""
    if isinstance(value, str):
        return {"name": value if kind == "scorer" else None, "use": value}
    if not isinstance(value, Mapping) or not value:
        raise ValueError(
            f"a {kind} is a name, or a mapping of a name to its options, not"
            f" {kind_of(value)}"
        )
    if "use" in value:
        inline_options = {
            key: item
            for key, item in value.items()
            if key not in ("name", "use", "options", *own_keys)
        }
        options = {**dict(value.get("options") or {}), **inline_options}
        table = {key: value[key] for key in ("name", "use", *own_keys) if key in value}
        if kind == "scorer":
            table.setdefault("name", value["use"])
        return {**table, "options": options}
    if len(value) != 1:
        raise ValueError(
            f"a {kind} with a label is written {{name: label, use: {kind}, ...options}}"
        )
    name, options = next(iter(value.items()))
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(
            f"the options of the {kind} '{name}' are a mapping, not {kind_of(options)}"
        )
    options = dict(options or {})
    table = {key: options.pop(key) for key in own_keys if key in options}
    label = options.pop("name", name if kind == "scorer" else None)
    return {"name": label, "use": name, **table, "options": options}


class SandboxBounds(Part):
    """What programs in a sandbox may use."""

    seconds: float = Field(default=60.0, gt=0, le=86_400)
    memory_mb: int = Field(default=1024, ge=16, le=1 << 24)
    processes: int = Field(default=128, ge=2, le=1 << 20)
    disk_mb: int = Field(default=256, ge=1, le=1 << 24)
    output_kb: int = Field(default=1024, ge=1, le=1 << 16)


class SandboxUse(Part):
    """The sandbox in which a model acts. `image` and `environment` may be templates over rows."""

    backend: Text = "jail"
    image: Text = ""
    network: bool = False
    folder: Text = "/work"
    environment: dict[Text, Text] = Field(default_factory=dict)
    limits: SandboxBounds = Field(default_factory=SandboxBounds)
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"backend": value} if isinstance(value, str) else value

    @field_validator("folder", mode="after")
    @classmethod
    def _is_absolute(cls, value: str) -> str:
        if why := why_no_path(value) or ("" if value.startswith("/") else _RELATIVE):
            raise ValueError(f"the sandbox's folder {why}: '{value[:80]}'")
        return value

    @field_validator("environment", mode="after")
    @classmethod
    def _names(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
                raise ValueError(f"'{name[:80]}' cannot be the name of a variable")
            if "\0" in text:
                raise ValueError(f"the variable '{name[:80]}' has a NUL in its text")
        return value


_RELATIVE = "is an absolute path, such as /work"
_OF_THE_KERNEL = re.compile(r"/+(?:dev(?!/+shm(?:/|$))|proc|sys)(?:/|$)")
MAX_PATH_CHARS = 1_000
"""Most characters of a path in a sandbox."""


def why_no_path(path: str) -> str:
    """Return why a text cannot be a path in a sandbox, for a message; "" if it can."""
    if not path.strip("/.") or len(path) > MAX_PATH_CHARS:
        return f"names a file or folder, in at most {MAX_PATH_CHARS:,} characters"
    if ".." in path.split("/") or not path.isprintable():
        return "has no '..' and no control characters"
    if _OF_THE_KERNEL.match(path):
        return "is not in /dev, /proc or /sys, which are the kernel's"
    return ""


class ActingLimits(Part):
    """How long a model may act; null for no limit."""

    messages: int | None = Field(default=50, ge=1, le=100_000)
    tokens: int | None = Field(default=None, ge=1)
    dollars: float | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=None, gt=0)


class TaskFile(Part):
    """The whole task file, after `include` and `for_each`."""

    task: Text
    version: Text = "1"
    description: Text = ""
    group: Texts = Field(default_factory=list)
    dataset: Dataset
    where: Where = None
    sample: Sample = Field(default_factory=Sample)
    prompt: Prompt = Field(default_factory=Prompt)
    answer: Answer = Field(default_factory=Answer)
    # A template over rows, or a list of definitions, files and servers (`tasks.offered_tools`).
    tools: Any = None
    # What a model acts in, and how long it may (`tasks.sandbox_keys`).
    sandbox: SandboxUse | None = None
    # Path in the sandbox -> content or {from: folder or file}; or a template that gives these.
    files: dict[Text, Any] | str | None = None
    setup: Text | None = None
    solution: Text | None = None
    limits: ActingLimits | None = None
    strategy: StrategyUse | None = None
    scorers: list[ScorerUse] | None = None
    metrics: list[MetricUse] | None = None
    score_as_empty: list[NoAnswer] | None = None
    no_answer: Literal["worst", "unscored"] = "worst"
    slices: Texts = Field(default_factory=lambda: ["domain", "language"])
    metadata: dict[str, Any] = Field(default_factory=dict)
    # Where boards put the task. It decides no prompt and no score, and so is in no identity.
    board: dict[str, Text] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _expected_calls(cls, value: Any) -> Any:
        return with_expected_calls(value)

    @field_validator("task", "group", mode="after")
    @classmethod
    def _name(cls, value: Any) -> Any:
        for name in value if isinstance(value, list) else [value]:
            if not is_name(name):
                raise ValueError(f"'{name}' cannot be a name: {RULE}")
        return value


PARTS: dict[tuple[str, ...], type[Part]] = {
    (): TaskFile,
    ("dataset",): Dataset,
    ("dataset", "needles"): Needles,
    ("dataset", "common_words"): CommonWords,
    ("sample",): Sample,
    ("prompt",): Prompt,
    ("prompt", "few_shot"): FewShot,
    ("prompt", "few_shot", "dataset"): Dataset,
    ("prompt", "few_shot", "sample"): Sample,
    ("answer",): Answer,
    ("answer", "text"): Drawing,
    ("answer", "chat"): Drawing,
    ("sandbox",): SandboxUse,
    ("sandbox", "limits"): SandboxBounds,
    ("limits",): ActingLimits,
}
"""The model of each place in the file, to suggest what an unknown key may have meant."""

FILE_KEYS = ("include", "for_each")
"""Keys that are processed before validation."""
