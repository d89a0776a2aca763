"""Walks all numbers of a page in a browser, and lists those without an interval or a count of items
that do not say why.
"""

from __future__ import annotations

from typing import Any

from support.browser import Tab

LACKING = """(() => {
  const INTERVAL = /\\[\\s*-?[\\d.,]+(e[+-]?\\d+)?, -?[\\d.,]+(e[+-]?\\d+)?\\]/i;
  const SIZE = /\\bn [\\d,]+|[\\d,]+ items?\\b/;
  const shownText = (element) => element.innerText.replace(/\\s+/g, " ").trim();
  const headsOf = (table) => [...table.tHead.rows[0].cells].map((head) => head.textContent.trim());
  const isVisible = (element) => element.checkVisibility() && !element.closest(".unseen");

  /* What a cell's row says of it in other columns, by the first word of their heads. */
  function besides(cell, word) {
    const table = cell.closest("table");
    const row = cell.closest("tr");
    if (!table || !table.tHead || !row) return "";
    const index = headsOf(table).findIndex((head) => head.startsWith(word));
    return index < 0 || !row.cells[index] ? "" : row.cells[index].textContent.trim();
  }

  function noteOf(cell) {
    const table = cell.closest("table");
    if (!table || !table.tHead) return "";
    return headsOf(table)[cell.cellIndex] || "";
  }

  const lacking = [];
  let seen = 0;
  for (const number of document.querySelectorAll(".value, .none, .cards .number")) {
    if (!isVisible(number)) continue;
    const cell = number.closest("td, th, li") || number.parentElement;
    const text = shownText(cell);
    seen += 1;
    const isNumber = /\\d/.test(number.textContent);
    const reason = besides(cell, "Why") || text.replace(INTERVAL, "").replace(SIZE, "").replace(number.textContent.trim(), "").match(/[a-z]{3,}/i);
    const hasInterval = INTERVAL.test(text) || Boolean(reason);
    const hasSize = SIZE.test(text) || /\\d/.test(besides(cell, "Items")) || SIZE.test(noteOf(cell)) || Boolean(reason);
    if (isNumber ? !(hasInterval && hasSize) : !reason) lacking.push(`${number.className}: ${text}`);
  }
  return [seen, lacking];
})()"""
"""How many numbers are shown, and the text of each that lacks something."""


async def walk_numbers(tab: Tab, where: str) -> int:
    """Require of all numbers that are shown an interval and a count of items, or a reason.

    Returns:
        How many numbers are shown.
    """
    seen, lacking = await tab.evaluate(LACKING)
    assert not lacking, (where, len(lacking), lacking[:5])
    return int(seen)


async def walk_board(tab: Tab, url: str, node_ids: list[str]) -> int:
    """Walk a board's page: ranked by each node with all parts unfolded, each row unfolded, the pivot."""
    from urllib.parse import quote

    seen = 0
    opened = "&".join(f"open={quote(node, safe='')}" for node in node_ids)
    for node in node_ids:
        await tab.open("about:blank")
        await tab.open(f"{url}#intervals=1&by={quote(node, safe='')}&{opened}")
        seen += await walk_numbers(tab, f"ranked by {node}")
    await tab.evaluate("[...document.querySelectorAll('.fold')].forEach((e, i) => document.querySelectorAll('.fold')[i].click()), 0")  # fmt: skip
    await tab.evaluate("document.querySelectorAll('.detail details').forEach(e => { e.open = true; }), 0")  # fmt: skip
    seen += await walk_numbers(tab, "unfolded rows")
    for view in ("pivot", "pivot&rows=model"):
        await tab.open("about:blank")
        await tab.open(f"{url}#intervals=1&view={view}")
        seen += await walk_numbers(tab, view)
    return seen


async def walk_page(tab: Tab, url: str) -> int:
    """Walk a static page, such as a model's, with everything unfolded."""
    await tab.open("about:blank")
    await tab.open(url)
    await tab.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; }), 0")  # fmt: skip
    return await walk_numbers(tab, url)


def lacking_in_markdown(text: str) -> list[str]:
    """List the cells of a README's tables that have a number without interval and say nothing."""
    import re

    lacking: list[Any] = []
    heads: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            heads = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not heads:
            heads = cells
            continue
        for head, cell in zip(heads, cells, strict=False):
            is_score = re.fullmatch(r"\**-?\d+\.\d+\**", cell)
            if is_score and "no interval" not in head:
                lacking.append(f"{head}: {cell}")
    return lacking
