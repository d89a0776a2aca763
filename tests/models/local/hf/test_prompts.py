"""Rendering of messages by real templates, through a real tokenizer."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.core.requests import Message
from evalwright.models.local.tokens import DoesNotFit
from support.tiny_models import CHAT_TEMPLATE, STRICT_TEMPLATE, make_tokenizer

pytestmark = pytest.mark.torch

SYSTEM = Message("system", "Be brief.")
USER = Message("user", "Hi")
SILENT_TEMPLATE = (
    "{% for m in messages %}{% if m['role'] != 'system' %}[{{ m['role'] }}]{{ m['content'] }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}{% if flag is defined %}{{ flag }}{% endif %}"
)


def renderer(
    template: str | None,
    chosen: str | None = None,
    *,
    published: bool = False,
    **arguments: Any,
) -> Any:
    from evalwright.models.local.hf.prompts import ChatRenderer

    tokenizer = make_tokenizer("llama", chat=template or False)
    return ChatRenderer(tokenizer, chosen, arguments, published=published)


def test_text_stays_text_and_messages_go_through_the_template() -> None:
    assert renderer(CHAT_TEMPLATE).render("as it is ") == ("as it is ", False)
    text = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert renderer(CHAT_TEMPLATE).render((SYSTEM, USER)) == (text, True)
    assert renderer(CHAT_TEMPLATE, SILENT_TEMPLATE, flag="!").render((USER,)) == (
        "[user]Hi[assistant]!",
        True,
    )
    assert renderer(None).render((SYSTEM, USER)) == ("Be brief.\n\nHi", False)
    assert not renderer(None).has_template


def test_a_template_without_system_role_gets_the_text_in_the_first_user_turn() -> None:
    folded = "<s><|im_start|>user\nBe brief.\n\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert renderer(STRICT_TEMPLATE).render((SYSTEM, USER)) == (folded, True)
    assert renderer(SILENT_TEMPLATE).render((SYSTEM, USER)) == (
        "[user]Be brief.\n\nHi[assistant]",
        True,
    )
    assert renderer(SILENT_TEMPLATE).render((SYSTEM,)) == (
        "[user]Be brief.[assistant]",
        True,
    )


def test_by_published_rules_a_system_message_without_a_place_is_left_out() -> None:
    left_out = "<s><|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert renderer(STRICT_TEMPLATE, published=True).render((SYSTEM, USER)) == (
        left_out,
        True,
    )
    assert renderer(SILENT_TEMPLATE, published=True).render((SYSTEM, USER)) == (
        "[user]Hi[assistant]",
        True,
    )
    kept = renderer(CHAT_TEMPLATE, published=True).render((SYSTEM, USER))
    assert kept == renderer(CHAT_TEMPLATE).render((SYSTEM, USER))


def test_a_prefill_that_the_template_changes_goes_behind_the_generation_prompt() -> (
    None
):
    shouting = "{% for m in messages %}<{{ m['content'] | upper }}>{% endfor %}{% if add_generation_prompt %}<"
    text, _ = renderer(shouting + "{% endif %}").render(
        (USER, Message("assistant", "well"))
    )
    assert text == "<HI><well"


@pytest.mark.parametrize("with_system", [True, False])
def test_a_template_that_refuses_is_a_failure(with_system: bool) -> None:
    stubborn = "{{ raise_exception('Roles must alternate') }}"
    with pytest.raises(DoesNotFit, match="Roles must alternate"):
        renderer(stubborn).render((SYSTEM, USER) if with_system else (USER,))
    with pytest.raises(DoesNotFit, match="rejects"):
        renderer("{{ ''.__class__.__mro__[1].__subclasses__() }}").render((USER,))
