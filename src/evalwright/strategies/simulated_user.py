"""The user of a conversation, simulated: by a script, or by a model in a role of its own.

    strategy: {name: agent, user: {script: "{{ script }}"}}
    strategy: {name: agent, user: {role: user, prompt: "{{ about_the_user }}"}}

The agent's replies without calls are what it says to the user. The user sees these alone: neither
the system prompt, nor calls, nor their results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    RequestFailed,
    check_known,
)
from evalwright.core.outcomes import ANSWERED, is_models_own, outcome_of
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Ability, Generate, Message
from evalwright.core.samples import Sample
from evalwright.strategies.agent_loop import AgentRun
from evalwright.strategies.task_setup import Setup

OPTION = "user"
ROLE = "user"
"""The role of the model that simulates a user, unless a task says otherwise."""
MAX_TURNS = 30
"""Most turns of a simulated user, the first one not counted, unless a task says otherwise."""
MOST_TURNS = 1_000
MAX_RULES = 1_000
REPLY_TOKENS = 1_024
END_MARK = "###END###"
"""What a simulating model writes to end the conversation."""
INSTRUCTIONS = f"""\
You play a person who writes to a helpdesk. The other side's messages are the helpdesk's; you \
write the person's next message, and nothing else: no comments, no quotation marks, no names in \
front.

- Stay with what is said about the person below. What is not said there, you do not know: say so, \
and do not make it up.
- Say one thing at a time, briefly, as people write in a chat. Do not tell all at once what you \
were not asked for.
- Do not do the helpdesk's work, and do not help it to guess what you want to hear.
- Once your request was met, or was refused for good and you have nothing left to ask, write \
{END_MARK} alone."""
_RULE_KEYS = ("when", "say", "in", "to", "again", "ends")
_KEYS = ("script", "role", "prompt", "turns")


class User(Protocol):
    """A user in one conversation."""

    async def answer(self, agent: AgentRun, said: str) -> str | None:
        """Return the user's next message; None if the user has nothing more to say.

        Args:
            agent: the conversation.
            said: what the agent said last.
        """
        ...


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a script.

    Args:
        say: the user's message; "" with `ends`.
        when: texts of which the agent's message has at least one, in any case; empty for always.
        states: states of the user in which it applies; empty for all.
        to: the state afterwards; "" for the same.
        is_repeated: whether it applies more than once.
        ends: whether the user leaves.
    """

    say: str
    when: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    to: str = ""
    is_repeated: bool = False
    ends: bool = False


class ScriptedUser:
    """A user who follows the first rule that applies, each once; without one, the user leaves.

    The state is "" at the beginning.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = list(rules)
        self._state = ""

    async def answer(self, agent: AgentRun, said: str) -> str | None:
        """Return the message of the first rule that applies."""
        lower = said.casefold()
        for rule in self._rules:
            if rule.states and self._state not in rule.states:
                continue
            if rule.when and not any(text in lower for text in rule.when):
                continue
            if not rule.is_repeated:
                self._rules.remove(rule)
            self._state = rule.to or self._state
            return None if rule.ends else rule.say
        return None


class ModelUser:
    """A user whom a model plays.

    Args:
        role: the model's role.
        prompt: who the user is, what they want and know.
        opening: the user's first message.
    """

    def __init__(self, role: str, prompt: str, opening: str) -> None:
        self._role = role
        system = f"{INSTRUCTIONS}\n\nThe person:\n{prompt}"
        self._messages = [
            Message("system", system),
            Message("user", "How can we help you?"),
            Message("assistant", opening),
        ]

    async def answer(self, agent: AgentRun, said: str) -> str | None:
        """Return what the model writes; None once it writes the mark."""
        self._messages.append(Message("user", said))
        request = Generate(
            tuple(self._messages),
            max_tokens=REPLY_TOKENS,
            temperature=None,
            draw=agent.draw,
        )
        try:
            response = await agent.ask_role(self._role, request)
        except RequestFailed as error:
            if not is_models_own(error.failure):
                raise
            raise _no_message(self._role, error.failure.message) from None
        text = separate_reasoning(response).answer.strip()
        if END_MARK in text:
            return None
        if not text or outcome_of(response) != ANSWERED:
            raise _no_message(self._role, f"it was {outcome_of(response)}")
        self._messages.append(Message("assistant", text))
        return text


class SimulatedUser:
    """The option `user` of the strategy `agent`.

    Args:
        option: `script`, a list of rules; or `prompt`, with `role`. Both may have templates over
            the row. `turns` is the most messages of the user after the first.
        setup: what the task provides.

    Raises:
        ConfigurationError: the option cannot be used.
    """

    def __init__(self, option: Any, setup: Setup) -> None:
        if not isinstance(option, Mapping):
            raise ConfigurationError(
                "The option 'user' of 'agent' is a mapping of `script`, or of `role` and"
                f" `prompt`, not {option!r:.80}."
            )
        check_known("key of the option 'user' of 'agent'", list(option), _KEYS)
        if ("script" in option) == ("prompt" in option):
            raise ConfigurationError(
                "The option 'user' of 'agent' has either `script`, what the user says, or"
                " `prompt`, who the user is for the model that plays them."
            )
        if "script" in option and "role" in option:
            raise ConfigurationError(
                "The option 'user' of 'agent' has a `script`, so no model plays the user:"
                " leave out `role`."
            )
        self._turns = option.get("turns", MAX_TURNS)
        is_number = isinstance(self._turns, int) and not isinstance(self._turns, bool)
        if not is_number or not 1 <= self._turns <= MOST_TURNS:
            raise ConfigurationError(
                "`turns` of the option 'user' of 'agent' is a whole number from 1 to"
                f" {MOST_TURNS:,}, not {self._turns!r}."
            )
        role = option.get("role", ROLE)
        if not isinstance(role, str) or not role:
            raise ConfigurationError(
                f"`role` of the option 'user' of 'agent' is a name, not {role!r:.80}."
            )
        self._role = role
        self.roles: dict[str, frozenset[Ability]] = {}
        self._script = self._prompt = None
        if "script" in option:
            self._script = setup.over_rows(option["script"])
        else:
            self._prompt = setup.over_rows(option["prompt"])
            self.roles = {role: frozenset[Ability]({"generate"})}

    def check(self, sample: Sample) -> None:
        """Check what a sample's row says of the user.

        Raises:
            UsageError: it cannot be read.
        """
        self._user_of(sample, "")

    async def hold(self, agent: AgentRun) -> None:
        """Let the model act and talk, until the user or the model ends it."""
        user = self._user_of(agent.sample, _opening_of(agent))
        n_turns = 0
        agent.recorded[OPTION] = {"turns": 0, "ended": "agent"}
        while not agent.is_over:
            reply = await agent.ask()
            for call in reply.tool_calls:
                await agent.call(call)
            if reply.tool_calls:
                continue
            said = separate_reasoning(reply).answer
            if outcome_of(reply) != ANSWERED:
                return
            message = await user.answer(agent, said) if n_turns < self._turns else None
            if message is None:
                ended = "user" if n_turns < self._turns else "turns"
                agent.recorded[OPTION] = {"turns": n_turns, "ended": ended}
                return
            n_turns += 1
            agent.recorded[OPTION] = {"turns": n_turns, "ended": "agent"}
            agent.say(message)

    def _user_of(self, sample: Sample, opening: str) -> User:
        if self._script is not None:
            return ScriptedUser(read_script(self._script(sample)))
        assert self._prompt is not None
        return ModelUser(self._role, str(self._prompt(sample)), opening)


def read_script(listed: Any) -> list[Rule]:
    """Read the rules of a scripted user.

    Args:
        listed: a list of mappings of `when` (a text or a list of them), `say`, `in` (a state or a
            list of them), `to`, `again` and `ends`.

    Raises:
        ConfigurationError: they cannot be read.
    """
    if not isinstance(listed, list | tuple) or len(listed) > MAX_RULES:
        raise ConfigurationError(
            f"`script` of a simulated user is a list of at most {MAX_RULES:,} rules, such"
            f" as {{when: order number, say: It is 17.}}, not {listed!r:.80}."
        )
    return [_read_rule(entry, number) for number, entry in enumerate(listed, 1)]


def _read_rule(entry: Any, number: int) -> Rule:
    if not isinstance(entry, Mapping):
        raise ConfigurationError(
            f"Rule {number} of the simulated user's script is not a mapping."
        )
    check_known(
        f"key of rule {number} of the simulated user's script", list(entry), _RULE_KEYS
    )
    say, to = entry.get("say", ""), entry.get("to", "")
    flags = (entry.get("again", False), entry.get("ends", False))
    are_right = isinstance(say, str) and isinstance(to, str)
    if not are_right or not all(isinstance(flag, bool) for flag in flags):
        raise ConfigurationError(
            f"Rule {number} of the simulated user's script: `say` and `to` are texts,"
            " `again` and `ends` true or false."
        )
    if bool(say) == flags[1]:
        raise ConfigurationError(
            f"Rule {number} of the simulated user's script has either `say` or"
            " `ends: true`."
        )
    when = tuple(text.casefold() for text in _texts(entry.get("when"), number))
    return Rule(say, when, _texts(entry.get("in"), number), to, *flags)


def _texts(setting: Any, number: int) -> tuple[str, ...]:
    listed = (
        [] if setting is None else [setting] if isinstance(setting, str) else setting
    )
    if not isinstance(listed, list | tuple) or not all(
        isinstance(text, str) for text in listed
    ):
        raise ConfigurationError(
            f"Rule {number} of the simulated user's script: `when` and `in` are texts, or"
            " lists of them."
        )
    return tuple(listed)


def _opening_of(agent: AgentRun) -> str:
    """Return the user's first message."""
    texts = [message.text for message in agent.messages if message.role == "user"]
    return texts[-1] if texts else ""


def _no_message(role: str, why: str) -> RequestFailed:
    return RequestFailed(
        Failure(
            "no message of the user",
            "task",
            f"The model that plays the user (role '{role}') wrote no message: {why}."
            " Try another model in that role.",
        )
    )
