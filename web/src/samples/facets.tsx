/** Conditions on columns, with how many samples each would leave. */
import { useMemo, useState } from "preact/hooks";
import { type Column, type Filter, ownValue, type RunData } from "../data/api";
import { offeredNames } from "../data/table";
import { plain } from "../text/special";
import { Line } from "../text/text";
import { DATE, withNames, withRange } from "./state";
import { count, dayOf, number } from "./values";

/** Names that a facet shows before one asks for all, and then at most. */
const FEW = 8;
const MOST = 300;
const BINS = 32;
/** Open at first; the others are opened as they are wanted. */
const OPEN = new Set([
  "task",
  "outcome",
  "label",
  "unsure",
  "judges",
  "failure",
  "score",
  "ended",
  "tools",
]);

interface Props {
  run: RunData;
  filter: Filter;
  query: URLSearchParams;
  /** Places that all conditions leave, and the search. */
  matches: Int32Array;
  /** Those of places that the search found. */
  within(places: Int32Array): Int32Array;
  change(query: URLSearchParams): void;
}

/** Whether a column can tell samples apart. */
function isInformative(column: Column): boolean {
  if (column.kind === "category")
    return (
      column.names.length > 1 ||
      (column.names.length === 1 && column.codes.some((code) => code < 0))
    );
  let first = NaN;
  for (const value of column.values) {
    if (Number.isNaN(value)) continue;
    if (Number.isNaN(first)) first = value;
    else if (value !== first) return true;
  }
  return false;
}

export function Facets(props: Props) {
  const { run } = props;
  const columns = useMemo(() => run.columns.filter(isInformative), [run]);
  if (!columns.length) return <p class="quiet">All samples are alike in what could be filtered.</p>;
  return (
    <>
      {columns.map((column) => (
        <Facet key={column.name} column={column} {...props} />
      ))}
    </>
  );
}

function Facet({ column, ...props }: Props & { column: Column }) {
  const active =
    ownValue(props.filter.categories, column.name) !== undefined ||
    ownValue(props.filter.numbers, column.name) !== undefined;
  const [open, setOpen] = useState(active || OPEN.has(column.name));
  return (
    <details class="facet" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Line value={column.title} />
        {active && <span class="chip">filtered</span>}
      </summary>
      {open &&
        (column.kind === "category" ? (
          <Names column={column} {...props} />
        ) : (
          <Range column={column} {...props} />
        ))}
    </details>
  );
}

/** Places that all conditions leave but those on this column. */
function matchesWithout({ run, filter, matches, within }: Props, column: string): Int32Array {
  const { [column]: ignoredNames, ...categories } = filter.categories;
  const { [column]: ignoredRange, ...numbers } = filter.numbers;
  return ignoredNames === undefined && ignoredRange === undefined
    ? matches
    : within(run.filter({ categories, numbers }));
}

function Names({ column, ...props }: Props & { column: Column & { kind: "category" } }) {
  const { run, filter, query, matches, change } = props;
  const [all, setAll] = useState(false);
  const [words, setWords] = useState("");
  const total = useMemo(() => run.counts(column.name, null), [run]);
  const counts = useMemo(
    () => run.counts(column.name, matchesWithout(props, column.name)),
    [matches],
  );
  const chosen = new Set(ownValue(filter.categories, column.name) ?? []);
  const names = useMemo(() => {
    const offered = offeredNames(column);
    const codes = offered
      .map((_, code) => code)
      .sort((a, b) => (total[b] ?? 0) - (total[a] ?? 0) || a - b);
    const listed = codes.map((code) => ({ name: offered[code] ?? "", code }));
    return total[offered.length] ? [...listed, { name: "", code: offered.length }] : listed;
  }, [run, column]);
  const fits = names.filter(
    ({ name }) => !words || name.toLowerCase().includes(words.toLowerCase()),
  );
  const listed = all
    ? fits.slice(0, MOST)
    : names.filter(({ name }, index) => index < FEW || chosen.has(name));
  const toggle = (name: string) => {
    const next = new Set(chosen);
    if (!next.delete(name)) next.add(name);
    change(withNames(query, column.name, [...next]));
  };
  return (
    <div class="facet-names">
      {all && names.length > 20 && (
        <input
          type="search"
          aria-label={`Names of ${column.title}`}
          placeholder="Part of a name"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
      )}
      {listed.map(({ name, code }) => (
        <label class={counts[code] ? "" : "quiet"}>
          <input type="checkbox" checked={chosen.has(name)} onChange={() => toggle(name)} />
          <span class="clip">{name === "" ? <i>none</i> : <Line value={name} />}</span>
          <span class="facet-count">{count(counts[code] ?? 0)}</span>
        </label>
      ))}
      {all && fits.length > MOST && (
        <p class="quiet">{count(fits.length - MOST)} more; type a part of a name.</p>
      )}
      {names.length > FEW && (
        <button type="button" onClick={() => (setAll(!all), setWords(""))}>
          {all ? "Show fewer" : `Show all ${count(names.length)}`}
        </button>
      )}
    </div>
  );
}

function Range({ column, ...props }: Props & { column: Column & { kind: "number" } }) {
  const { run, filter, query, matches, change } = props;
  const [low, high] = useMemo(() => extent(column.values), [run, column]);
  const bins = useMemo(
    () => histogram(column.values, matchesWithout(props, column.name), low, high),
    [matches],
  );
  const most = Math.max(1, ...bins);
  const [from, to] = ownValue(filter.numbers, column.name) ?? [-Infinity, Infinity];
  const dates = column.name === DATE;
  const text = (value: number) =>
    !Number.isFinite(value) ? "" : dates ? dayOf(value) : String(value);
  const set = (lowText: string, highText: string) =>
    change(withRange(query, column.name, lowText, highText));
  const end = (words: string, value: number, extreme: number, write: (text: string) => void) => (
    <label>
      <span class="unseen">{plain(column.title)} </span>
      {words}
      <input
        type={dates ? "date" : "number"}
        step="any"
        placeholder={number(extreme)}
        value={text(value)}
        onChange={(event) => write(event.currentTarget.value)}
      />
    </label>
  );
  return (
    <div class="facet-range">
      <svg viewBox={`0 0 ${BINS} 20`} preserveAspectRatio="none" aria-hidden="true">
        {bins.map((bin, index) => {
          const begin = low + ((high - low) * index) / BINS;
          const end = low + ((high - low) * (index + 1)) / BINS;
          // Square roots, so that a few samples are still seen beside many.
          const size = bin ? Math.max(1, 20 * Math.sqrt(bin / most)) : 0;
          return (
            <rect
              class={end < from || begin > to ? "out" : "in"}
              x={index + 0.08}
              width={0.84}
              y={20 - size}
              height={size}
            />
          );
        })}
      </svg>
      {dates && (
        <p class="facet-extent">
          <span>{dayOf(low)}</span>
          <span>{dayOf(high)}</span>
        </p>
      )}
      <div class={dates ? "facet-ends dates" : "facet-ends"}>
        {end("from", from, low, (value) => set(value, text(to)))}
        {end("to", to, high, (value) => set(text(from), value))}
      </div>
    </div>
  );
}

function extent(values: Float64Array): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 0];
}

function histogram(values: Float64Array, places: Int32Array, low: number, high: number): number[] {
  const bins = new Array<number>(BINS).fill(0);
  const scale = high > low ? BINS / (high - low) : 0;
  for (const index of places) {
    const value = values[index] ?? NaN;
    if (Number.isNaN(value)) continue;
    const bin = Math.min(BINS - 1, Math.floor((value - low) * scale));
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  return bins;
}
