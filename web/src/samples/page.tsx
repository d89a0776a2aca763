/** All samples of a run: search, conditions, order, and the list itself. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RunInfo, RunState } from "../data/api";
import { findRun, links, type PageProps, useRun } from "../pages";
import { useKeys } from "../shell/keys";
import { ColumnChooser, shownColumns } from "./columns";
import { Facets } from "./facets";
import { plain } from "../text/special";
import { placeIn, remember, rememberPlace } from "./list";
import { type Search, useSearch } from "./search";
import {
  conditions,
  filterOf,
  keepKnown,
  orderOf,
  withOrder,
  withoutConditions,
  withSearch,
} from "./state";
import { MOST_ROWS, Table, type TableHandle, useMedia } from "./table";
import { count, counted } from "./values";

const NONE = new Int32Array(0);

export function SamplesPage({ data, parameters, query, go }: PageProps) {
  const name = parameters.RUN ?? "";
  const info = findRun(data.catalog, name);
  const key = info?.key ?? "";
  const { value: run, error } = useRun(data, key);
  const text = query.toString();
  const words = query.get("q") ?? "";
  const order = orderOf(query);
  const [typed, setTyped] = useState(words);
  const box = useRef<HTMLInputElement>(null);
  const table = useRef<TableHandle>(null);
  const narrow = useMedia("(max-width: 62rem)");
  const wide = useMedia("(min-width: 90rem)");
  const [opened, setOpened] = useState(false);

  const { filter, unknown } = useMemo(
    () => (run ? keepKnown(filterOf(query), run) : { filter: filterOf(query), unknown: [] }),
    [run, text],
  );
  const filtered = useMemo(() => (run ? run.filter(filter) : null), [run, filter]);
  const search = useSearch(run, words, filtered);
  const within = (all: Int32Array): Int32Array => {
    const { mask } = search;
    return mask ? all.filter((index) => mask[index]) : all;
  };
  const matches = useMemo(
    () => (filtered ? within(filtered) : NONE),
    [filtered, search.mask, search.part],
  );
  const sortable = run && order && run.columns.some((column) => column.name === order.column);
  const places = useMemo(
    () => (run && order && sortable ? run.sort(matches, order.column, order.descending) : matches),
    [run, matches, order?.column, order?.descending],
  );

  // The row that is marked belongs to a sample, and stays with it when the list changes.
  const [scrollRow, setPlace] = useState(() => placeIn(key));
  const active = useMemo(
    () => (scrollRow < 0 ? -1 : places.indexOf(scrollRow)),
    [places, scrollRow],
  );
  const activate = (row: number) => {
    const next = places[row];
    if (next === undefined) return;
    setPlace(next);
    rememberPlace(key, next);
  };
  const move = (row: number) => {
    const next = Math.max(0, Math.min(places.length - 1, row));
    activate(next);
    table.current?.show(next);
    table.current?.focus();
  };
  const address = (at: number) =>
    run ? links.sample(name, taskAt(at), run.id(at), run.draw(at)) : "#/";
  const tasks = run?.columns.find((column) => column.name === "task");
  const taskAt = (at: number) =>
    tasks?.kind === "category"
      ? (tasks.names[tasks.codes[at] ?? -1] ?? "")
      : (info?.tasks[0]?.name ?? "");
  const change = (next: URLSearchParams) => go(links.samples(name, next), true);

  useEffect(() => remember({ key, query, places, words }), [places, text]);
  // Coming back from a sample, one is where one was.
  const hasScrolled = useRef(false);
  useEffect(() => {
    if (!run || hasScrolled.current) return;
    hasScrolled.current = true;
    if (active >= 0) table.current?.show(active);
    // Who has begun to search by now goes on.
    if (active >= 0 && document.activeElement !== box.current) table.current?.focus();
  }, [run]);
  // Words of an address that was opened go into the box; those that came from the box must not undo
  // what was typed since.
  const sent = useRef(words);
  useEffect(() => {
    if (words !== sent.current) setTyped(words);
    sent.current = words;
  }, [words]);
  useEffect(() => {
    if (typed === words) return;
    const timer = setTimeout(() => {
      const next = withSearch(query, typed);
      sent.current = next.get("q") ?? "";
      change(next);
    }, 150);
    return () => clearTimeout(timer);
  }, [typed]);

  // Escape first empties the box, then leaves it.
  const leaveSearch = (event: KeyboardEvent) => {
    event.preventDefault();
    if (typed === "") table.current?.focus();
    else setTyped("");
  };
  const page = () => table.current?.page() ?? 10;
  useKeys([
    { keys: ["/"], does: "Search", run: () => box.current?.focus() },
    { keys: ["j", "ArrowDown"], does: "Next row", run: () => move(active + 1) },
    { keys: ["k", "ArrowUp"], does: "Previous row", run: () => move(active < 0 ? 0 : active - 1) },
    { keys: ["PageDown"], does: "A screen down", run: () => move(Math.max(active, 0) + page()) },
    { keys: ["PageUp"], does: "A screen up", run: () => move(active - page()) },
    { keys: ["Home"], does: "First row", run: () => move(0) },
    { keys: ["End"], does: "Last row", run: () => move(places.length - 1) },
    {
      keys: ["Enter", "o"],
      does: "Open the marked sample",
      run: () => active >= 0 && go(address(scrollRow)),
    },
    { keys: ["x"], does: "Clear filters", run: () => change(withoutConditions(query)) },
  ]);

  if (!info) return null;
  const columns = run ? shownColumns(run, query, wide) : [];
  const activeConditions = conditions(query) + (words ? 1 : 0);
  const searching = words !== "" && search.done < search.of;
  const status = run
    ? statusText(run.size, places.length, search, searching) + unreadText(run.size, info)
    : (error ?? "Reading the samples…");
  const empty = run ? whyEmpty(run.size, info.state, searching) : "";
  const facets = run && (
    <Facets
      run={run}
      filter={filter}
      query={query}
      within={within}
      matches={matches}
      change={change}
    />
  );
  return (
    <div class="samples">
      <h1 class="unseen">Samples of {plain(info.label || info.name)}</h1>
      <div class="toolbar">
        <input
          ref={box}
          class="search"
          type="search"
          value={typed}
          placeholder="Search all texts"
          aria-label="Search all texts"
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" || event.key === "ArrowDown")
              (event.preventDefault(), move(Math.max(active, 0)));
            if (event.key === "Escape") leaveSearch(event);
          }}
        />
        {run && (
          <label class="order">
            <span>Sort by</span>
            <select
              value={order && sortable ? (order.descending ? "-" : "") + order.column : ""}
              onChange={(event) =>
                change(
                  withOrder(
                    query,
                    orderOf(new URLSearchParams({ sort: event.currentTarget.value })),
                  ),
                )
              }
            >
              <option value="">as recorded</option>
              {run.columns.flatMap((column) => [
                <option value={column.name}>{plain(column.title)} ↑</option>,
                <option value={`-${column.name}`}>{plain(column.title)} ↓</option>,
              ])}
            </select>
          </label>
        )}
        {run && <ColumnChooser run={run} query={query} shown={columns} change={change} />}
        <p class="status" role="status">
          {status}
        </p>
        {searching && (
          <progress value={search.done} max={search.of} aria-label="Samples searched" />
        )}
        {activeConditions > 0 && (
          <button type="button" onClick={() => change(withoutConditions(query))}>
            Clear filters
          </button>
        )}
      </div>
      {unknown.length > 0 && (
        <p class="note warn">
          This run has no column {unknown.join(", ")}; those filters are left out.
        </p>
      )}
      <div class="samples-body">
        {narrow ? (
          <details
            class="facets"
            open={opened}
            onToggle={(event) => setOpened(event.currentTarget.open)}
          >
            <summary>Filters{conditions(query) ? ` (${conditions(query)})` : ""}</summary>
            {opened && <div class="facets-inside">{facets}</div>}
          </details>
        ) : (
          <aside class="facets" aria-label="Filters" tabIndex={0}>
            {facets}
          </aside>
        )}
        {run && (
          <Table
            run={run}
            columns={columns}
            places={places}
            active={active}
            order={order}
            handle={table}
            address={address}
            setActive={activate}
            empty={empty}
            setOrder={(next) => change(withOrder(query, next))}
          />
        )}
      </div>
    </div>
  );
}

function statusText(size: number, matching: number, search: Search, searching: boolean): string {
  const all = counted(size, "sample");
  const texts = [matching === size ? all : `${count(matching)} of ${all}`];
  if (searching) {
    const percent = Math.floor((100 * search.done) / Math.max(1, search.of));
    texts.push(`searched ${percent}%`);
  }
  if (search.error) texts.push(`the search stopped: ${search.error}`);
  if (matching > MOST_ROWS) texts.push(`the first ${count(MOST_ROWS)} are listed`);
  return texts.join("; ");
}

/** Says that a finished run has more samples than have been read; "" once all are. */
function unreadText(size: number, info: RunInfo): string {
  const total = info.expected ?? 0;
  if (info.state !== "finished" || size >= total) return "";
  return `; ${count(total)} in all, still reading`;
}

function whyEmpty(size: number, state: RunState, searching: boolean): string {
  if (size === 0) {
    return state === "running"
      ? "No sample is finished yet. The list grows by itself."
      : "This run recorded no sample.";
  }
  return searching ? "Searching…" : "No samples match these filters.";
}
