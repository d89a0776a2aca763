"""Keeps out replies of another model, by the model name that each reply gives.

What happens by the name that a reply gives, on a server that a person named; in brackets on a
provider's own hosts, or on a server that lists its models:

- no model, the requested one, or an alias of it: accepted (accepted)
- another name, from the first reply on: refused (accepted, and reported)
- another name than before: refused (refused)
- another alias than before (the provider moved it): accepted, and reported (accepted, and reported)
- another name or alias than the other replicas: refused (refused)
- another model's name and a second name in one stream: refused (refused)

A refused reply is a failure of that endpoint (`WrongModel`): it is neither stored nor scored.
Stored responses are held to the same rule, because earlier versions stored every reply.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NoReturn

from evalwright.core.errors import WrongModel
from evalwright.core.responses import Response
from evalwright.models.remote.http_faults import clean
from evalwright.models.reply_names import NameRule, Relation, identity_of

_MAX_NAME_CHARS = 80
_MAX_REMEMBERED = 1000
"""Most names of one model to tell apart.

A server that invents a name for each reply must not fill the memory.
"""


class NameGuard:
    """Checks the model names in replies to one model, over all its endpoints.

    Args:
        model: the model's name, for messages.
        rules: the rule of each endpoint, by the endpoint's name.
        models_differ: whether each endpoint is a model of its own, so that names may differ.
        say: called with a sentence for people.
    """

    def __init__(
        self,
        model: str,
        rules: dict[str, NameRule],
        *,
        models_differ: bool,
        say: Callable[[str], None],
    ) -> None:
        self._model = model
        self.rules = rules
        self._models_differ = models_differ
        self._say = say
        self._accepted: set[tuple[str, str]] = set()
        """Endpoint and name of each accepted reply."""
        self._first: dict[str, list[tuple[str, str]]] = {}
        """Per endpoint ("" for all that must agree): endpoint and name of each name's first reply.
        """
        self._stored: list[str] = []
        """Names in stored responses, other than the requested name."""
        self._stored_relations: dict[str, bool] = {}
        """By name in a stored response: whether it is another model's name."""
        self._disputed: tuple[str, str] | None = None
        self.refused: Counter[tuple[str, str]] = Counter()
        """Number of refused replies, by (endpoint, name)."""

    def accept(self, endpoint: str, response: Response) -> None:
        """Check the names in a reply and remember them.

        Raises:
            WrongModel: the reply is another model's; the error carries the reply's usage.
        """
        if response.also_named:
            self._refuse_mixed(endpoint, response)
            for name in response.also_named:
                self._accept_name(endpoint, name, response)
        self._accept_name(endpoint, response.model, response)

    def _refuse_mixed(self, endpoint: str, response: Response) -> None:
        """Raise WrongModel if a stream names several models, one of which was not requested."""
        rule = self.rules[endpoint]
        if rule.check == "nothing":
            return
        names = [
            name
            for name in (response.model, *response.also_named)
            if rule.relation(name) != "unnamed"
        ]
        foreign = next((name for name in names if rule.relation(name) == "other"), None)
        if foreign is None:
            return
        second = next(
            (name for name in names if not _is_same_name(name, foreign)), None
        )
        if second is None:
            return
        self._refuse(
            endpoint, foreign, f"the same reply also names {_quoted(second)}", response
        )

    def _accept_name(self, endpoint: str, name: str, response: Response) -> None:
        if not name or (endpoint, name) in self._accepted:
            return
        rule = self.rules[endpoint]
        relation = rule.relation(name)
        if relation in ("alias", "other") and rule.check != "nothing":
            why = self._why_not(endpoint, rule, name, relation)
            if why:
                self._refuse(endpoint, name, why, response)
        if relation != "unnamed":
            self._note(endpoint, rule, name, relation)
        if len(self._accepted) < _MAX_REMEMBERED:
            self._accepted.add((endpoint, name))

    def _refuse(
        self, endpoint: str, name: str, why: str, response: Response
    ) -> NoReturn:
        """Count a refused reply, and raise WrongModel."""
        has_room = len(self.refused) < _MAX_REMEMBERED
        self.refused[(endpoint, name if has_room else "")] += 1
        raise self._error(self.rules[endpoint], name, why, response)

    def is_foreign(self, response: Response) -> bool:
        """Return whether a stored response is another model's; its request is then sent again."""
        name = response.model
        if not name:
            return False
        is_foreign = self._stored_relations.get(name)
        if is_foreign is None:
            is_foreign = self._is_foreign_name(name)
            if len(self._stored_relations) < _MAX_REMEMBERED:
                self._stored_relations[name] = is_foreign
        return is_foreign

    def _is_foreign_name(self, name: str) -> bool:
        relations = {rule.relation(name) for rule in self.rules.values()}
        if relations & {"same", "accepted", "unnamed"}:
            return False
        rule = next(iter(self.rules.values()))
        if relations == {"other"} and all(
            rule.check == "asked" for rule in self.rules.values()
        ):
            self._say(
                f"{self._model}: stored responses under this name were given by a model"
                f" that called itself {_quoted(name)}, not {_quoted(rule.requested)}. They"
                " are not used, and their requests are sent again. If it is the model"
                f" that you mean, accept the name: {_accept_option(name)}."
            )
            return True
        if rule.check != "nothing" and not any(
            _is_same_name(name, before) for before in self._stored
        ):
            if self._stored:
                self._say_changed(self._stored[0], name, "in the stored responses")
            self._stored.append(name)
        return False

    def _seen(self, endpoint: str) -> list[tuple[str, str]]:
        """Return the endpoint and name of the first reply of each name.

        It covers all endpoints that must agree with this one.
        """
        return self._first.setdefault(endpoint if self._models_differ else "", [])

    def _why_not(
        self, endpoint: str, rule: NameRule, name: str, relation: Relation
    ) -> str:
        """Return why a name is refused; "" if it is accepted."""
        seen = self._seen(endpoint)
        if rule.check == "asked" and relation == "other":
            return "that is another model's name"
        if self._disputed is not None and relation == "other":
            first, second = self._disputed
            return (
                f"the replicas answer as {_quoted(first)} and as {_quoted(second)}, and"
                " neither is the name that was asked"
            )
        if any(_is_same_name(name, before) for _, before in seen):
            return ""
        if relation == "alias":
            began = any(source == endpoint for source, _ in seen)
            others = [before for _, before in seen if not _is_itself(rule, before)]
            return (
                f"the other replicas answer as {_quoted(others[0])}"
                if others and not began
                else ""
            )
        others = [
            before
            for source, before in seen
            if source != endpoint and rule.relation(before) == "other"
        ]
        if others:
            # It cannot be known which of the replicas is right, so none is used.
            self._disputed = (others[0], name)
            self._forget_others(rule)
            return self._why_not(endpoint, rule, name, relation)
        if seen:
            source, before = seen[0]
            return (
                f"{'it' if source == endpoint else source} answered as"
                f" {_quoted(before)} before"
            )
        if self._stored and not any(
            _is_same_name(name, before) for before in self._stored
        ):
            return (
                "the stored responses of this model were given by"
                f" {_quoted(self._stored[0])}"
            )
        return ""

    def _note(
        self, endpoint: str, rule: NameRule, name: str, relation: Relation
    ) -> None:
        """Remember an accepted name, and report it if people should know."""
        seen = self._seen(endpoint)
        if any(_is_same_name(name, before) for _, before in seen):
            return
        others = [before for _, before in seen if not _is_itself(rule, before)]
        others += [before for before in self._stored if not _is_same_name(name, before)]
        if relation in _ITSELF:
            others = [before for before in others if rule.relation(before) == "other"]
            if (
                len(self.rules) > 1
                and rule.check != "nothing"
                and not self._models_differ
            ):
                self._forget_others(rule)
        if len(seen) < _MAX_REMEMBERED:
            seen.append((endpoint, name))
        if rule.check == "nothing" and relation != "alias":
            return
        if others:
            self._say_changed(others[0], name, "in mid-run")
        elif relation == "alias":
            self._say(
                f"{self._model}: {_quoted(rule.requested)} stands for {_quoted(name)} at"
                f" {rule.where}."
            )
        elif relation == "other" and rule.requested:
            self._say(
                f"{self._model}: {rule.where} was asked for {_quoted(rule.requested)} and"
                f" answers as {_quoted(name)}. The answers are recorded under the name"
                " that was asked, and the record says which name they gave."
            )

    def _forget_others(self, rule: NameRule) -> None:
        """Stop accepting names that are neither the requested one nor an alias of it."""
        for seen in self._first.values():
            seen[:] = [pair for pair in seen if rule.relation(pair[1]) != "other"]
        self._accepted = {
            pair for pair in self._accepted if rule.relation(pair[1]) != "other"
        }

    def _say_changed(self, before: str, name: str, when: str) -> None:
        self._say(
            f"{self._model}: the name in its replies changed {when} from"
            f" {_quoted(before)} to {_quoted(name)}: two versions answer under one"
            " name. Name the dated model to keep them apart."
        )

    def _error(
        self, rule: NameRule, name: str, why: str, response: Response
    ) -> WrongModel:
        provider, _, model_id = self._model.partition("/")
        address = (
            f"{model_id.partition('#')[0]}#"
            if model_id.startswith(("http://", "https://"))
            else ""
        )
        replicas = len(self.rules) > 1 and not self._models_differ
        differ = (
            " If the replicas may answer differently: -M replicas_differ=true."
            if replicas
            else ""
        )
        error = WrongModel(
            f"{rule.where} was asked for {_quoted(rule.requested)} and answered as"
            f" {_quoted(name)}: {why}, so the answer is not used. Correct the server or"
            " its address, or name the model that it serves:"
            f" {shlex.quote(f'{provider}/{address}{_short(name)}')}. If it is the model"
            " that you mean, under another name, accept it:"
            f" {_accept_option(name)}.{differ}"
        )
        if response.counted:
            error.usage = response.usage
            error.cost = response.cost
        return error


_ITSELF = ("same", "accepted")


def _is_itself(rule: NameRule, name: str) -> bool:
    return rule.relation(name) in _ITSELF


def _is_same_name(first: str, second: str) -> bool:
    """Return whether two names are the same except for spelling."""
    return identity_of(first) == identity_of(second)


def name_rows(
    responses: Mapping[tuple[str, str], int],
    refused: Mapping[tuple[str, str], int],
    rules: Mapping[str, NameRule],
) -> list[dict[str, object]]:
    """Return a row for each name in replies, with its relation to the requested name.

    The record of a run shows these rows.

    Args:
        responses: number of used replies, by (replica, name).
        refused: number of refused replies, by (replica, name).
        rules: the guard's rules.
    """
    is_pool = len(rules) > 1
    fallback = next(iter(rules.values()))
    rows: dict[tuple[str, str], dict[str, object]] = {}
    for counts, column in ((responses, "responses"), (refused, "refused")):
        for (replica, name), number in counts.items():
            # A single endpoint also owns responses that a pool gave under its name in an earlier
            # run.
            key = (replica if is_pool else "", name)
            row = rows.setdefault(
                key,
                {
                    "name": _short(name),
                    "relation": rules.get(replica, fallback).relation(name),
                    **({"replica": key[0]} if key[0] else {}),
                },
            )
            row[column] = int(str(row.get(column, 0))) + number
    return sorted(
        rows.values(), key=lambda row: (str(row.get("replica", "")), str(row["name"]))
    )


def _short(name: str) -> str:
    return clean(name, _MAX_NAME_CHARS)


def _quoted(name: str) -> str:
    return f"'{_short(name)}'"


def _accept_option(name: str) -> str:
    return f"-M {shlex.quote(f'answers_as={_short(name)}')}"
