"use strict";
(() => {
  const key = (row, column) => row.cells[column].dataset.sort;

  function sortable(table) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const said = table.parentElement.nextElementSibling;

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
      if (!name) return;
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
  }

  /* A table that is wider than its place shows the cells of a row below each other, each with the title of its column. */
  function label(table) {
    const titles = [...table.tHead.rows[0].cells].map((head) => {
      const parts = [...head.childNodes].filter((node) => !(node instanceof SVGElement));
      return parts.map((node) => node.textContent.trim()).filter(Boolean).join(", ");
    });
    for (const row of table.tBodies[0].rows) {
      [...row.cells].forEach((cell, column) => {
        cell.dataset.label = titles[column];
        if (!cell.textContent.trim() && !cell.firstElementChild) cell.dataset.empty = "";
      });
    }
    table.dataset.labelled = "";
  }

  function fit() {
    for (const table of document.querySelectorAll(".scroll > table")) {
      const place = table.parentElement;
      place.classList.remove("stacked");
      if (table.offsetWidth <= place.clientWidth + 1) continue;
      if (!("labelled" in table.dataset)) label(table);
      place.classList.add("stacked");
    }
  }

  /* The section that an address names is unfolded, with those around it. */
  function open() {
    const target = /^#[a-z]+-[\d-]+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView();
  }
  document.querySelectorAll("table.board").forEach(sortable);
  addEventListener("hashchange", open);
  addEventListener("resize", fit);
  addEventListener("toggle", fit, true);
  open();
  fit();
})();
