"use strict";
(() => {
  const articles = [...document.querySelectorAll("article")];
  const name = document.getElementById("labeller");
  const progress = document.getElementById("progress");
  const text = document.getElementById("text");
  const place = `evalwright.labels.${document.body.dataset.set}`;
  let kept = {};
  let at = 0;

  try { kept = Object.assign(Object.create(null), JSON.parse(localStorage.getItem(place) || "{}")); } catch { kept = {}; }
  if (typeof kept.name === "string") name.value = kept.name;

  const who = () => name.value.trim().replace(/\s+/g, " ");
  const key = (row) => `${who()}\u0000${row}`;
  const label = (article) => kept[key(article.dataset.row)] ?? "";

  function cell(value) {
    const safe = /^\s*[=+\-@]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  function csv() {
    const lines = articles.map((article) => [article.dataset.row, label(article), who()].map(cell).join(","));
    return ["row,label,labeller", ...lines, ""].join("\r\n");
  }

  function keep() {
    kept.name = name.value;
    try { localStorage.setItem(place, JSON.stringify(kept)); } catch { /* a browser that keeps nothing still labels */ }
  }

  function show() {
    articles.forEach((article, number) => {
      article.hidden = number !== at;
      if (number !== at) return;
      for (const button of article.querySelectorAll("button")) {
        const said = Object.hasOwn(kept, key(article.dataset.row));
        button.setAttribute("aria-pressed", String(said && button.dataset.value === label(article)));
      }
    });
    const done = articles.filter((article) => label(article) !== "").length;
    progress.textContent = `${done} of ${articles.length} labelled`;
    text.value = csv();
  }

  function go(to) {
    at = Math.max(0, Math.min(articles.length - 1, to));
    show();
    scrollTo(0, 0);
  }

  function give(button) {
    kept[key(articles[at].dataset.row)] = button.dataset.value;
    keep();
    if (at < articles.length - 1) go(at + 1); else show();
  }

  function unlabelled() {
    const order = articles.map((_, step) => (at + 1 + step) % articles.length);
    const found = order.find((number) => !Object.hasOwn(kept, key(articles[number].dataset.row)));
    if (found !== undefined) go(found);
  }

  for (const button of document.querySelectorAll("article button")) button.addEventListener("click", () => give(button));
  document.getElementById("back").addEventListener("click", () => go(at - 1));
  document.getElementById("next").addEventListener("click", () => go(at + 1));
  document.getElementById("open").addEventListener("click", unlabelled);
  name.addEventListener("input", () => { keep(); show(); });

  document.addEventListener("keydown", (event) => {
    if (event.target === name || event.target === text || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowLeft") go(at - 1);
    else if (event.key === "ArrowRight") go(at + 1);
    else if (event.key === "u") unlabelled();
    else {
      const button = [...articles[at].querySelectorAll("button")].find((one) => one.dataset.key === event.key);
      if (!button) return;
      give(button);
    }
    event.preventDefault();
  });

  document.getElementById("download").addEventListener("click", () => {
    const link = document.createElement("a");
    const mine = who().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "");
    link.href = URL.createObjectURL(new Blob(["\ufeff", csv()], { type: "text/csv" }));
    link.download = mine ? `${document.body.dataset.file}.${mine}.csv` : `${document.body.dataset.file}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });

  show();
})();
