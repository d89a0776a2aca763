"""Small agents, as they are written elsewhere: programs that know nothing of this project."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

URLLIB_AGENT = """
import json, os, subprocess, urllib.request

TOOL = {
    "type": "function",
    "function": {
        "name": "bash",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}


def ask(messages, **fields):
    body = {"model": os.environ["TASK_MODEL"], "messages": messages, **fields}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {
            "Content-Type": "application/json",
            "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
        },
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]


def solve(prompt):
    messages = [
        {"role": "system", "content": "You act in a shell."},
        {"role": "user", "content": prompt},
    ]
    while True:
        message = ask(messages, tools=[TOOL])
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            command = json.loads(call["function"]["arguments"])["command"]
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
            content = f"{done.returncode}\\n{done.stdout}{done.stderr}"
            messages.append(
                {"role": "tool", "tool_call_id": call["id"], "content": content}
            )


if __name__ == "__main__":
    print(solve(os.environ["TASK_PROMPT"]))
"""
"""A loop over OpenAI's chat completions, with the standard library alone."""

SDK_AGENT = """
import os, subprocess
from openai import OpenAI

client = OpenAI()
messages = [{"role": "user", "content": open(os.environ["TASK_PROMPT_FILE"]).read()}]
while True:
    stream = client.chat.completions.create(
        model="gpt-4o", messages=messages, temperature=1, stream=True
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    messages.append({"role": "assistant", "content": text})
    if not text.startswith("RUN "):
        break
    done = subprocess.run(["bash", "-c", text[4:]], capture_output=True, text=True)
    messages.append({"role": "user", "content": done.stdout + done.stderr})
print(text)
"""
"""A loop with OpenAI's own library, streamed."""

MESSAGES_AGENT = """
import json, os, sys, urllib.request

turns = [{"role": "user", "content": sys.stdin.read()}]
for _ in range(2):
    body = {"model": "claude", "max_tokens": 100, "messages": turns}
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
        json.dumps(body).encode(),
        {
            "Content-Type": "application/json",
            "x-api-key": os.environ["ANTHROPIC_API_KEY"],
            "anthropic-version": "2023-06-01",
        },
    )
    with urllib.request.urlopen(request) as reply:
        content = json.load(reply)["content"]
    turns += [{"role": "assistant", "content": content}, {"role": "user", "content": "On."}]
print(content[0]["text"])
"""
"""Two messages in Anthropic's shape, with the prompt from its input."""
REACT_AGENT = """
import os

from inspect_ai import Task, task
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.tool import bash


@task
def act():
    sample = Sample(input=os.environ["TASK_PROMPT"])
    return Task(dataset=[sample], solver=react(tools=[bash()]), sandbox="local")
"""
"""inspect_ai's own agent, on one sample."""


def steps(*commands: str, last: str = "Done.") -> Any:
    """A model that runs commands one after another, and then says something."""

    def reply(messages: Sequence[Mapping[str, Any]]) -> str | Mapping[str, str]:
        n_replies = sum(message["role"] == "assistant" for message in messages)
        if n_replies >= len(commands):
            return last
        arguments = json.dumps({"command": commands[n_replies]})
        return {"name": "bash", "arguments": arguments}

    return reply
