"""Names and texts that try to act: on a terminal, in Markdown, in HTML."""

from __future__ import annotations

import unicodedata

HOSTILE = (
    "<script>document.title='hacked'</script>",
    "<img src=x onerror=\"document.title='hacked'\">",
    "\"><svg onload=document.title='hacked'>",
    "' onmouseover='document.title=1' x='",
    "javascript:document.title='hacked'",
    "a|b|c",
    "a\\|b",
    "`code` ``more`` `",
    "[text](javascript:alert(1))",
    "![image](http://127.0.0.1:9/x.png)",
    "](javascript:alert(1))",
    "<https://example.org> https://example.org www.example.org a@example.org",
    "# heading\n\n- list\r\n> quote",
    "\x1b[31mred\x1b[0m \x1b]8;;http://example.org\x07link\x1b]8;;\x07 \x1b[2J",
    "\x9b31m\x85\x08\x00",
    "safe\u202etxt.exe\u2066\u200f",
    "zero\u200bwidth\ufeff\u2028line",
    "lone \udc80 surrogate",
    "[bold]rich[/bold] :smile: [link=http://example.org]x[/link]",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "</table></div><h1>out</h1>",
    "</style><style>*{display:none}</style>",
    "&lt;b&gt; &amp; &#60;",
    "",
    "   ",
    "x" * 300,
    "日本語" * 30,
)

ACTIVE = tuple("\x1b\x9b\x07\x00\x08\x85\r\u202e\u2066\u200f\u200b\ufeff\u2028\udc80")
"""Characters that may reach no output."""


def as_task_name(text: str) -> str:
    """A hostile text as the name of a task: in a record with control characters in it nobody
    reads on.
    """
    characters = (
        " " if unicodedata.category(char) in ("Cc", "Zl", "Zp") else char
        for char in text
    )
    return "".join(characters) or "x"
