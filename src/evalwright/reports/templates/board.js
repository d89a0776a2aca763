(() => {
  const source = document.getElementById("board-data");
  if (!source) return;
  const board = JSON.parse(source.textContent);
  const models = board.models;

  const DRAWN_CELLS = 1000;  // a table with more has the names of all rows, but the numbers only of those on the screen
  const SPARE_ROWS = 8;  // rows drawn above and below the screen
  const SPARE_COLUMNS = 4;  // columns drawn on its left and right
  const MOST_TABS = 24;
  const LONG_NAME = 34;  // characters that fit on a line of the models' column
  const HEAT_STEPS = 9;
  const NOTHING = "n/a";
  const narrow = matchMedia("(max-width: 45rem)");
  const byName = new Intl.Collator("en", { numeric: true }).compare;
  const by = (id) => document.getElementById(id);

  // -- Markup: every text is escaped unless it is markup already --------------------------

  class Markup {
    constructor(text) { this.text = text; }
  }
  const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&#39;" };

  function markupOf(part) {
    if (part instanceof Markup) return part.text;
    if (Array.isArray(part)) return part.map(markupOf).join("");
    if (part === null || part === undefined || part === false) return "";
    return String(part).replace(/[&<>"']/g, (char) => ESCAPES[char]);
  }

  function html(strings, ...parts) {
    let text = strings[0];
    parts.forEach((part, i) => { text += markupOf(part) + strings[i + 1]; });
    return new Markup(text);
  }

  const nameOf = (text) => html`<bdi>${text}</bdi>`;

  /* A model's name, which may be broken after its slashes, dashes and underscores. */
  const breakableName = (text) => html`<bdi>${text.split(/(?<=[/_:-])(?=[^/_:-])/).map((part, i) => html`${i > 0 && html`<wbr>`}${part}`)}</bdi>`;

  const SYLLABLE_END = /([aeiouy])([bcdfghjklmnpqrstvwxz]*?)((?:(?<=[lnr])str?|[bcdfgkpt][lr]|[cpst]h|[bcdfghjklmnpqrstvwxz])(?=[aeiouy][a-z]))/gi;

  /* A title whose words of more than `most` letters may be hyphenated between syllables. */
  const hyphenated = (title, most) => title.replace(/[a-z]{6,}/gi, (word) => (word.length <= most ? word : word.replace(SYLLABLE_END, "$1$2\u00ad$3")));
  const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

  // -- The board's nodes -------------------------------------------------------------------

  const nodes = (board.nodes || []).map((node, index) => ({ ...node, index, parts: [], above: null, depth: 0 }));
  const nodeOfId = new Map(nodes.map((node) => [node.id, node]));
  for (const node of nodes) {
    const above = node.parent === null ? null : nodeOfId.get(node.parent);
    if (above && above !== node) {
      node.above = above;
      node.depth = above.depth + 1;
      above.parts.push(node);
    }
    node.root = node.above ? node.above.root : node;
    node.allKeys = { ...(node.above ? node.above.allKeys : {}), ...node.keys };
    const letters = (node.tied || []).filter(Boolean).join("");
    node.hasTies = new Set(letters).size < letters.length;
    node.inPoints = node.scale === "0 to 1";
    node.isRanked = (node.rank || []).some(Boolean);
  }
  for (const node of nodes) {
    // A task, or the slice of one, is selected by its name too.
    const isOfTask = node.kind === "task" || (node.kind === "slice" && !node.parts.length);
    if (isOfTask && node.tasks && node.tasks.length === 1) node.allKeys = { ...node.allKeys, task: node.tasks[0] };
  }
  const roots = nodes.filter((node) => !node.above);
  const headline = nodeOfId.get(board.rank_by) || nodes[0];
  const pathOf = (node) => (node.above ? [...pathOf(node.above), node] : [node]);
  const pathText = (node) => pathOf(node).map((inner) => inner.title).join(" › ");

  function scoreOf(node, row) {
    const at = (name) => (node[name] && node[name][row] !== undefined ? node[name][row] : null);
    const score = { value: at("value"), low: at("low"), high: at("high"), n: at("n"), missing: at("missing"), rank: at("rank"), tied: at("tied") };
    score.reason = (node.reasons && node.reasons[row]) || "";
    return score;
  }

  const estimateScore = (estimate) => (estimate && typeof estimate.value === "number"
    ? { value: estimate.value, low: estimate.low ?? null, high: estimate.high ?? null, n: estimate.n ?? null, missing: estimate.n_missing || null, rank: null, reason: "" }
    : { value: null, low: null, high: null, n: null, missing: null, rank: null, reason: "" });

  // -- Numbers, as reports/numbers.py formats them -------------------------------------------

  function fixed(amount, decimals) {
    let text = amount.toFixed(decimals);
    const isTie = Number.isInteger(amount * 2 ** (decimals + 1)) && !Number.isInteger(amount * 2 ** decimals) && amount.toFixed(decimals + 1).endsWith("5");
    if (isTie && "13579".includes(text.at(-1))) {
      // Python rounds a tie to the even digit.
      const step = 10 ** -decimals;
      text = (Number(text) - Math.sign(amount) * step).toFixed(decimals);
    }
    return text;
  }

  function format(amount, inPoints, decimals) {
    if (amount === null) return NOTHING;
    const scaled = inPoints ? 100 * amount : amount;
    if (Math.abs(scaled) >= 1e7) return scaled.toExponential(3).replace(/e([+-])(\d)$/, "e$10$2");
    const text = fixed(scaled, decimals);
    const [whole, part] = (Number(text) === 0 ? text.replace("-", "") : text).split(".");
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    return part === undefined ? grouped : `${grouped}.${part}`;
  }

  function decimalsOf(score, inPoints) {
    if (inPoints) return 1;
    const width = score.low === null || score.high === null ? 0 : score.high - score.low;
    if (width > 0) return Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(width))));
    if (!score.value) return 3;
    return Math.min(9, Math.max(0, 3 - Math.floor(Math.log10(Math.abs(score.value)))));
  }

  const valueText = (score, inPoints) => format(score.value, inPoints, decimalsOf(score, inPoints));

  function intervalText(score, inPoints) {
    if (score.value === null || score.low === null || score.high === null) return "";
    const decimals = decimalsOf(score, inPoints);
    return `[${format(score.low, inPoints, decimals)}, ${format(score.high, inPoints, decimals)}]`;
  }

  const count = (number) => format(number, false, 0);
  const counted = (number, one) => `${count(number)} ${one}${number === 1 ? "" : "s"}`;
  const rankText = (rank) => (rank[0] === rank[1] ? `${rank[0]}` : `${rank[0]}–${rank[1]}`);

  function axisOf(node) {
    const ends = ["low", "value", "high"].flatMap((name) => (node[name] || []).filter((end) => end !== null));
    let [low, high] = ends.length ? [Math.min(...ends), Math.max(...ends)] : [0, 1];
    if (node.inPoints) {
      const isBelow = (node.value || []).some((amount) => amount !== null && amount < 0);
      low = Math.max(isBelow ? -1 : 0, low);
      high = Math.min(1, high);
    }
    if (high - low <= 1e-9 * Math.max(1, Math.abs(low), Math.abs(high))) {
      [low, high] = node.inPoints ? [0, 1] : [low - 0.5, high + 0.5];
    }
    const rough = (high - low) / 4;
    const size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * size).find((wide) => wide >= rough * (1 - 1e-9));
    const first = Math.floor(low / step + 1e-9);
    const last = Math.ceil(high / step - 1e-9);
    const scale = node.inPoints ? 100 : 1;
    const decimals = Math.max(0, -Math.floor(Math.log10(step * scale) + 1e-9));
    const place = (amount) => `${(100 * Math.min(1, Math.max(0, (amount / step - first) / (last - first)))).toFixed(2)}%`;
    const ticks = [];
    for (let i = first; i <= last; i += 1) ticks.push([place(i * step), format(i * step * scale, false, decimals)]);
    return { place, ticks };
  }

  // Keys come from models' files: "constructor" and the like must not find what every object inherits.
  const own = (object, key) => (object && Object.hasOwn(object, key) ? object[key] : undefined);
  const lookup = (object) => Object.assign(Object.create(null), object);

  // -- Facts of the models -------------------------------------------------------------------

  const FACT_TITLES = {
    provider: "Provider", family: "Family", size: "Size", licence: "Licence", open: "Weights", released: "Released", context: "Context",
    price_in: "Price in", price_out: "Price out", url: "Link",
  };
  const FACT_NOTES = { size: "billion parameters", context: "tokens", price_in: "$ a million tokens", price_out: "$ a million tokens" };
  const facts = readFacts();

  function readFacts() {
    const keys = new Set(Object.keys(FACT_TITLES).filter((key) => models.some((model) => (own(model.facts, key) ?? null) !== null)));
    for (const model of models) for (const key of Object.keys(model.facts || {})) keys.add(key);
    return [...keys].map((key) => {
      const contents = models.map((model) => own(model.facts, key)).filter((content) => content !== null && content !== undefined && content !== "");
      let kind = "choice";
      if (key === "url") kind = "link";
      else if (contents.every((content) => typeof content === "boolean")) kind = "flag";
      else if (contents.every((content) => typeof content === "number")) kind = "range";
      else if (contents.every((content) => /^\d{4}(-\d{2}){0,2}$/.test(content))) kind = "date";
      const title = own(FACT_TITLES, key) || key.charAt(0).toUpperCase() + key.slice(1).replaceAll("_", " ");
      return { key, title, note: own(FACT_NOTES, key) || "", kind, contents };
    }).filter((fact) => fact.contents.length);
  }

  const presetColumns = board.extra_columns || [];
  const isPresetColumn = (key) => presetColumns.some((column) => column.name === key);

  const factOf = (model, key) => {
    const content = own(model.facts, key);
    return content === undefined || content === "" ? null : content;
  };

  function factText(fact, content) {
    if (content === null) return "";
    if (fact.kind === "flag") return fact.key === "open" ? (content ? "open" : "closed") : (content ? "yes" : "no");
    if (fact.key === "size") return content >= 1 ? `${Number(content.toPrecision(4))}B` : `${Math.round(content * 1000)}M`;
    if (fact.key === "context") return content >= 1000 ? `${Math.round(content / 1000)}k` : `${content}`;
    if (fact.key === "price_in" || fact.key === "price_out") return `$${Number(content.toPrecision(4))}`;
    return fact.kind === "range" ? format(content, false, Number.isInteger(content) ? 0 : 2) : String(content);
  }

  function smallPrint(model) {
    const words = facts.filter((fact) => ["size", "open", "licence", "released"].includes(fact.key))
      .map((fact) => factText(fact, factOf(model, fact.key))).filter(Boolean);
    if (model.model && model.model !== model.label && !model.label.startsWith(`${model.model} (`)) words.unshift(model.model);
    if (model.prompt && model.prompt.name) words.push(`prompt ${model.prompt.name} (${String(model.prompt.hash).slice(0, 8)})`);
    return words.join(" · ");
  }

  // -- The state of the view, which is the address's fragment ----------------------------------

  const DEFAULTS = () => ({
    node: headline, view: "table", sort: "rank", down: false, open: new Set(), on: new Set(), off: new Set(), search: "", intervals: false,
    filters: lookup({}), rows: "", columns: "", ...board.view, fixed: lookup({}), model: 0, second: "", across: "", unfolded: new Set(),
  });
  let state = DEFAULTS();

  function readFragment() {
    const wanted = DEFAULTS();
    const parameters = new URLSearchParams(location.hash.slice(1));
    const find = (id) => nodeOfId.get(id);
    wanted.node = find(parameters.get("by")) || headline;
    if (["table", "pivot", "plot"].includes(parameters.get("view"))) wanted.view = parameters.get("view");
    wanted.sort = parameters.get("sort") || "rank";
    wanted.down = parameters.get("down") === "1";
    wanted.open = new Set(parameters.getAll("open").map(find).filter(Boolean));
    wanted.on = new Set(parameters.getAll("on"));
    wanted.off = new Set(parameters.getAll("off"));
    wanted.search = parameters.get("q") || "";
    wanted.intervals = parameters.get("intervals") === "1";
    wanted.rows = parameters.get("rows") || wanted.rows;
    wanted.columns = parameters.get("columns") || wanted.columns;
    wanted.second = parameters.get("second") || "";
    wanted.across = parameters.get("across") || "";
    wanted.model = Math.max(0, models.findIndex((model) => model.label === parameters.get("model")));
    for (const dimension of board.dimensions || []) {
      if (parameters.has(`at.${dimension.key}`)) wanted.fixed[dimension.key] = parameters.get(`at.${dimension.key}`);
    }
    for (const fact of facts) {
      const texts = parameters.getAll(`fact.${fact.key}`);
      if (!texts.length) continue;
      if (fact.kind === "range" || fact.kind === "date") {
        const [from, to = ""] = texts[0].split("..");
        wanted.filters[fact.key] = { from, to };
      } else {
        wanted.filters[fact.key] = new Set(texts);
      }
    }
    state = wanted;
  }

  function fragment() {
    const parameters = new URLSearchParams();
    const usual = DEFAULTS();
    const set = (name, text) => { if (text !== usual[name]) parameters.set(name, text); };
    if (state.node !== headline) parameters.set("by", state.node.id);
    set("view", state.view);
    set("sort", state.sort);
    if (state.down) parameters.set("down", "1");
    for (const node of state.open) parameters.append("open", node.id);
    for (const key of state.on) parameters.append("on", key);
    for (const key of state.off) parameters.append("off", key);
    if (state.search) parameters.set("q", state.search);
    if (state.intervals) parameters.set("intervals", "1");
    set("rows", state.rows);
    set("columns", state.columns);
    set("second", state.second);
    set("across", state.across);
    if (state.model) parameters.set("model", models[state.model].label);
    for (const [key, text] of Object.entries(state.fixed)) if (text) parameters.set(`at.${key}`, text);
    for (const [key, filter] of Object.entries(state.filters)) {
      if (filter instanceof Set) for (const text of filter) parameters.append(`fact.${key}`, text);
      else if (filter.from || filter.to) parameters.set(`fact.${key}`, `${filter.from}..${filter.to}`);
    }
    return parameters.toString();
  }

  function keepInAddress() {
    const wanted = fragment();
    if (wanted === location.hash.slice(1) || (!wanted && !location.hash.includes("="))) return;
    try {
      history.replaceState(null, "", wanted ? `#${wanted}` : location.pathname + location.search);
    } catch {
      // A page inside another one may not change its address.
    }
  }

  // -- Which models are shown, and in which order ------------------------------------------------

  function passes(model, fact, filter) {
    const content = factOf(model, fact.key);
    if (filter instanceof Set) return !filter.size || (content !== null && filter.has(factText(fact, content)));
    if (!filter.from && !filter.to) return true;
    if (content === null) return false;
    if (fact.kind === "date") return (!filter.from || content >= filter.from) && (!filter.to || content.slice(0, filter.to.length) <= filter.to);
    return (!filter.from || content >= Number(filter.from)) && (!filter.to || content <= Number(filter.to));
  }

  const searchTexts = models.map((model) => [model.label, model.model, factOf(model, "provider"), factOf(model, "family")].filter(Boolean).join(" ").toLowerCase());

  function shownModels() {
    const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
    const filters = facts.filter((fact) => state.filters[fact.key]).map((fact) => [fact, state.filters[fact.key]]);
    return models.map((_, row) => row).filter((row) => words.every((word) => searchTexts[row].includes(word))
      && filters.every(([fact, filter]) => passes(models[row], fact, filter)));
  }

  const isFiltered = () => Boolean(state.search) || Object.values(state.filters).some((filter) => (filter instanceof Set ? filter.size : filter.from || filter.to));

  const orders = new Map();

  /* The places of all models by a node: the board's own order at the node that ranks, else by the number. */
  function orderOf(node) {
    if (!orders.has(node)) {
      const rows = models.map((_, row) => row);
      if (node !== headline) {
        const sign = node.lower_is_better ? 1 : -1;
        const amount = (row) => (node.value[row] === null || node.value[row] === undefined ? Infinity : sign * node.value[row]);
        const lacksRank = (row) => Number(node.isRanked && !node.rank[row]);
        rows.sort((a, b) => lacksRank(a) - lacksRank(b) || (amount(a) === amount(b) ? 0 : amount(a) - amount(b)) || a - b);
      }
      const places = [];
      rows.forEach((row, place) => { places[row] = place; });
      orders.set(node, places);
    }
    return orders.get(node);
  }

  function sorted(rows, columns) {
    const column = columns.find((candidate) => candidate.key === state.sort) || columns[0];
    const places = orderOf(state.node);
    if (!column || !column.sortBy) return rows;
    const keys = new Map(rows.map((row) => [row, column.sortBy(row)]));
    const isUpwards = (column.first === "ascending") !== state.down;
    const sign = isUpwards ? 1 : -1;
    return [...rows].sort((a, b) => {
      const [left, right] = [keys.get(a), keys.get(b)];
      if (left === null || right === null) return Number(left === null) - Number(right === null) || tie(a, b);
      const order = typeof left === "string" ? byName(left, right) : left - right;
      return sign * order || tie(a, b);
    });
    function tie(a, b) { return typeof a === "number" ? places[a] - places[b] : 0; }
  }

  // -- Columns of the table ------------------------------------------------------------------------

  const addressOf = (node, row) => (models[row].page ? `${models[row].page}${node.has_anchor === false ? "" : `#n-${node.index}`}` : "");

  function numberCell(score, inPoints, address = "") {
    if (score.value === null) return html`<span class="none">${NOTHING}</span><span class="more">${score.reason || "no number"}</span>`;
    const text = valueText(score, inPoints);
    const interval = intervalText(score, inPoints);
    const shown = address ? html`<a class="value" href="${address}" tabindex="-1">${text}</a>` : html`<span class="value">${text}</span>`;
    const size = score.n === null ? "" : `n ${count(score.n)}`;
    return html`${shown}<span class="more">${interval || score.reason || "no interval"}${size && `\n${size}`}</span>`;
  }

  /* What stands below a column's title: its unit or metric, unless the title says it. */
  function noteOf(node, isHeadline = false) {
    const bare = (text) => text.toLowerCase().replace(/[\s_-]+/g, " ");
    const isSaid = node.metric === "accuracy" || bare(node.title).includes(bare(node.metric)) || (node.parts.length > 0 && !isHeadline);
    return [node.measure || (isSaid ? "" : node.metric), node.lower_is_better ? "lower is better" : ""].filter(Boolean).join(", ");
  }

  /* What a function of nodes returns, computed once for each: models and numbers do not change. */
  function remembered(compute) {
    const known = new Map();
    return (key) => {
      if (!known.has(key)) known.set(key, compute(key));
      return known.get(key);
    };
  }

  const PRINTED_WIDTH = 6.3;  // rem, for an interval such as [99.9, 100.0]

  function nodeColumn(node, unfoldedFrom = null) {
    const column = columnOfNode(node);
    const width = folded.isTight && node.inPoints ? tightWidth(node.title) : column.width;
    return { ...column, unfoldedFrom, width: state.intervals ? Math.max(PRINTED_WIDTH, width) : width };
  }

  const columnOfNode = remembered((node) => {
    const scores = (row) => scoreOf(node, row);
    return {
      key: `node:${node.id}`, node, title: node.title, isName: true, unfoldedFrom: null,
      note: noteOf(node), kind: "number", first: node.lower_is_better ? "ascending" : "descending",
      sortBy: (row) => (node.value[row] === undefined ? null : node.value[row]),
      cell: (row) => numberCell(scores(row), node.inPoints, addressOf(node, row)),
      tip: (row) => numberTip(models[row].label, pathText(node), scores(row), node, node === headline ? models[row].simultaneous : null),
      width: Math.max(titleWidth(node.title), numberWidth(node)),
    };
  });

  /* Widths are in rem: of a title in bold small type whose words are not broken, and of the cells. */
  const titleWidth = (title) => Math.min(9, 0.56 * Math.max(...title.split(/[\s/_-]+/).map((word) => word.length)) + 1.3);
  const tightWidth = (title) => Math.min(folded.most, Math.max(4.2, LETTER_WIDTH * Math.max(...title.split(/[\s/_-]+/).map((word) => word.length)) + 1));
  const textWidth = (texts) => Math.min(13, 0.6 * texts.reduce((most, text) => Math.max(most, text.length), 0) + 1.3);

  function numberWidth(node) {
    if (node.inPoints) return 5.6;
    const amounts = (node.value || []).filter((amount) => amount !== null);
    if (!amounts.length) return 5.6;
    const longest = (node.value || []).reduce((most, amount, row) => {
      if (amount === null) return most;
      return Math.max(most, intervalText(scoreOf(node, row), false).length, 8);
    }, 8);
    return Math.min(12, Math.max(5.6, 0.43 * longest + 0.9));
  }

  const headlineColumn = remembered((node) => {
    const axis = axisOf(node);
    const plain = nodeColumn(node);
    const ticks = axis.ticks.map(([x]) => html`<line class="tick" x1="${x}" x2="${x}" y1="0" y2="100%"/>`);
    return {
      ...plain, kind: "drawn", width: null, axis,
      note: noteOf(node, true),
      cell: (row) => {
        const score = scoreOf(node, row);
        if (score.value === null) return numberCell(score, node.inPoints);
        const [low, high] = [score.low ?? score.value, score.high ?? score.value];
        return html`<div class="pair"><span class="numbers">${numberCell(score, node.inPoints, addressOf(node, row))}</span><svg class="bar" aria-hidden="true" focusable="false">${ticks}<line class="range" x1="${axis.place(low)}" x2="${axis.place(high)}" y1="50%" y2="50%"/><circle class="point" cx="${axis.place(score.value)}" cy="50%" r="3.5"/></svg></div>`;
      },
    };
  });

  const rankColumn = remembered((node) => {
    const places = orderOf(node);
    const total = models.filter((_, row) => node.isRanked && node.rank[row]).length;
    return {
      key: "rank", title: node.isRanked ? "Rank" : "Order", note: node.isRanked ? "" : "by score", kind: "rank", first: "ascending", width: 4.6,
      hint: node.isRanked ? "" : "No ranks were computed here: models are in the order of this number, which intervals may not bear out.",
      sortBy: (row) => places[row],
      cell: (row) => {
        if (!node.isRanked) return html`<span class="quiet">${places[row] + 1}</span>`;
        const rank = node.rank[row];
        if (!rank) return html`<span class="none">${NOTHING}</span><span class="more">${node.value[row] === null ? "no number, no rank" : "not ranked"}</span>`;
        const marks = (models[row].provisional ? " *" : "") + (models[row].other_judge ? " †" : "") + (models[row].drift ? " ‡" : "");
        const tied = node.hasTies && node.tied[row];
        const strip = total > 1 && html`<svg class="strip" aria-hidden="true" focusable="false"><rect class="all" width="100%" height="100%" rx="1.5"/><rect class="own" x="${(100 * (rank[0] - 1) / total).toFixed(2)}%" width="${Math.max(4, 100 * (rank[1] - rank[0] + 1) / total).toFixed(2)}%" height="100%" rx="1.5"/></svg>`;
        return html`${rankText(rank)}${marks}${tied && tied.length <= 3 && html`<sup class="tied"><span class="unseen">tied </span>${tied}</sup>`}${strip}`;
      },
      tip: (row) => (node.isRanked && node.rank[row] ? rankTip(node, row) : null),
    };
  });

  function modelColumn() {
    return {
      key: "model", title: "Model", kind: "head", first: "ascending", width: folded.isTight ? Math.min(modelWidth, TIGHT_MODEL_WIDTH) : modelWidth, sortBy: (row) => models[row].label,
      cell: (row) => {
        const model = models[row];
        const label = breakableName(model.label);
        const isOpen = state.unfolded.has(row);
        return html`<div class="who"><button type="button" class="fold" data-row="${row}" aria-expanded="${isOpen}" aria-label="All of ${shortened(model.label, 80)}"></button><span class="names"><span class="name" title="${model.label.length > LONG_NAME ? shortened(model.label, 400) : ""}">${model.page ? html`<a href="${model.page}">${label}</a>` : label}</span><span class="small">${smallPrints[row]}</span></span></div>`;
      },
    };
  }

  const smallPrints = models.map(smallPrint);
  const hasLongNames = models.some((model) => model.label.length > LONG_NAME);
  const longestName = models.reduce((most, model, row) => Math.max(most, model.label.length, 0.85 * smallPrints[row].length), 8);
  const modelWidth = Math.min(19, Math.max(11, 0.58 * longestName + 3.2));

  function plainColumn(key, title, note, textOf, more = {}) {
    const cells = models.map((_, row) => textOf(row));
    const width = Math.max(titleWidth(title), textWidth(cells.filter((cell) => typeof cell === "string")), note ? 5 : 0);
    return { key, title, note, kind: "count", first: "descending", width, cell: (row) => html`${cells[row]}`, ...more };
  }

  function estimateColumn(key, title, note, estimateOf, inPoints) {
    const scores = models.map((model) => estimateScore(estimateOf(model)));
    return {
      key, title, note, kind: "number", first: "descending", width: Math.max(5.6, titleWidth(title)), sortBy: (row) => scores[row].value,
      cell: (row) => (scores[row].value === null ? html`` : numberCell(scores[row], inPoints)),
      tip: (row) => (scores[row].value === null ? null : numberTip(models[row].label, title, scores[row], { inPoints, metric: note, measure: "" })),
    };
  }

  /* Columns about the runs, in the order of the table. isOff: shown only if the reader chooses it. */
  const extraColumns = remembered((node) => {
    const columns = presetColumns.filter((column) => !facts.some((fact) => fact.key === column.name)).map(presetColumn);
    const some = (test) => models.some(test);
    const errors = (model) => model.judge_errors || {};
    if (some((model) => errors(model).false_alarm)) columns.push(estimateColumn("false_alarm", "Judge's false alarms", "of right answers", (model) => errors(model).false_alarm, true));
    if (some((model) => errors(model).miss)) columns.push(estimateColumn("miss", "Judge's misses", "of wrong answers", (model) => errors(model).miss, true));
    if (some((model) => errors(model).labels)) {
      columns.push(plainColumn("labels", "Labels", "by people", (row) => {
        const own = errors(models[row]);
        return own.labels ? `${count(own.labels)}${own.pooled ? ", pooled" : ""}` : "";
      }, { sortBy: (row) => errors(models[row]).labels ?? null }));
    }
    if (some((model) => model.simultaneous) && node === headline) {
      columns.push(plainColumn("simultaneous", "Simultaneous", "interval for all models at once", (row) => {
        const ends = models[row].simultaneous;
        return ends ? intervalText({ value: 0, low: ends[0], high: ends[1] }, node.inPoints) : "";
      }, { isOff: true }));
    }
    if (node.hasTies && node.tied.some((letters) => letters && letters.length > 3)) {
      columns.push(plainColumn("tied", "Tied", "share a letter", (row) => node.tied[row] || "", { isOff: true }));
    }
    if (some((model) => model.asked !== undefined)) {
      columns.push(plainColumn("items", "Items", "", (row) => itemsText(models[row]), { isMinor: true, sortBy: (row) => models[row].items ?? null }));
      columns.push(plainColumn("missing", "Missing", "", (row) => html`<span class="${models[row].missing ? "warn" : "quiet"}">${count(models[row].missing || 0)}</span>`, { sortBy: (row) => models[row].missing ?? null, isMinor: true, isOff: !some((model) => model.missing) }));
    }
    if (some((model) => model.unsure)) columns.push(plainColumn("unsure", "Unsure", "", (row) => count(models[row].unsure || 0), { isMinor: true, sortBy: (row) => models[row].unsure ?? 0 }));
    const faults = new Set(models.flatMap((model) => Object.keys(model.faults || {})));
    for (const fault of faults) {
      columns.push(plainColumn(`fault:${fault}`, fault, "the model's own fault", (row) => count((models[row].faults || {})[fault] || 0), { sortBy: (row) => (models[row].faults || {})[fault] || 0 }));
    }
    if (some((model) => typeof model.cost === "number")) {
      columns.push(plainColumn("cost", "Cost", "$", (row) => (typeof models[row].cost === "number" ? format(models[row].cost, false, models[row].cost < 1 ? 4 : 2) : ""), { sortBy: (row) => models[row].cost ?? null, first: "ascending", isOff: true }));
    }
    if (some((model) => model.hardware)) columns.push(plainColumn("hardware", "Hardware", "", (row) => models[row].hardware || "", { kind: "words", isMinor: true, first: "ascending", sortBy: (row) => models[row].hardware || null }));
    for (const fact of facts) columns.push(factColumn(fact));
    if (some((model) => model.date)) columns.push(plainColumn("date", "Run on", "", (row) => models[row].date || "", { kind: "words", isMinor: true, sortBy: (row) => models[row].date || null }));
    return columns;
  });

  /* A column that a preset adds: a fact in words, or a measurement such as tokens a second. */
  function presetColumn(column) {
    const key = `extra:${column.name}`;
    const contents = models.map((model) => (model.extra || {})[column.name] ?? null);
    const hint = column.note || "";
    if (column.scale === "text") {
      return plainColumn(key, column.title, "", (row) => contents[row] || "", { kind: "words", first: "ascending", hint, sortBy: (row) => contents[row] });
    }
    const inPoints = column.scale === "0 to 1";
    const measure = inPoints || column.scale === "its own" ? "" : column.scale;
    const note = [measure, column.lower_is_better ? "lower is better" : ""].filter(Boolean).join(", ");
    const scores = contents.map((content) => ({ ...estimateScore(content), reason: (content && content.reason) || "" }));
    const words = (row) => intervalText(scores[row], inPoints) || valueText(scores[row], inPoints);
    return {
      key, title: column.title, note, hint, kind: "number", first: column.lower_is_better ? "ascending" : "descending",
      width: Math.max(5.6, titleWidth(column.title), ...models.map((_, row) => 0.43 * words(row).length + 0.9)),
      sortBy: (row) => scores[row].value,
      cell: (row) => numberCell(scores[row], inPoints),
      tip: (row) => numberTip(models[row].label, column.title, scores[row], { inPoints, metric: "", measure, lower_is_better: column.lower_is_better }),
    };
  }

  function factColumn(fact) {
    const isLink = fact.kind === "link";
    const text = (row) => factText(fact, factOf(models[row], fact.key));
    const note = fact.key === "size" ? "" : fact.note;  // its texts have the unit: 8B
    return plainColumn(`fact:${fact.key}`, fact.title, note, (row) => (isLink ? linkTo(text(row)) : text(row)), {
      kind: fact.kind === "range" ? "count" : "words", isOff: !isPresetColumn(fact.key), ...(isLink && { width: 10 }), first: fact.kind === "choice" ? "ascending" : "descending",
      sortBy: isLink ? null : (row) => { const content = factOf(models[row], fact.key); return typeof content === "boolean" ? Number(content) : content; },
    });
  }

  const linkTo = (address) => (/^https?:\/\//i.test(address) ? html`<a href="${address}" rel="noopener noreferrer">${shortened(address.replace(/^https?:\/\//i, ""), 40)}</a>` : nameOf(address));

  function itemsText(model) {
    const text = model.items === model.asked ? count(model.items) : `${count(model.items)} of ${count(model.asked)}`;
    return model.not_asked ? `${text} (${count(model.not_asked)} not asked)` : text;
  }

  function partColumns(node) {
    return node.parts.flatMap((part) => {
      const column = nodeColumn(part, node === state.node ? null : node);
      return state.open.has(part) ? [column, ...partColumns(part)] : [column];
    });
  }

  /* What follows the headline: its parts, and beside a root the other roots; those of its scale before its parts. */
  function scoreColumns() {
    const parts = partColumns(state.node);
    if (state.node.above) return parts;
    const others = roots.filter((root) => root !== state.node && (!state.node.parts.length || !root.parts.length));
    const isLike = (root) => root.scale === state.node.scale;
    const columnsOf = (list) => list.map((root) => nodeColumn(root));
    return [...columnsOf(others.filter(isLike)), ...parts, ...columnsOf(others.filter((root) => !isLike(root)))];
  }

  const isOff = (column) => column.isOff || folded.keys.has(column.key);
  const isShown = (column) => (isOff(column) ? state.on.has(column.key) : !state.off.has(column.key));

  // -- Columns that fit the screen ------------------------------------------------------------------

  const NOTHING_FOLDED = { keys: new Set(), isTight: false, most: 0 };
  const LETTER_WIDTH = 0.52;  // rem, of a letter in a narrow head
  const TIGHT_COLUMN_WIDTHS = [6.4, 5.2];  // rem, the most of a column of scores, tried in this order
  const TIGHT_MODEL_WIDTH = 11.5;  // rem: names go over two lines
  const DRAWN_WIDTH = { usual: 14, tight: 8.5, printed: 17.5, narrow: 9 };  // rem, the least of the column with bars
  let folded = NOTHING_FOLDED;

  const drawnWidth = () => {
    if (narrow.matches) return DRAWN_WIDTH.narrow;
    if (state.intervals) return DRAWN_WIDTH.printed;
    return folded.isTight ? DRAWN_WIDTH.tight : DRAWN_WIDTH.usual;
  };

  const sumOfWidths = (columns) => columns.reduce((sum, column) => sum + (column.width ?? drawnWidth()), 0);

  /* Fold what matters least until the columns fit: those about the run, the last one first, then the room of names and bars.
     Whatever is folded is in the menu of columns and in each unfolded row. */
  function fitColumns() {
    folded = NOTHING_FOLDED;
    if (narrow.matches || state.view !== "table") return;
    const room = sheet.clientWidth / remSize();
    const minor = extraColumns(state.node).filter((column) => column.isMinor && isShown(column) && !state.on.has(column.key)).map((column) => column.key);
    const keys = new Set();
    while (sumOfWidths(tableColumns()) > room && minor.length) {
      keys.add(minor.pop());
      folded = { ...NOTHING_FOLDED, keys: new Set(keys) };
    }
    for (const most of TIGHT_COLUMN_WIDTHS) {
      if (sumOfWidths(tableColumns()) > room) folded = { keys, isTight: true, most };
    }
  }

  const remSize = () => Number.parseFloat(getComputedStyle(document.documentElement).fontSize);

  function tableColumns() {
    const first = [rankColumn(state.node), modelColumn(), headlineColumn(state.node)];
    const others = [...scoreColumns(), ...extraColumns(state.node)].filter(isShown);
    if (!narrow.matches) return [...first, ...others];
    const second = others.find((column) => column.key === state.second) || others[0];
    const [rank, model, number] = first;
    const room = (column, least) => Math.min(5.3, Math.max(state.intervals ? 5.3 : 4.4, 0.9 * titleWidth(column.title), least));
    const numberRoom = room(number, 0.8 * numberWidth(state.node));
    return [{ ...rank, width: 2.9 }, { ...model, width: null }, { ...number, width: numberRoom }, ...(second ? [{ ...second, width: room(second, second.kind === "number" ? 0 : second.width) }] : [])];
  }

  // -- The pivot -------------------------------------------------------------------------------------

  const dimensions = board.dimensions || [];
  const dimensionOf = (key) => dimensions.find((dimension) => dimension.key === key);
  const pivotAxes = [...dimensions.map((dimension) => [dimension.key, dimension.title]), ["model", "Model"]];

  function pivotChoice() {
    const keys = pivotAxes.map(([key]) => key);
    const rows = keys.includes(state.rows) ? state.rows : keys[0];
    const columns = keys.includes(state.columns) && state.columns !== rows ? state.columns : keys.find((key) => key !== rows);
    return { rows, columns };
  }

  const keyText = (keys) => dimensions.map((dimension) => (keys[dimension.key] === undefined ? "" : `${dimension.key}=${keys[dimension.key]}`)).join("\n");
  const nodesByKeys = new Map();
  for (const node of nodes) {
    const text = keyText(node.allKeys);
    if (!nodesByKeys.has(text)) nodesByKeys.set(text, []);
    nodesByKeys.get(text).push(node);
  }

  /* The node that selects these keys and no others, below the root that is shown if there is one. */
  function nodeOfKeys(keys) {
    const candidates = nodesByKeys.get(keyText(keys)) || [];
    return candidates.find((node) => node.root === state.node.root) || candidates[0] || null;
  }

  const NO_KEYS = {};

  function pivotEntries(key) {
    if (key === "model") return sorted(shownModels(), [rankColumn(state.node)]).map((row) => ({ row, title: models[row].label, keys: NO_KEYS }));
    const dimension = dimensionOf(key);
    return [{ title: "All", keys: {}, isAll: true }, ...dimension.values.map(([value, title]) => ({ title, keys: { [key]: value } }))];
  }

  function pivotView() {
    const choice = pivotChoice();
    const fixedKeys = lookup({});
    for (const dimension of dimensions) {
      const isAxis = dimension.key === choice.rows || dimension.key === choice.columns;
      if (!isAxis && state.fixed[dimension.key]) fixedKeys[dimension.key] = state.fixed[dimension.key];
    }
    // Models have no keys: their cells in a row or column are of one node.
    const nodesOfRow = remembered((rowKeys) => remembered((columnKeys) => nodeOfKeys(lookup({ ...fixedKeys, ...rowKeys, ...columnKeys }))));
    const at = (rowEntry, columnEntry) => {
      const node = nodesOfRow(rowEntry.keys)(columnEntry.keys);
      const row = rowEntry.row ?? columnEntry.row ?? state.model;
      return node ? { node, row, score: scoreOf(node, row) } : null;
    };
    const isInNodesBelow = (rowEntry, columnEntry) => {
      const keys = Object.entries({ ...fixedKeys, ...rowEntry.keys, ...columnEntry.keys });
      return nodes.some((node) => keys.every(([key, value]) => node.allKeys[key] === value));
    };
    let rows = pivotEntries(choice.rows);
    let entries = pivotEntries(choice.columns);
    const hasNumber = (cell) => cell && cell.score.value !== null;
    rows = rows.filter((entry) => entry.row !== undefined || entries.some((column) => hasNumber(at(entry, column))));
    entries = entries.filter((column) => column.row !== undefined || rows.some((entry) => hasNumber(at(entry, column))));
    const heat = heatOf(rows, entries, at);
    const columns = entries.map((entry, index) => ({
      key: `at:${index}`, title: entry.title, isName: true, note: "", kind: "heat", first: "descending", width: Math.max(state.intervals ? PRINTED_WIDTH : 5, titleWidth(entry.title)),
      sortBy: (rowEntry) => { const cell = at(rowEntry, entry); return cell ? cell.score.value : null; },
      cell: (rowEntry) => {
        const cell = at(rowEntry, entry);
        if (!cell) return html`<span class="none">–</span><span class="more">${isInNodesBelow(rowEntry, entry) ? "not averaged on this board" : "no task here"}</span>`;
        return numberCell(cell.score, cell.node.inPoints, addressOf(cell.node, cell.row));
      },
      className: (rowEntry) => heat(at(rowEntry, entry)),
      tip: (rowEntry) => {
        const cell = at(rowEntry, entry);
        if (cell) return numberTip(models[cell.row].label, pathText(cell.node), cell.score, cell.node);
        if (!isInNodesBelow(rowEntry, entry)) return null;
        const keys = Object.entries({ ...fixedKeys, ...rowEntry.keys, ...entry.keys }).map(([key, value]) => `${key}=${value}`).join(",");
        return html`<p class="tip-title">No average of these tasks</p><p class="small">evalwright leaderboard --rank-by ${shortened(keys, 120)} makes one.</p>`;
      },
    }));
    const head = {
      key: "title", title: pivotAxes.find(([key]) => key === choice.rows)[1], note: "", kind: "head", first: "ascending", width: narrow.matches ? 8 : choice.rows === "model" ? modelWidth : 12,
      sortBy: (entry) => (entry.isAll ? null : entry.title),
      cell: (entry) => html`<span class="name${entry.isAll ? " all" : ""}">${entry.row !== undefined && models[entry.row].page ? html`<a href="${models[entry.row].page}">${nameOf(entry.title)}</a>` : nameOf(entry.title)}</span>`,
    };
    const all = [head, ...columns];
    const isSorted = all.some((column) => column.key === state.sort);
    return { rows: isSorted ? sorted(rows, all) : rows, columns: all, sort: isSorted ? state.sort : "" };
  }

  /* The class of a cell's colour: the better the stronger, over all cells in the commonest unit. */
  function heatOf(rows, entries, at) {
    const cells = rows.flatMap((row) => entries.map((entry) => at(row, entry))).filter((cell) => cell && cell.score.value !== null);
    const unitOf = (cell) => `${cell.node.scale} ${cell.node.measure} ${cell.node.lower_is_better}`;
    const counts = new Map();
    for (const cell of cells) counts.set(unitOf(cell), (counts.get(unitOf(cell)) || 0) + 1);
    const [unit] = [...counts].sort((a, b) => b[1] - a[1])[0] || [""];
    const amounts = cells.filter((cell) => unitOf(cell) === unit).map((cell) => cell.score.value);
    const low = amounts.reduce((least, amount) => Math.min(least, amount), Infinity);
    const high = amounts.reduce((most, amount) => Math.max(most, amount), -Infinity);
    return (cell) => {
      if (!cell || cell.score.value === null || unitOf(cell) !== unit || !(high > low)) return "";
      const share = (cell.score.value - low) / (high - low);
      return `heat-${Math.min(HEAT_STEPS - 1, Math.floor(HEAT_STEPS * (cell.node.lower_is_better ? 1 - share : share)))}`;
    };
  }

  // -- What a number says when it is pointed at ------------------------------------------------------

  const tipLine = (what, content) => (content ? html`<div><dt>${what}</dt><dd>${content}</dd></div>` : "");

  function numberTip(label, title, score, node, together = null) {
    const isNumber = score.value !== null;
    const interval = intervalText(score, node.inPoints);
    const unit = [node.measure || (node.metric !== "accuracy" ? node.metric : ""), node.lower_is_better ? "lower is better" : ""].filter(Boolean).join(", ");
    return html`<p class="tip-title">${nameOf(shortened(label, 120))}</p><p class="small">${nameOf(shortened(title, 200))}${unit && ` (${unit})`}</p><dl>${tipLine("Score", isNumber ? valueText(score, node.inPoints) : "none")}${tipLine("95% interval", isNumber && (interval || `none${score.reason && `: ${score.reason}`}`))}${tipLine("For all models at once", together && intervalText({ ...score, low: together[0], high: together[1] }, node.inPoints))}${tipLine("Items", score.n !== null && count(score.n))}${tipLine("Missing", score.missing ? count(score.missing) : "")}${tipLine("Rank", score.rank && rankText(score.rank))}${tipLine("Note", score.reason && (interval || !isNumber) && score.reason)}</dl>`;
  }

  function rankTip(node, row) {
    const model = models[row];
    const tied = node.hasTies && node.tied[row];
    return html`<p class="tip-title">${nameOf(shortened(model.label, 120))}</p><dl>${tipLine("Best rank", node.rank[row][0])}${tipLine("Worst rank", node.rank[row][1])}${tipLine("Tied", tied && shortened(tied, 60))}${tipLine("*", model.provisional && "More than 5% of its answers are missing.")}${tipLine("†", model.other_judge && "Another judge scored it.")}${tipLine("‡", model.drift && model.drift.sentence)}</dl>`;
  }

  const tip = by("tip");
  let tipCell = null;

  function showTip(td) {
    if (td === tipCell) return;
    hideTip();
    const column = view.columns[Number(td.dataset.column)];
    const content = column && column.tip && column.tip(view.rows[Number(td.parentElement.dataset.index)]);
    if (!content) return;
    tip.innerHTML = content.text;
    tip.hidden = false;
    td.setAttribute("aria-describedby", "tip");
    tipCell = td;
    const place = td.getBoundingClientRect();
    const left = Math.max(8, Math.min(place.left, document.documentElement.clientWidth - tip.offsetWidth - 8));
    const isAbove = place.bottom + tip.offsetHeight + 8 > innerHeight && place.top > tip.offsetHeight + 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${isAbove ? place.top - tip.offsetHeight - 4 : place.bottom + 4}px`;
  }

  function hideTip() {
    if (tipCell) tipCell.removeAttribute("aria-describedby");
    tipCell = null;
    tip.hidden = true;
  }

  // -- Drawing the table -----------------------------------------------------------------------------

  const sheet = by("sheet");
  const table = by("board");
  let view = { rows: [], columns: [], sort: "" };
  let rowHeight = 44;
  let drawn = { rows: [0, 0], columns: [0, 0] };
  const rowHeights = new Map();  // by the classes of the table
  const detailHeights = new Map();

  function drawTable() {
    hideTip();
    // Everything is read from the screen before anything is written: one layout is enough.
    const screen = readScreen();
    if (state.view === "pivot") {
      view = pivotView();
    } else {
      const columns = tableColumns();
      const isKnown = columns.some((column) => column.key === state.sort);
      view = { columns, rows: sorted(shownModels(), columns), sort: isKnown ? state.sort : "rank" };
    }
    table.className = `scores ${state.view === "pivot" ? "pivot" : "list"}${state.intervals ? " printed" : ""}${hasLongNames || folded.isTight ? " long-names" : ""}${smallPrints.some(Boolean) ? " two-lines" : ""}${narrow.matches ? " narrow" : ""}${folded.isTight ? " tight" : ""}`;
    table.setAttribute("aria-rowcount", String(view.rows.length + 1));
    table.setAttribute("aria-colcount", String(view.columns.length));
    replaceMarkup(table.caption, captionText());
    drawColumns();
    replaceMarkup(table.tHead, html`<tr>${view.columns.map(headCell)}</tr>`);
    drawRows(true, screen);
    drawFurther();
  }

  /* Where the screen is over the rows, in pixels from the first one's top, and over the columns. */
  function readScreen() {
    const box = sheet.getBoundingClientRect();
    const top = Math.max(box.top, 0) - table.tBodies[0].getBoundingClientRect().top;
    const height = Math.max(0, Math.min(box.bottom, innerHeight) - Math.max(box.top, 0));
    return { top, height: Math.max(height, 300), left: sheet.scrollLeft, width: sheet.clientWidth };
  }

  function captionText() {
    if (state.view === "pivot") return html`The stronger the colour, the better. Point at a number for its interval.`;
    const shown = view.rows.length;
    const among = shown === models.length ? counted(shown, "model") : `${shown} of ${counted(models.length, "model")}${state.node.isRanked ? "; ranks are among all" : ""}`;
    return html`${among}. Dots are scores, bars their 95% intervals.`;
  }

  function drawColumns() {
    const group = table.querySelector("colgroup") || table.insertBefore(document.createElement("colgroup"), table.tHead);
    group.replaceChildren(...view.columns.map((column) => {
      const col = document.createElement("col");
      if (column.width) col.style.width = `${column.width}rem`;
      return col;
    }));
    // The column that is drawn takes what is left, and has room enough where nothing is.
    const least = drawnWidth();
    const widths = sumOfWidths(view.columns);
    const hasDrawn = view.columns.some((column) => !column.width);
    const room = sheet.clientWidth / remSize();
    table.classList.toggle("short-axis", least + Math.max(0, room - widths) < DRAWN_WIDTH.usual);
    const size = narrow.matches && state.view !== "pivot" ? "100%" : `${widths}rem`;
    table.style.width = hasDrawn ? "100%" : size;
    table.style.minWidth = size;
    let x = 0;
    const rem = remSize();
    view.edges = view.columns.map((column) => { x += (column.width ?? least) * rem; return x; });
    const [first] = view.columns;
    sheet.style.setProperty("--rank", first.kind === "rank" ? `${first.width}rem` : "0rem");
  }

  function headCell(column, index) {
    const isSorted = column.key === view.sort;
    const upwards = (column.first === "ascending") !== state.down;
    const fitting = column.width && (narrow.matches || folded.isTight) ? Math.floor((column.width - 1) / LETTER_WIDTH) : Infinity;
    const text = hyphenated(column.title, fitting);
    const title = column.isName ? nameOf(text) : text;
    const button = column.sortBy
      ? html`<button type="button" class="sort" data-sort="${column.key}" data-focus="sort ${column.key}">${title}</button>`
      : html`<span class="sort">${title}</span>`;
    const axis = column.axis && !narrow.matches && html`<svg class="axis" aria-hidden="true" focusable="false">${column.axis.ticks.map(([x, label]) => html`<text x="${x}" y="11" text-anchor="middle">${label}</text>`)}</svg>`;
    const hint = column.hint || (column.node ? pathText(column.node) : "");
    return html`<th scope="col" class="${column.kind}${column.unfoldedFrom ? " inner" : ""}${column.node && state.open.has(column.node) ? " open" : ""}"${isSorted && html` aria-sort="${upwards ? "ascending" : "descending"}"`} title="${shortened(hint, 400)}">${column.unfoldedFrom && html`<span class="small from">${nameOf(column.unfoldedFrom.title)} ›</span>`}${button}${column.note && html`<span class="small">${column.note}</span>`}${headActions(column)}${axis}</th>`;
  }

  function headActions(column) {
    const node = column.node;
    if (!node || narrow.matches || node === state.node) return "";
    const isOpen = state.open.has(node);
    const unfold = node.parts.length > 0 && html`<button type="button" class="unfold" data-unfold="${node.index}" data-focus="unfold ${node.index}" aria-expanded="${isOpen}" aria-label="Parts of ${shortened(node.title, 60)}">${count(node.parts.length)}</button>`;
    return html`<span class="acts">${unfold}<button type="button" class="rank-by" data-by="${node.index}" data-focus="by ${node.index}" aria-label="Rank by ${shortened(node.title, 60)}">${folded.isTight ? "rank" : "rank by"}</button></span>`;
  }

  function rowMarkup(row, index, [from, to]) {
    const isUnfolded = typeof row === "number" && state.unfolded.has(row);
    const pinned = pinnedColumns();
    const cell = (column, place) => {
      const content = column.cell(row);
      const position = view.isWide && html` aria-colindex="${place + 1}"`;
      if (column.kind === "head") return html`<th scope="row" class="head"${position}>${content}</th>`;
      const more = column.className ? ` ${column.className(row)}` : "";
      return html`<td class="${column.kind}${more}"${position}${column.tip && html` data-column="${place}" tabindex="-1"`}>${content}</td>`;
    };
    const gap = (size) => (size > 0 ? html`<td colspan="${size}"></td>` : "");
    const cells = [
      view.columns.slice(0, pinned).map(cell), gap(from - pinned),
      view.columns.slice(from, to).map((column, i) => cell(column, from + i)), gap(view.columns.length - to),
    ];
    const detail = isUnfolded && html`<tr class="detail" data-detail="${row}"><td colspan="${view.columns.length}"><div class="detail-inside">${detailMarkup(row)}</div></td></tr>`;
    return html`<tr data-index="${index}" aria-rowindex="${index + 2}"${isUnfolded && html` class="unfolded"`}>${cells}</tr>${detail}`;
  }

  /* How many columns stay in place when the others move: rank and model. */
  const pinnedColumns = () => view.columns.findIndex((column) => column.kind === "head") + 1;

  const heightOf = (row) => rowHeight + (typeof row === "number" && state.unfolded.has(row) ? detailHeights.get(row) || 400 : 0);

  /* The ranges of rows and columns that are on the screen. */
  function rangesOnScreen(screen) {
    const total = view.rows.length;
    const all = { rows: [0, total], columns: [pinnedColumns(), view.columns.length] };
    if (isPrinting || total * view.columns.length <= DRAWN_CELLS) return all;
    const bottom = screen.top + screen.height;
    let y = 0;
    let first = 0;
    while (first < total && y + heightOf(view.rows[first]) < screen.top) { y += heightOf(view.rows[first]); first += 1; }
    let last = first;
    while (last < total && y < bottom) { y += heightOf(view.rows[last]); last += 1; }
    // Fewer rows than before may leave the screen below the last one until it is scrolled back.
    if (first === total) first = Math.max(0, total - Math.ceil(screen.height / rowHeight));
    return { rows: [first, last], columns: view.isWide ? columnsOnScreen(screen) : all.columns };
  }

  function columnsOnScreen(screen) {
    const pinned = pinnedColumns();
    let first = view.edges.findIndex((edge, place) => place >= pinned && edge > screen.left + view.edges[pinned - 1]);
    if (first < 0) first = pinned;
    let last = view.edges.findIndex((edge) => edge > screen.left + screen.width);
    if (last < 0) last = view.columns.length - 1;
    return [Math.max(pinned, first), Math.min(view.columns.length, last + 1)];
  }

  /* The place of rows that are not drawn: only their names, each where its row will be, so that the browser's search finds them. */
  function spacer(from, to) {
    if (from === to) return "";
    const names = view.rows.slice(from, to).map((row) => {
      const name = typeof row === "number" ? models[row].label : row.title;
      const line = shortened(name.replace(/\s+/g, " "), 200);
      return state.unfolded.has(row) ? html`<div class="unfolded" data-height="${heightOf(row)}">${line}</div>` : `${line}\n`;
    });
    return html`<tr class="space" aria-hidden="true"><td colspan="${view.columns.length}" height="${Math.round(sumOfHeights(from, to))}"><div class="names-of">${names}</div></td></tr>`;
  }

  const sumOfHeights = (from, to) => view.rows.slice(from, to).reduce((sum, row) => sum + heightOf(row), 0);

  function drawRows(isNew = false, screen = readScreen()) {
    const total = view.rows.length;
    view.isWide = !narrow.matches && view.columns.length > 24 && view.edges.at(-1) > screen.width;
    rowHeight = rowHeights.get(table.className) || rowHeight;
    const { rows: [first, last], columns: [left, right] } = rangesOnScreen(screen);
    const isCovered = first >= drawn.rows[0] && last <= drawn.rows[1] && left >= drawn.columns[0] && right <= drawn.columns[1];
    if (!isNew && isCovered) return;
    const [from, to] = [Math.max(0, first - SPARE_ROWS), Math.min(total, last + SPARE_ROWS)];
    const columns = [Math.max(pinnedColumns(), left - SPARE_COLUMNS), Math.min(view.columns.length, right + SPARE_COLUMNS)];
    drawn = { rows: [from, to], columns };
    const focus = isNew ? null : focusedCell();
    const rows = view.rows.slice(from, to).map((row, i) => rowMarkup(row, from + i, columns));
    const empty = total ? "" : html`<tr><td class="empty" colspan="${view.columns.length}">No models match. <button type="button" data-clear="1">Clear the filters</button></td></tr>`;
    const body = table.tBodies[0];
    body.innerHTML = html`${spacer(0, from)}${rows}${spacer(to, total)}${empty}`.text;
    // The page's policy allows no style in markup.
    for (const line of body.querySelectorAll(".space .unfolded")) line.style.height = `${line.dataset.height}px`;
    for (const names of body.querySelectorAll(".names-of")) names.style.lineHeight = `${rowHeight}px`;
    const assumedHeight = rowHeight;
    measureRows(body);
    const hasSpacer = from > 0 || to < total;
    if (hasSpacer && rowHeight !== assumedHeight) {
      // The first rows of this kind: those that are not drawn have the same height.
      drawRows(true);
      return;
    }
    const entrance = body.querySelector("td[data-column]");
    if (entrance) entrance.tabIndex = 0;
    if (focus) focusCell(focus.index, focus.column, false);
  }

  function measureRows(body) {
    for (const detail of body.querySelectorAll("tr.detail")) detailHeights.set(Number(detail.dataset.detail), detail.getBoundingClientRect().height);
    const sample = body.querySelector("tr[data-index]:not(.unfolded)");
    if (!sample || rowHeights.has(table.className)) return;
    rowHeight = sample.getBoundingClientRect().height || rowHeight;
    rowHeights.set(table.className, rowHeight);
  }

  let isWaiting = false;
  function onScroll() {
    hideTip();
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => { isWaiting = false; drawRows(); drawFurther(); });
  }

  /* Say that there is more on the right, and how much: the edge is shaded and a button goes there. */
  function drawFurther() {
    const end = sheet.scrollLeft + sheet.clientWidth;
    const number = sheet.scrollWidth - end > 2 ? view.edges.filter((edge) => edge > end + 2).length : 0;
    by("frame").classList.toggle("has-further", number > 0);
    by("further").hidden = !number;
    by("further").textContent = `${counted(number, "more column")} \u2192`;
  }

  let isPrinting = false;

  // -- One model, unfolded ------------------------------------------------------------------------------

  function detailMarkup(row) {
    const model = models[row];
    const about = facts.map((fact) => [fact.title, fact.kind === "link" ? linkTo(factText(fact, factOf(model, fact.key))) : factText(fact, factOf(model, fact.key)), fact.note]);
    const runs = extraColumns(state.node).filter((column) => !column.key.startsWith("fact:")).map((column) => [column.title, column.cell(row), column.note]);
    const pairs = [["Model", model.model !== model.label ? nameOf(model.model || "") : "", ""], ...about, ...runs].filter(([, content]) => markupOf(content) !== "");
    const top = [state.node, ...state.node.parts];
    const all = nodes.filter((node) => !top.includes(node));
    const folds = foldLink(row);
    const rest = all.length > 0 && (all.length <= 12
      ? numberList(all, row)
      : html`<details><summary>All ${count(nodes.length)} numbers</summary>${numberList(nodes, row)}</details>`);
    return html`<p class="tip-title">${nameOf(shortened(model.label, 400))}</p>${model.page && html`<p><a href="${model.page}">Page of this model</a></p>`}${folds}${numberList(top, row)}${rest}<dl class="facts">${pairs.map(([title, content, note]) => html`<div><dt>${title}${note && html` <span class="quiet">(${note})</span>`}</dt><dd>${content}</dd></div>`)}</dl>`;
  }

  function foldLink(row) {
    return by(`run-${row + 1}`) ? html`<p><a href="#run-${row + 1}">Details of its run</a></p>` : "";
  }

  function numberList(list, row) {
    const least = Math.min(...list.map((node) => node.depth));
    return html`<ul class="numbers-of">${list.map((node) => {
      const score = scoreOf(node, row);
      const address = addressOf(node, row);
      const value = valueText(score, node.inPoints);
      const shown = address && score.value !== null ? html`<a href="${address}">${value}</a>` : value;
      const words = score.value === null ? score.reason || "no number" : [intervalText(score, node.inPoints) || score.reason || "no interval", score.n === null ? "" : `n ${count(score.n)}`].filter(Boolean).join(", ");
      return html`<li class="depth-${Math.min(4, node.depth - least)}"><span class="what">${nameOf(node.title)}${node.measure && html` <span class="quiet">(${node.measure})</span>`}</span><span class="value">${shown}</span><span class="small">${words}</span></li>`;
    })}</ul>`;
  }

  // -- Controls ------------------------------------------------------------------------------------------

  const controls = by("controls");

  function buildControls() {
    const options = nodes.map((node) => html`<option value="${node.index}">${"\u00a0\u00a0\u00a0".repeat(node.depth)}${shortened(node.title, 60)}</option>`);
    controls.innerHTML = html`
<nav class="tabs" aria-label="Groups"></nav>
<div class="bar-of-controls">
<label class="search"><span class="unseen">Search models</span><input type="search" id="search" placeholder="Search models" autocomplete="off" spellcheck="false"></label>
${nodes.length > 1 && html`<label>Rank by <select id="rank-by">${options}</select></label>`}
<label class="only-narrow">Also show <select id="second"></select></label>
${facts.some((fact) => fact.kind !== "link") && html`<details class="menu" id="filters"><summary>Filters <span class="number-of"></span></summary><div class="menu-inside">${facts.filter((fact) => fact.kind !== "link").map(filterMarkup)}<p><button type="button" data-clear="1">Clear the filters</button></p></div></details>`}
<details class="menu" id="columns"><summary>Columns</summary><div class="menu-inside" id="columns-inside"></div></details>
<label class="switch"><input type="checkbox" id="intervals"> Intervals</label>
<span class="views" role="group" aria-label="View"${!dimensions.length && !plotFacts().length && html` hidden`}>${viewButton("table", "Table")}${dimensions.length > 0 && viewButton("pivot", "Pivot")}${plotFacts().length > 0 && viewButton("plot", "Plot")}</span>
</div>
<div id="pivot-choice" class="bar-of-controls"></div>
<nav class="trail" aria-label="Where this is"></nav>`.text;
    controls.hidden = false;
  }

  const viewButton = (name, title) => html`<button type="button" data-view="${name}">${title}</button>`;

  function filterMarkup(fact) {
    const note = fact.note && html` <span class="quiet">(${fact.note})</span>`;
    if (fact.kind === "range" || fact.kind === "date") {
      const ordered = [...fact.contents].sort((a, b) => (a < b ? -1 : Number(a > b)));
      const ends = [["from", "from", ordered[0]], ["to", "to", ordered.at(-1)]];
      return html`<fieldset data-fact="${fact.key}"><legend>${fact.title}${note}</legend>${ends.map(([end, word, example]) => html`<label><span class="end">${word}</span> <input ${fact.kind === "range" ? html`type="number" step="any"` : html`type="text" size="10"`} data-end="${end}" placeholder="${example}"></label>`)}</fieldset>`;
    }
    const counts = new Map();
    for (const content of fact.contents) counts.set(factText(fact, content), (counts.get(factText(fact, content)) || 0) + 1);
    const choices = [...counts].sort((a, b) => b[1] - a[1] || byName(a[0], b[0]));
    return html`<fieldset data-fact="${fact.key}"><legend>${fact.title}${note}</legend><div class="choices">${choices.map(([text, number]) => html`<label><input type="checkbox" value="${text}"> ${nameOf(shortened(text, 60))} <span class="quiet">${number}</span></label>`)}</div></fieldset>`;
  }

  function fillControls() {
    fillTabs();
    fillTrail();
    fillPivotChoice();
    const select = by("rank-by");
    if (select) select.value = String(state.node.index);
    if (by("search").value !== state.search) by("search").value = state.search;
    by("intervals").checked = state.intervals;
    for (const button of controls.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", String(button.dataset.view === state.view));
    fillFilters();
    fillColumns();
    for (const [id, isUsed] of [["columns", state.view === "table" && !narrow.matches], ["intervals", state.view !== "plot"]]) {
      const control = by(id).closest(".menu, .switch");
      control.hidden = !isUsed;
    }
  }

  function fillTabs() {
    const groups = state.node.root.parts.filter((part) => part.parts.length);
    const tabs = [...roots, ...(groups.length <= MOST_TABS ? groups : [])];
    const nav = controls.querySelector(".tabs");
    nav.hidden = tabs.length < 2 || narrow.matches;
    const path = pathOf(state.node);
    const current = tabs.filter((node) => path.includes(node)).at(-1);
    replaceMarkup(nav, html`${tabs.map((node, i) => html`${i === roots.length && html`<span class="divide" aria-hidden="true"></span>`}<button type="button" data-by="${node.index}" data-focus="tab ${node.index}"${node === current && html` aria-current="true"`}>${nameOf(shortened(node.title, 40))}</button>`)}`);
  }

  function fillTrail() {
    const nav = controls.querySelector(".trail");
    const path = pathOf(state.node);
    nav.hidden = path.length < 2 || state.view === "pivot";
    replaceMarkup(nav, html`${path.map((node) => (node === state.node
      ? html`<span aria-current="true">${nameOf(shortened(node.title, 60))}</span>`
      : html`<button type="button" data-by="${node.index}" data-focus="trail ${node.index}">${nameOf(shortened(node.title, 60))}</button><span aria-hidden="true"> › </span>`))}`);
  }

  function fillFilters() {
    const menu = by("filters");
    if (!menu) return;
    let active = 0;
    for (const set of menu.querySelectorAll("fieldset")) {
      const filter = state.filters[set.dataset.fact];
      for (const box of set.querySelectorAll("input[type=checkbox]")) box.checked = filter instanceof Set && filter.has(box.value);
      for (const input of set.querySelectorAll("input[data-end]")) {
        const text = filter && !(filter instanceof Set) ? filter[input.dataset.end] : "";
        if (input !== document.activeElement) input.value = text;
      }
      if (filter && (filter instanceof Set ? filter.size : filter.from || filter.to)) active += 1;
    }
    menu.querySelector(".number-of").textContent = active ? `(${active})` : "";
  }

  function fillColumns() {
    const scores = scoreColumns();
    const extras = extraColumns(state.node);
    fillSecond(scores, extras);
    if (!by("columns").open) return;
    const boxes = (columns) => columns.map((column) => html`<label><input type="checkbox" data-column-key="${column.key}" data-focus="column ${column.key}"${isShown(column) && html` checked`}> ${nameOf(shortened(column.title, 60))}</label>`);
    replaceMarkup(by("columns-inside"), html`${scores.length > 0 && html`<fieldset><legend>${shortened(state.node.title, 40)}</legend><p><button type="button" data-all="1" data-focus="all">All</button> <button type="button" data-all="0" data-focus="none">None</button></p><div class="choices">${boxes(scores)}</div></fieldset>`}<fieldset><legend>About the models</legend><div class="choices">${boxes(extras)}</div></fieldset>`);
  }

  /* The column that a narrow screen shows beside the headline. */
  function fillSecond(scores, extras) {
    const second = [...scores, ...extras.filter((column) => !isOff(column))];
    const select = by("second");
    const isUsed = narrow.matches && state.view === "table" && second.length > 1;
    select.closest("label").hidden = !isUsed;
    if (!isUsed) return;
    select.innerHTML = html`${second.map((column) => html`<option value="${column.key}">${shortened(column.title, 60)}</option>`)}`.text;
    select.value = second.some((column) => column.key === state.second) ? state.second : second[0]?.key || "";
  }

  function fillPivotChoice() {
    const place = by("pivot-choice");
    place.hidden = state.view === "table";
    if (state.view === "plot") {
      const options = plotFacts().map((fact) => html`<option value="${fact.key}"${fact === plotFact() && html` selected`}>${fact.title}</option>`);
      replaceMarkup(place, html`<label>Against <select id="across" data-focus="across">${options}</select></label>`);
      return;
    }
    if (state.view !== "pivot") return;
    const choice = pivotChoice();
    const axis = (name, title) => html`<label>${title} <select id="pivot-${name}" data-focus="pivot ${name}">${pivotAxes.map(([key, text]) => html`<option value="${key}"${choice[name] === key && html` selected`}>${text}</option>`)}</select></label>`;
    const used = [choice.rows, choice.columns];
    const others = dimensions.filter((dimension) => !used.includes(dimension.key)).map((dimension) => html`<label>${dimension.title} <select data-fixed="${dimension.key}" data-focus="fixed ${dimension.key}"><option value="">All</option>${dimension.values.map(([value, title]) => html`<option value="${value}"${state.fixed[dimension.key] === value && html` selected`}>${shortened(title, 60)}</option>`)}</select></label>`);
    const model = !used.includes("model") && html`<label>Model <select id="pivot-model" data-focus="pivot model">${models.map((model, row) => html`<option value="${row}"${row === state.model && html` selected`}>${shortened(model.label, 80)}</option>`)}</select></label>`;
    replaceMarkup(place, html`${axis("rows", "Rows")}${axis("columns", "Columns")}${model}${others}`);
  }

  const shownMarkup = new WeakMap();

  /* Replace what an element has if it is another, and keep the focus on what had it. */
  function replaceMarkup(element, markup) {
    if (shownMarkup.get(element) === markup.text) return;
    shownMarkup.set(element, markup.text);
    const focus = element.contains(document.activeElement) ? focusKey() : null;
    element.innerHTML = markup.text;
    refocus(focus);
  }

  const focusKey = () => document.activeElement?.dataset?.focus || null;

  function refocus(key) {
    if (!key || document.activeElement?.dataset?.focus === key) return;
    const target = [...document.querySelectorAll("[data-focus]")].find((element) => element.dataset.focus === key);
    if (target) target.focus({ preventScroll: true });
  }

  // -- The plot ---------------------------------------------------------------------------------------------

  const plotFacts = () => facts.filter((fact) => (fact.kind === "range" || fact.kind === "date") && new Set(fact.contents).size > 1);
  const plotFact = () => plotFacts().find((fact) => fact.key === state.across) || plotFacts()[0];

  function drawPlot() {
    const fact = plotFact();
    const node = state.node;
    const amountOf = (row) => {
      const content = factOf(models[row], fact.key);
      if (content === null) return null;
      return fact.kind === "date" ? Date.parse(content) : content;
    };
    const shown = shownModels();
    const rows = shown.filter((row) => amountOf(row) !== null && node.value[row] !== null && node.value[row] !== undefined);
    const amounts = rows.map(amountOf);
    const low = amounts.reduce((least, amount) => Math.min(least, amount), Infinity);
    const high = amounts.reduce((most, amount) => Math.max(most, amount), -Infinity);
    const isLog = fact.kind === "range" && low > 0 && high / low > 20;
    const scale = isLog ? Math.log10 : (amount) => amount;
    const span = scale(high) - scale(low) || 1;
    const x = (amount) => 70 + 860 * (0.03 + 0.94 * (scale(amount) - scale(low)) / span);
    const axis = axisOf(node);
    const y = (amount) => 420 - 4 * Number.parseFloat(axis.place(amount));
    const marks = rows.map((row) => {
      const score = scoreOf(node, row);
      const words = `${models[row].label}: ${valueText(score, node.inPoints)} ${intervalText(score, node.inPoints) || score.reason || "no interval"}, n ${count(score.n)}; ${fact.title} ${factText(fact, factOf(models[row], fact.key))}`;
      const [cx, cy] = [x(amountOf(row)).toFixed(1), y(score.value).toFixed(1)];
      const mark = html`<title>${words}</title><line class="range" x1="${cx}" x2="${cx}" y1="${y(score.low ?? score.value).toFixed(1)}" y2="${y(score.high ?? score.value).toFixed(1)}"/><circle class="point" cx="${cx}" cy="${cy}" r="5"/>`;
      return models[row].page ? html`<a href="${addressOf(node, row)}" aria-label="${words}">${mark}</a>` : html`<g tabindex="0" role="img" aria-label="${words}">${mark}</g>`;
    });
    const names = plotNames(rows, x, y, amountOf, node);
    const xTicks = plotTicks(fact, low, high, isLog).map(([amount, text]) => html`<text x="${x(amount).toFixed(1)}" y="445" text-anchor="middle">${text}</text>`);
    const yTicks = axis.ticks.map(([place, text]) => html`<line class="tick" x1="70" x2="930" y1="${420 - 4 * Number.parseFloat(place)}" y2="${420 - 4 * Number.parseFloat(place)}"/><text x="60" y="${424 - 4 * Number.parseFloat(place)}" text-anchor="end">${text}</text>`);
    const lacking = shown.length - rows.length;
    by("plot").innerHTML = html`<svg viewBox="0 0 960 480" role="group" aria-label="${shortened(node.title, 80)} against ${fact.title}">${yTicks}${xTicks}${rows.length > 0 && marks}${names}<text class="title" x="70" y="12">${shortened(node.title, 60)}${node.lower_is_better && " (lower is better)"}</text><text class="title" x="930" y="470" text-anchor="end">${fact.title}${fact.note && ` (${fact.note})`}</text></svg><p class="note quiet">${counted(rows.length, "model")}${lacking > 0 && `; ${lacking} without ${fact.title.toLowerCase()} or number`}. Dots are scores, bars their 95% intervals. Point at a dot for its model.</p>`.text;
  }

  /* Names of the models that no smaller, cheaper or earlier one beats, where they have room. */
  function plotNames(rows, x, y, amountOf, node) {
    const sign = node.lower_is_better ? -1 : 1;
    const ordered = [...rows].sort((a, b) => amountOf(a) - amountOf(b) || sign * (node.value[b] - node.value[a]));
    let best = -Infinity;
    const front = ordered.filter((row) => {
      if (sign * node.value[row] <= best) return false;
      best = sign * node.value[row];
      return true;
    });
    return front.slice(-8).map((row) => {
      const place = x(amountOf(row));
      const isRight = place > 700;
      return html`<text x="${(place + (isRight ? -9 : 9)).toFixed(1)}" y="${(y(node.value[row]) - 8).toFixed(1)}" text-anchor="${isRight ? "end" : "start"}">${shortened(models[row].label, 32)}</text>`;
    });
  }

  function plotTicks(fact, low, high, isLog) {
    if (!(high >= low)) return [];
    if (isLog) {
      const ticks = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
        for (const factor of [1, 3]) {
          const amount = factor * 10 ** power;
          if (amount >= low * 0.999 && amount <= high * 1.001) ticks.push([amount, factText(fact, Number(amount.toPrecision(3)))]);
        }
      }
      return ticks;
    }
    return [0, 1, 2, 3, 4].map((i) => {
      const amount = low + (high - low) * i / 4;
      return [amount, fact.kind === "date" ? new Date(amount).toISOString().slice(0, 7) : factText(fact, Number(amount.toPrecision(3)))];
    });
  }

  // -- What the reader does -----------------------------------------------------------------------------------

  function draw() {
    const isPlot = state.view === "plot" && plotFacts().length > 0;
    if (state.view === "plot" && !isPlot) state.view = "table";
    if (state.view === "pivot" && !dimensions.length) state.view = "table";
    sheet.hidden = isPlot;
    by("frame").hidden = isPlot;
    by("plot").hidden = !isPlot;
    fitColumns();
    fillControls();
    if (isPlot) drawPlot();
    else drawTable();
  }

  function say(text) { by("said").textContent = text; }

  function change(changes, words = "") {
    Object.assign(state, changes);
    draw();
    keepInAddress();
    if (words) say(words);
  }

  const rankBy = (node) => change({ node, sort: "rank", down: false }, `Ranked by ${shortened(node.title, 80)}.`);

  function sortBy(key) {
    const column = view.columns.find((candidate) => candidate.key === key);
    const down = state.sort === key || view.sort === key ? !state.down : false;
    const upwards = (column.first === "ascending") !== down;
    change({ sort: key, down }, `Sorted by ${shortened(column.title, 80)}, ${upwards ? "ascending" : "descending"}.`);
  }

  function unfold(node) {
    const open = new Set(state.open);
    if (!open.delete(node)) open.add(node);
    change({ open }, `${count(node.parts.length)} parts of ${shortened(node.title, 80)} ${open.has(node) ? "shown" : "hidden"}.`);
  }

  function unfoldRow(row) {
    if (!state.unfolded.delete(row)) state.unfolded.add(row);
    drawRows(true);
    const button = table.querySelector(`button[data-row="${row}"]`);
    if (button) button.focus({ preventScroll: true });
  }

  function clearFilters() {
    for (const input of controls.querySelectorAll("#filters input")) { input.value = input.type === "checkbox" ? input.value : ""; }
    change({ filters: lookup({}), search: "" }, `${counted(models.length, "model")}.`);
  }

  function onClick(event) {
    const target = event.target.closest("[data-sort], [data-unfold], [data-by], [data-row], [data-view], [data-clear], [data-all]");
    if (!target) return;
    const { sort, unfold: part, by: node, row, view: name, clear, all } = target.dataset;
    if (sort !== undefined) sortBy(sort);
    else if (part !== undefined) unfold(nodes[Number(part)]);
    else if (node !== undefined) rankBy(nodes[Number(node)]);
    else if (row !== undefined) unfoldRow(Number(row));
    else if (name !== undefined) change({ view: name, sort: "rank", down: false });
    else if (clear !== undefined) clearFilters();
    else if (all !== undefined) showAll(all === "1");
  }

  function showAll(isOn) {
    const off = new Set(state.off);
    for (const column of scoreColumns()) {
      if (isOn) off.delete(column.key);
      else off.add(column.key);
    }
    change({ off });
  }

  function onColumnBox(box) {
    const column = [...scoreColumns(), ...extraColumns(state.node)].find((candidate) => candidate.key === box.dataset.columnKey);
    const name = isOff(column) ? "on" : "off";
    const keys = new Set(state[name]);
    if (box.checked === isOff(column)) keys.add(column.key);
    else keys.delete(column.key);
    change({ [name]: keys });
  }

  function onFilter(input) {
    const { fact } = input.closest("fieldset").dataset;
    const filters = lookup(state.filters);
    if (input.dataset.end) {
      const ends = filters[fact] && !(filters[fact] instanceof Set) ? filters[fact] : { from: "", to: "" };
      filters[fact] = { ...ends, [input.dataset.end]: input.value.trim() };
    } else {
      const chosen = new Set(filters[fact] instanceof Set ? filters[fact] : []);
      if (input.checked) chosen.add(input.value);
      else chosen.delete(input.value);
      filters[fact] = chosen;
    }
    change({ filters });
    say(`${view.rows.length} of ${counted(models.length, "model")}.`);
  }

  function onInput(event) {
    const input = event.target;
    if (input.id === "search") {
      change({ search: input.value });
      say(`${view.rows.length} of ${counted(models.length, "model")}.`);
    } else if (input.dataset.columnKey !== undefined) onColumnBox(input);
    else if (input.closest("#filters")) onFilter(input);
    else if (input.id === "rank-by") rankBy(nodes[Number(input.value)]);
    else if (input.id === "second") change({ second: input.value });
    else if (input.id === "intervals") change({ intervals: input.checked });
    else if (input.id === "across") change({ across: input.value });
    else if (input.id === "pivot-rows") change({ rows: input.value, sort: "rank", down: false, columns: input.value === pivotChoice().columns ? pivotChoice().rows : pivotChoice().columns });
    else if (input.id === "pivot-columns") change({ columns: input.value, sort: "rank", down: false, rows: input.value === pivotChoice().rows ? pivotChoice().columns : pivotChoice().rows });
    else if (input.id === "pivot-model") change({ model: Number(input.value) });
    else if (input.dataset.fixed !== undefined) change({ fixed: lookup({ ...state.fixed, [input.dataset.fixed]: input.value }) });
  }

  // Arrows go from number to number; only one of them is a stop of the Tab key.

  function focusedCell() {
    const td = document.activeElement?.closest?.("#board td[data-column]");
    return td ? { index: Number(td.parentElement.dataset.index), column: Number(td.dataset.column) } : null;
  }

  function focusCell(index, column, isScrolled = true) {
    const row = table.querySelector(`tr[data-index="${index}"]`);
    const td = row && row.querySelector(`td[data-column="${column}"]`);
    if (!td) return false;
    for (const stop of table.querySelectorAll("td[tabindex='0']")) stop.tabIndex = -1;
    td.tabIndex = 0;
    td.focus({ preventScroll: !isScrolled });
    return true;
  }

  function onKey(event) {
    if (event.key === "Escape") {
      hideTip();
      for (const menu of controls.querySelectorAll("details.menu[open]")) {
        menu.open = false;
        menu.querySelector("summary").focus();
      }
      return;
    }
    const place = focusedCell();
    if (!place || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter" && event.target.tagName === "TD") {
      const link = event.target.querySelector("a");
      if (link) link.click();
      return;
    }
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const index = place.index + step[0];
    let column = place.column + step[1];
    while (column >= 0 && column < view.columns.length && !view.columns[column].tip) column += step[1];
    if (index < 0 || index >= view.rows.length || !view.columns[column]) return;
    if (!focusCell(index, column)) {
      // The next cell is just beyond those that are drawn: draw those around the screen again.
      drawRows(true);
      focusCell(index, column);
    }
    drawRows();
  }

  function onPoint(event) {
    const td = event.target.closest?.("#board td[data-column]");
    if (td) showTip(td);
    else if (!event.target.closest?.("#tip")) hideTip();
  }

  /* A menu that would reach over the edge of the page is moved to the left. */
  function onToggle(event) {
    if (event.target.id === "columns") fillColumns();
    const inside = event.target.open && event.target.querySelector(":scope > .menu-inside");
    if (!inside || narrow.matches) return;
    inside.style.left = "0px";
    const over = inside.getBoundingClientRect().right + 16 - document.documentElement.clientWidth;
    if (over > 0) inside.style.left = `${-over}px`;
  }

  function onOutside(event) {
    for (const menu of controls.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  }

  function start() {
    if (!nodes.length) return;
    buildControls();
    readFragment();
    draw();
    document.addEventListener("click", onClick);
    document.addEventListener("click", onOutside);
    controls.addEventListener("input", onInput);
    controls.addEventListener("toggle", onToggle, true);
    document.addEventListener("keydown", onKey);
    document.addEventListener("pointerover", onPoint);
    document.addEventListener("focusin", onPoint);
    sheet.addEventListener("scroll", onScroll, { passive: true });
    by("further").addEventListener("click", () => sheet.scrollBy({ left: 0.6 * sheet.clientWidth }));
    addEventListener("scroll", onScroll, { passive: true });
    let width = innerWidth;
    addEventListener("resize", () => {
      // A phone's address bar changes the height alone.
      const isWidth = width !== innerWidth;
      width = innerWidth;
      if (isWidth) draw();
      else if (!sheet.hidden) drawRows();
    });
    narrow.addEventListener("change", draw);
    addEventListener("beforeprint", () => { isPrinting = true; drawRows(true); });
    addEventListener("afterprint", () => { isPrinting = false; drawRows(true); });
    addEventListener("hashchange", () => {
      if (location.hash && !location.hash.includes("=")) return;
      readFragment();
      draw();
    });
  }
  start();
})();
