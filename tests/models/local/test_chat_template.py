"""Chat templates: rendered as transformers renders them, prefills continued, and nothing
untrusted let out.
"""

from __future__ import annotations

import re

import pytest

from evalwright.core.errors import ConfigurationError, Rejected
from evalwright.core.requests import Message
from evalwright.models.local.chat_template import ChatTemplate

CHATML = (
    "{%- for message in messages %}\n"
    "    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "    {{- '<|im_start|>assistant\\n' }}\n"
    "{%- endif %}\n"
)
TALK = (Message("system", "Be brief."), Message("user", "Hello <b>"))


@pytest.mark.parametrize("prefill", ["The answer is", "The answer is ", "  so:", "x\n"])
def test_a_prefill_ends_the_text(prefill: str) -> None:
    text = ChatTemplate(CHATML, {}).render((*TALK, Message("assistant", prefill)))
    assert text.endswith(f"<|im_start|>assistant\n{prefill}")
    trimmed = CHATML.replace("message.content", "message.content | trim")
    text = ChatTemplate(trimmed, {}).render((*TALK, Message("assistant", prefill)))
    assert text.endswith(prefill.strip()) and not text.endswith("<|im_end|>")


def test_what_is_refused_says_why() -> None:
    template = ChatTemplate(
        "{% for message in messages %}{{ message.content | upper }}{% endfor %}", {}
    )
    with pytest.raises(Rejected, match="cannot be continued"):
        template.render((*TALK, Message("assistant", "lower")))
    with pytest.raises(Rejected, match="roles must alternate"):
        ChatTemplate("{{ raise_exception('roles must alternate') }}", {}).render(TALK)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        ChatTemplate("{% for %}", {})


def test_what_templates_expect_is_there() -> None:
    source = (
        "{{ bos_token }}{% generation %}[{{ messages | length }}]{% endgeneration %}{{ messages[0] | tojson }}"
        "{% for message in messages %}{% if loop.index == 2 %}{% break %}{% endif %}x{% endfor %}"
        "{{ strftime_now('%Y') }}{% if tools %}tools{% endif %}"
    )
    text = ChatTemplate(source, {"bos_token": "<s>"}).render(
        (Message("user", "é"), Message("user", "b"))
    )
    assert re.fullmatch(r'<s>\[2\]\{"role": "user", "content": "é"\}x\d{4}', text)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}", "{{ messages.__init__.__globals__ }}",
        "{{ messages.append(1) }}", "{{ raise_exception.__globals__['json'] }}",
        "{{ messages[0].content.format.__self__.x }}", "{% for number in range(1000000000) %}{% endfor %}",
        "{{ nothing.there }}", "{{ 1 / 0 }}", "{{ messages + 1 }}",
    ],
)  # fmt: skip
def test_the_sandbox_lets_nothing_out(source: str) -> None:
    with pytest.raises(Rejected):
        ChatTemplate(source, {}).render(TALK)


@pytest.mark.torch
def test_rendering_equals_that_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models

    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE()), bos_token="<s>"
    )
    source = (
        "{{ bos_token }}\n"
        + CHATML
        + "\n  {# end #}\n{{ messages[-1] | tojson(indent=1) }}"
    )
    expected = tokenizer.apply_chat_template(
        [message.as_dict() for message in TALK],
        chat_template=source,
        tokenize=False,
        add_generation_prompt=True,
    )
    assert ChatTemplate(source, {"bos_token": "<s>"}).render(TALK) == expected
