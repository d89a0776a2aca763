/** Which columns the list of samples shows, and the menu that chooses them. */
import { useEffect, useRef } from "preact/hooks";
import type { Column, RunData } from "../data/api";
import { Line } from "../text/text";
import { columnNames, withColumns } from "./state";

/** A column of the list. Without `column` it is text that is read with the rows. */
export interface TableColumn {
  name: string;
  title: string;
  /** Stands below the title. */
  note?: string;
  /** A track of a CSS grid. */
  width: string;
  column?: Column;
}

const TEXTS: TableColumn[] = [
  { name: "id", title: "ID", width: "minmax(7rem, .6fr)" },
  { name: "question", title: "Question", width: "minmax(0, 2.2fr)" },
  { name: "answer", title: "Answer", width: "minmax(0, 2fr)" },
  { name: "expected", title: "Expected", width: "minmax(0, 1.2fr)" },
];
/** Columns that are shown where they tell samples apart, and where there is room for them. */
const USUAL = ["task", "judges"];
const USUAL_IN_WIDE_WINDOWS = ["task", "judges", "latency", "tokens", "cost"];
/** Scores beside the main one that are shown without being chosen. */
const MOST_FURTHER_SCORES = 3;
/** The outcome has a column of its own, and is told by these. */
const IN_THE_OUTCOME = new Set(["outcome", "label", "failure", "unsure"]);

/** The scorers by which the tasks of the run are scored in the first place. */
function mainScorersOf(run: RunData): string[] {
  const column = run.columns.find(({ name }) => name === "scorer");
  return column?.kind === "category" ? column.names : [];
}

/** Further scores of the same answers, shown beside the main one. */
function furtherScores(run: RunData): string[] {
  const main = new Set(mainScorersOf(run).map((scorer) => `score.${scorer}`));
  return run.columns
    .map((column) => column.name)
    .filter((name) => name.startsWith("score.") && !main.has(name))
    .slice(0, MOST_FURTHER_SCORES);
}

/** All that can be shown, in the order in which it is shown. */
function allColumns(run: RunData): TableColumn[] {
  const scorers = mainScorersOf(run);
  const mainScorer = scorers.length === 1 && furtherScores(run).length > 0 ? scorers[0] : undefined;
  const columnOf = (column: Column): TableColumn => ({
    name: column.name,
    title: column.title,
    ...(column.name === "score" && mainScorer ? { note: mainScorer } : {}),
    width: column.name === "score" ? (mainScorer ? "6rem" : "4rem") : column.kind === "number" ? "5.25rem" : "minmax(6rem, .7fr)",
    column,
  });
  const score = run.columns.filter((column) => column.name === "score");
  const others = run.columns.filter(
    (column) => column.name !== "score" && !IN_THE_OUTCOME.has(column.name),
  );
  const further = others.filter((column) => column.name.startsWith("score."));
  const remaining = others.filter((column) => !further.includes(column));
  return [...[...score, ...further].map(columnOf), ...TEXTS, ...remaining.map(columnOf)];
}

/** Those that the address names, or else the usual ones. */
export function shownColumns(run: RunData, query: URLSearchParams, wide: boolean): TableColumn[] {
  const all = allColumns(run);
  const names = columnNames(query);
  if (names !== null)
    return all.filter((column) => column.name === "question" || names.includes(column.name));
  const usual = [...(wide ? USUAL_IN_WIDE_WINDOWS : USUAL), ...furtherScores(run)];
  const tellsApart = (column: Column) => column.kind === "number" || column.names.length > 1;
  return all.filter(
    ({ name, column }) =>
      !column || name === "score" || (usual.includes(name) && tellsApart(column)),
  );
}

export function ColumnChooser(props: {
  run: RunData;
  query: URLSearchParams;
  shown: TableColumn[];
  change(query: URLSearchParams): void;
}) {
  const { run, query, change } = props;
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event) => {
      if (menu.current && !menu.current.contains(event.target as Node)) menu.current.open = false;
    };
    document.addEventListener("pointerdown", close);
    return () => document.removeEventListener("pointerdown", close);
  }, []);
  const names = props.shown.map((column) => column.name);
  const toggle = (name: string) =>
    change(
      withColumns(
        query,
        names.includes(name) ? names.filter((shown) => shown !== name) : [...names, name],
      ),
    );
  return (
    <details
      class="menu chooser"
      ref={menu}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !menu.current) return;
        menu.current.open = false;
        menu.current.querySelector("summary")?.focus();
      }}
    >
      <summary>Columns</summary>
      <ul>
        {allColumns(run)
          .filter((column) => column.name !== "question")
          .map((column) => (
            <li key={column.name}>
              <label>
                <input
                  type="checkbox"
                  checked={names.includes(column.name)}
                  onChange={() => toggle(column.name)}
                />
                <Line value={column.title} />
              </label>
            </li>
          ))}
        <li>
          <button type="button" onClick={() => change(withColumns(query, null))}>
            The usual ones
          </button>
        </li>
      </ul>
    </details>
  );
}
