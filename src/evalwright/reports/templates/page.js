"use strict";
(() => {
  const table = document.getElementById("board");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const said = document.getElementById("said");

  const key = (row, column) => row.cells[column].dataset.sort;

  function sort(head, column, direction) {
    const text = head.hasAttribute("data-text") || head.classList.contains("head");
    const sign = direction === "ascending" ? 1 : -1;
    const rows = [...body.rows];
    rows.sort((left, right) => {
      const a = key(left, column), b = key(right, column);
      if (a === "" || b === "") return (a === "") - (b === "");
      return sign * (text ? a.localeCompare(b, "en", { numeric: true }) : Number(a) - Number(b));
    });
    body.append(...rows);
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", direction);
    said.textContent = `Sorted by ${head.querySelector(".name").textContent.trim()}, ${direction}.`;
  }

  heads.forEach((head, column) => {
    const name = head.querySelector(".name");
    const button = document.createElement("button");
    button.type = "button";
    button.append(...name.childNodes);
    name.append(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const first = head.dataset.first;
      const second = first === "ascending" ? "descending" : "ascending";
      sort(head, column, now === first ? second : first);
    });
  });

  function open() {
    const target = /^#run-\d+$/.test(location.hash) && document.querySelector(location.hash);
    if (target) { target.open = true; target.scrollIntoView(); }
  }
  addEventListener("hashchange", open);
  open();
})();
