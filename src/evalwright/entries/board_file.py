"""`board.yaml`: everything that the maintainers of a leaderboard decide.

    title: Our board
    suite: {tasks: [factual-choice], accept_failures: 2%}    # a suite file without models
    board: {tasks_are: items}                                # options of `evalwright leaderboard`
    entries:
      providers: [openai, anthropic]     # what `model:` of an entry may begin with
      base_urls: []                      # other addresses, or {url: ..., key: VARIABLE}
      arguments: {temperature: [0, 2], reasoning_effort: [low, high], max_tokens: }
      most_dollars: 20
      prices: {openai/new-model: 1.25/10}
      maintainers: [octocat]             # may change everybody's entries
    trial: {samples: 200, cases: 3, budget: 1 USD}
    publish: {readme: README.md, plot: img/board.svg, site: site, samples: none}
    drift: {every: week, items: 200, repeats: 2, budget: 2 USD}

It is complete and strict: an unknown key is an error with its line, and the closest known one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName, UsageError
from evalwright.entries.addresses import allowing_address, wrong_address
from evalwright.evaluation.budgets import parse_budget, parse_prices
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.evaluation.configuration_file import read_part
from evalwright.evaluation.origins import (
    Setting,
    arguments_needing_trust,
    require_allowed,
)
from evalwright.models.built_in import BUILT_IN
from evalwright.models.remote import providers
from evalwright.models.remote.prices import Price
from evalwright.models.remote.providers import add_file
from evalwright.tasks.safe_files import is_within
from evalwright.tasks.yaml_files import Document, KeyPath, kind_of, read_document

BOARD_FILE = "board.yaml"
ENTRIES_FOLDER = "entries"
DRIFT_FOLDER = "drift"
RESULTS_FOLDER = "results"
LOCAL_PROVIDERS = ("demo", "hf", "vllm-local")
"""Providers without a server whose models are named by a repository, or come with the package."""
BOARD_OPTIONS = (
    "best", "by", "colour_by", "examples", "facts", "least_answered", "metric", "preset",
    "rank_by", "ratings", "tasks_are", "where",
)  # fmt: skip
"""Options of `evalwright leaderboard` that say what the board shows, not where."""
COMMANDS_OWN = (
    "budget", "home", "models", "name", "out", "price", "prompts", "replace", "resend_empty",
    "shard", "suites",
)  # fmt: skip
"""Settings of a suite that the entries or the commands make."""
PERIODS = ("day", "week", "month")
DEFAULT_MOST_DOLLARS = 20.0
_SECRET = re.compile(r"[A-Z][A-Z0-9_]{2,99}")
_LOGIN = re.compile(r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,38}")
_SAMPLES = re.compile(
    r"none|release|s3://[a-z0-9][a-z0-9.-]{2,62}(/[A-Za-z0-9][A-Za-z0-9._-]*)*"
    r"|hub:[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*"
)


@dataclass(frozen=True, slots=True)
class ArgumentRule:
    """What an entry may set an argument to; without anything, any plain value.

    Attributes:
        low: the least number; None for no bound.
        high: the greatest number.
        words: the values that are allowed.
    """

    low: float | None = None
    high: float | None = None
    words: tuple[str | int | float | bool, ...] = ()

    def refuses(self, scalar: object) -> str:
        """Say what a value must be; "" if it is allowed."""
        if self.words:
            is_allowed = any(
                scalar == word and isinstance(scalar, bool) == isinstance(word, bool)
                for word in self.words
            )
            listed = ", ".join(map(str, self.words))
            return "" if is_allowed else f"must be one of: {listed}"
        if self.low is None or self.high is None:
            return ""
        is_number = isinstance(scalar, int | float) and not isinstance(scalar, bool)
        if is_number and self.low <= scalar <= self.high:  # type: ignore[operator]
            return ""
        return f"must be a number from {self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class EntryRules:
    """What entries may have.

    Attributes:
        providers: what the name of a model may begin with.
        base_urls: addresses besides the providers' own, each with the variable of its key or "".
        arguments: by name, what entries may set.
        most_dollars: the price of a whole run above which an entry is refused.
        prices: prices by model, where the tables do not know them or are wrong.
        maintainers: who may change everybody's entries, as named on GitHub.
    """

    providers: tuple[str, ...]
    base_urls: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, ArgumentRule] = field(default_factory=dict)
    most_dollars: float = DEFAULT_MOST_DOLLARS
    prices: Mapping[str, Price] = field(default_factory=dict)
    price_texts: Mapping[str, str] = field(default_factory=dict)
    maintainers: tuple[str, ...] = ()

    def is_maintainer(self, login: str) -> bool:
        """Whether a name on GitHub, in any case, is one of the maintainers."""
        return login.casefold() in {name.casefold() for name in self.maintainers}

    def key_of(self, address: str) -> str:
        """Return the variable whose key goes to an address; "" for none."""
        prefix = allowing_address(address, tuple(self.base_urls))
        return "" if prefix is None else self.base_urls[prefix]


@dataclass(frozen=True, slots=True)
class TrialRules:
    """What is tried before a merge.

    Attributes:
        samples: number of samples.
        cases: number of the board's cases whose answers are shown whole.
        budget: what a trial may spend.
    """

    samples: int = 200
    cases: int = 3
    budget: str = "1 USD"


@dataclass(frozen=True, slots=True)
class PublishRules:
    """Where the board goes.

    Attributes:
        readme: the file with the table between markers; "" for none.
        plot: the picture; "" for none.
        site: the folder of pages; "" for none.
        samples: where samples go: "none", "release", "s3://bucket/folder" or "hub:org/dataset".
    """

    readme: str = "README.md"
    plot: str = ""
    site: str = "site"
    samples: str = "none"


@dataclass(frozen=True, slots=True)
class DriftRules:
    """How models are watched.

    Attributes:
        every: day, week or month.
        items: size of the fixed sample.
        repeats: how often each item is asked in a round.
        budget: what a round may spend.
    """

    every: str = "week"
    items: int = 200
    repeats: int = 2
    budget: str = "2 USD"


@dataclass(frozen=True, slots=True)
class BoardFile:
    """What a `board.yaml` says.

    Attributes:
        path: the file.
        title: the board's title.
        suite: the evaluation, without models.
        board: options of `evalwright leaderboard`, by name with underscores.
        entries: what entries may have.
        trial: what is tried before a merge.
        publish: where the board goes.
        drift: how models are watched.
        document: the file with its lines.
        proposals: settings of the suite that need the user's permission.
    """

    path: Path
    title: str
    suite: Configuration
    board: Mapping[str, Any]
    entries: EntryRules
    trial: TrialRules
    publish: PublishRules
    drift: DriftRules
    document: Document = field(compare=False, repr=False)
    proposals: tuple[Setting, ...] = ()

    @property
    def folder(self) -> Path:
        """The root of the repository."""
        return self.path.parent

    @property
    def entries_folder(self) -> Path:
        """The folder of entries."""
        return self.folder / ENTRIES_FOLDER

    @property
    def results_folder(self) -> Path:
        """The folder of published results."""
        return self.folder / RESULTS_FOLDER

    @property
    def drift_folder(self) -> Path:
        """The folder of the rounds of a fixed sample."""
        return self.folder / DRIFT_FOLDER

    def configuration(self, models: Sequence[ModelSpec] = ()) -> Configuration:
        """Return the evaluation of these models, with the board's prices for them.

        Args:
            models: the models, as `Entry.model_spec` makes them.
        """
        names = {spec.model for spec in (*models, *self.suite.roles.values())}
        prices = tuple(
            f"{name}={text}"
            for name, text in self.entries.price_texts.items()
            if name in names
        )
        return replace(self.suite, models=tuple(models), price=prices)

    def require_allowed(self, trust_file: str | None, *, sends: bool = True) -> None:
        """Stop before something is done that only the user may decide.

        A board may come from anybody, too. Naming the board where it has no such setting is no
        error, so that a workflow's command stays as it is when the board gets one.

        Args:
            trust_file: the file that the user trusts; None for none.
            sends: whether requests are sent, so that addresses of entries count too.

        Raises:
            ConfigurationError: it proposes settings that the user does not allow, or `trust_file`
                is another file.
        """
        if trust_file is not None and Path(trust_file).resolve() == self.path.resolve():
            return
        addresses = [
            Setting(("entries", "base_urls", i), address)
            for i, address in enumerate(self.entries.base_urls if sends else ())
        ]
        require_allowed(
            self.path,
            [*self.proposals, *addresses],
            trust_file,
            self.folder,
            self._at,
        )

    def _at(self, path: KeyPath) -> str:
        is_of_entries = path[:2] == ("entries", "base_urls")
        return self.document.at(path if is_of_entries else ("suite", *path))


def read_board(path: Path) -> BoardFile:
    """Read a board's file.

    Args:
        path: the file, or the folder that has it.

    Raises:
        UsageError: it cannot be read, or a setting in it; the message names file and line.
    """
    file = path / BOARD_FILE if path.is_dir() else path
    return _Reader(read_document(file, "board's file"), file).read()


class _Reader:
    """Turns the values of the file into a BoardFile; stops at the first wrong one."""

    def __init__(self, document: Document, file: Path) -> None:
        self.document = document
        self.file = file

    def read(self) -> BoardFile:
        values = self.document.value
        keys = ("title", "suite", "board", "entries", "trial", "publish", "drift")
        self._check_keys(values, keys, ())
        for key, example in (
            ("title", "title: Our board"),
            ("suite", "suite: {tasks: [factual-choice]}"),
            ("entries", "entries: {providers: [openai]}"),
        ):
            if key not in values:
                raise self._error((), f"'{key}' is missing, for example `{example}`.")
        self._check(("title",), str, "text")
        suite, proposals = self._suite()
        for plugin in suite.plugins:
            add_file(Path(plugin))
        return BoardFile(
            path=self.file,
            title=values["title"],
            suite=suite,
            board=self._board(),
            entries=self._entries(),
            trial=self._trial(),
            publish=self._publish(),
            drift=self._drift(),
            document=self.document,
            proposals=tuple(proposals),
        )

    # -- parts of the file -------------------------------------------------------------

    def _suite(self) -> tuple[Configuration, list[Setting]]:
        suite = self._part("suite")
        for key in suite:
            if key in COMMANDS_OWN:
                reason = (
                    "the entries are the models" if key == "models" else "they set it"
                )
                raise self._error(
                    ("suite", key),
                    f"'{key}' cannot be set for the commands of `evalwright entries`:"
                    f" {reason}. Leave it out.",
                )
        configuration, proposals = read_part(self.document, "suite", self.file)
        if not configuration.tasks:
            raise self._error(
                ("suite",), "The suite names no task, as `tasks: [name]`."
            )
        return configuration, proposals

    def _board(self) -> dict[str, Any]:
        options = self._part("board")
        self._check_keys(options, BOARD_OPTIONS, ("board",))
        if "facts" in options:
            self._check_kind(("board", "facts"), options["facts"], str, "a file")
            self._check_in_repository(("board", "facts"), options["facts"])
        for key, setting in options.items():
            scalars = setting if isinstance(setting, list) else [setting]
            for scalar in scalars:
                if not isinstance(scalar, str | int | float | bool):
                    kind = kind_of(scalar)
                    words = f"'board.{key}' must be a plain value or a list of them, not {kind}."
                    raise self._error(("board", key), words)
        return dict(options)

    def _entries(self) -> EntryRules:
        rules = self._part("entries")
        keys = (
            "providers",
            "base_urls",
            "arguments",
            "most_dollars",
            "prices",
            "maintainers",
        )
        self._check_keys(rules, keys, ("entries",))
        if not rules.get("providers"):
            raise self._error(
                ("entries",),
                "'providers' is missing, for example `providers: [openai]`.",
            )
        most_dollars = rules.get("most_dollars", DEFAULT_MOST_DOLLARS)
        self._check_number(("entries", "most_dollars"), most_dollars, least=0)
        price_texts = self._price_texts()
        return EntryRules(
            providers=self._providers(),
            base_urls=self._base_urls(),
            arguments=self._arguments(),
            most_dollars=float(most_dollars),
            prices=parse_prices(
                [f"{name}={text}" for name, text in price_texts.items()]
            ),
            price_texts=price_texts,
            maintainers=self._maintainers(),
        )

    def _providers(self) -> tuple[str, ...]:
        names = self._texts(("entries", "providers"), "names of providers")
        known_providers = [*LOCAL_PROVIDERS, *providers.names()]
        for i, name in enumerate(names):
            path = ("entries", "providers", i)
            if name in known_providers:
                continue
            if name in BUILT_IN or name == "python":
                raise self._error(
                    path,
                    f"Entries cannot have models of '{name}', which run code or read files"
                    " here.",
                )
            raise UnknownName(
                "provider", name, known_providers, where=self.document.at(path)
            )
        return names

    def _base_urls(self) -> dict[str, str]:
        addresses = self.document.value["entries"].get("base_urls") or []
        path: KeyPath = ("entries", "base_urls")
        self._check_kind(path, addresses, list, "a list of addresses")
        keys_by_address: dict[str, str] = {}
        for i, address in enumerate(addresses):
            key = ""
            if isinstance(address, Mapping):
                self._check_keys(address, ("url", "key"), (*path, i))
                key = address.get("key") or ""
                address = address.get("url")
            self._check_kind(
                (*path, i), address, str, "an address such as https://host/v1"
            )
            if problem := wrong_address(address):
                raise self._error((*path, i), f"The address '{address}' {problem}")
            if key and not (isinstance(key, str) and _SECRET.fullmatch(key)):
                raise self._error(
                    (*path, i),
                    "'key' is the name of an environment variable, such as EXAMPLE_API_KEY;"
                    " never write a key itself into a file.",
                )
            keys_by_address[address] = key
        return keys_by_address

    def _arguments(self) -> dict[str, ArgumentRule]:
        path: KeyPath = ("entries", "arguments")
        rules = self.document.value["entries"].get("arguments") or {}
        if isinstance(rules, list):
            rules = dict.fromkeys(self._texts(path, "names of arguments"))
        self._check_kind(path, rules, Mapping, "a list or a mapping of arguments")
        for name in rules:
            if name == "base_url" or arguments_needing_trust({name: ""}):
                raise self._error(
                    (*path, name),
                    f"Entries cannot set '{name}': it can run code, send keys or prompts"
                    " elsewhere, or read files."
                    + (" Addresses go under base_urls." if name == "base_url" else ""),
                )
        return {name: self._rule(name, rule) for name, rule in rules.items()}

    def _rule(self, name: str, bounds_or_words: Any) -> ArgumentRule:
        path: KeyPath = ("entries", "arguments", name)
        if bounds_or_words is None:
            return ArgumentRule()
        self._check_kind(
            path, bounds_or_words, list, "a range such as [0, 2], or a list of words"
        )
        if len(bounds_or_words) == 2 and all(map(_is_number, bounds_or_words)):
            low, high = (float(bound) for bound in bounds_or_words)
            if low > high:
                raise self._error(path, f"The range of '{name}' begins above its end.")
            return ArgumentRule(low, high)
        if not bounds_or_words or not all(
            isinstance(choice, str | int | float) for choice in bounds_or_words
        ):
            raise self._error(
                path, f"'{name}' has a range such as [0, 2], or a list of words."
            )
        return ArgumentRule(words=tuple(bounds_or_words))

    def _price_texts(self) -> dict[str, str]:
        path: KeyPath = ("entries", "prices")
        written = self.document.value["entries"].get("prices") or {}
        self._check_kind(path, written, Mapping, "a mapping of models to prices")
        for name, text in written.items():
            self._check_kind((*path, name), text, str, "a price such as 1.25/10")
            self._checked((*path, name), lambda text=text: parse_prices([text]))
        return dict(written)

    def _maintainers(self) -> tuple[str, ...]:
        path: KeyPath = ("entries", "maintainers")
        if not self.document.value["entries"].get("maintainers"):
            return ()
        names = self._texts(path, "names on GitHub")
        for i, name in enumerate(names):
            if not _LOGIN.fullmatch(name):
                raise self._error((*path, i), f"'{name}' cannot be a name on GitHub.")
        return names

    def _trial(self) -> TrialRules:
        trial = self._part("trial")
        self._check_keys(trial, ("samples", "cases", "budget"), ("trial",))
        for key in ("samples", "cases"):
            if key in trial:
                self._check_number(("trial", key), trial[key], least=1, integral=True)
        self._check_budget("trial", trial)
        return TrialRules(**trial)

    def _publish(self) -> PublishRules:
        publish = self._part("publish")
        self._check_keys(publish, ("readme", "plot", "site", "samples"), ("publish",))
        publish = {
            key: setting for key, setting in publish.items() if setting is not None
        }
        for key, setting in publish.items():
            self._check_kind(("publish", key), setting, str, "text")
        for key in ("readme", "plot", "site"):
            if publish.get(key):
                self._check_in_repository(("publish", key), publish[key])
        if not _SAMPLES.fullmatch(publish.get("samples", "none")):
            raise self._error(
                ("publish", "samples"),
                "Samples go to one of: none, release, s3://bucket/folder, hub:org/dataset.",
            )
        return PublishRules(**publish)

    def _drift(self) -> DriftRules:
        drift = self._part("drift")
        self._check_keys(drift, ("every", "items", "repeats", "budget"), ("drift",))
        for key in ("items", "repeats"):
            if key in drift:
                self._check_number(("drift", key), drift[key], least=1, integral=True)
        if drift.get("every", "week") not in PERIODS:
            raise UnknownName(
                "period",
                str(drift["every"]),
                PERIODS,
                f"Known: {', '.join(PERIODS)}.",
                where=self.document.at(("drift", "every")),
            )
        self._check_budget("drift", drift)
        return DriftRules(**drift)

    # -- checks ------------------------------------------------------------------------

    def _part(self, key: str) -> Mapping[str, Any]:
        section = self.document.value.get(key)
        if section is None:
            return {}
        self._check_kind((key,), section, Mapping, "a mapping")
        mapping: Mapping[str, Any] = section
        return mapping

    def _texts(self, path: KeyPath, words: str) -> tuple[str, ...]:
        node: Any = self.document.value
        for key in path:
            node = node[key]
        self._check_kind(path, node, list, f"a list of {words}")
        for i, text in enumerate(node):
            self._check_kind((*path, i), text, str, "text")
        return tuple(node)

    def _check_budget(self, key: str, section: Mapping[str, Any]) -> None:
        if "budget" in section:
            budget = section["budget"]
            self._check_kind((key, "budget"), budget, str, "a budget such as 1 USD")
            self._checked((key, "budget"), lambda: parse_budget([budget]))

    def _checked(self, path: KeyPath, parse: Any) -> None:
        try:
            parse()
        except UsageError as error:
            raise self._error(path, str(error)) from None

    def _check(self, path: KeyPath, expected: Any, words: str) -> None:
        setting: Any = self.document.value
        for key in path:
            setting = setting[key]
        self._check_kind(path, setting, expected, words)

    def _check_number(
        self, path: KeyPath, number: Any, *, least: float, integral: bool = False
    ) -> None:
        words = f"a {'whole ' if integral else ''}number of at least {least:g}"
        self._check_kind(path, number, int if integral else int | float, words)
        if not number >= least:
            raise self._error(path, f"'{_dotted(path)}' must be {words}, not {number}.")

    def _check_kind(
        self, path: KeyPath, setting: Any, expected: Any, words: str
    ) -> None:
        if not isinstance(setting, expected) or isinstance(setting, bool):
            raise self._error(
                path, f"'{_dotted(path)}' must be {words}, not {kind_of(setting)}."
            )

    def _check_in_repository(self, path: KeyPath, file: str) -> None:
        path_segments = re.split(r"[/\\]", file)
        is_odd = any(
            not segment or segment.startswith((".", "~")) or ":" in segment
            for segment in path_segments
        )
        if is_odd or not is_within(self.file.parent / file, self.file.parent):
            raise self._error(
                path, f"'{file}' must be in the repository, and not hidden there."
            )

    def _check_keys(
        self, mapping: Mapping[str, Any], known_keys: Sequence[str], path: KeyPath
    ) -> None:
        for key in mapping:
            if key not in known_keys:
                raise UnknownName(
                    "key",
                    str(key),
                    known_keys,
                    f"Known: {', '.join(known_keys)}.",
                    where=self.document.at((*path, key)),
                )

    def _error(self, path: KeyPath, sentence: str) -> ConfigurationError:
        return ConfigurationError(f"{self.document.at(path)}: {sentence}")


def _dotted(path: KeyPath) -> str:
    return ".".join(map(str, path))


def _is_number(bound: object) -> bool:
    return isinstance(bound, int | float) and not isinstance(bound, bool)
