/**
 * What the table shows, as its address says it: in.COLUMN=NAME (again for more names),
 * range.COLUMN=LOW..HIGH, q, sort.
 */
import { type Filter, ownValue, type RunData } from "../data/api";

export interface Order {
  column: string;
  descending: boolean;
}

/** The column of dates: milliseconds in the data, days (UTC) in the address and on the page. */
export const DATE = "date";
const DAY = 86_400_000;

function boundOf(column: string, text: string, open: number): number {
  const value =
    column === DATE && /^\d{4}-\d\d-\d\d$/.test(text)
      ? Date.parse(text) + (open > 0 ? DAY - 1 : 0)
      : Number(text);
  return text === "" || Number.isNaN(value) ? open : value;
}

export function filterOf(query: URLSearchParams): Filter {
  const filter: Filter = { categories: Object.create(null), numbers: Object.create(null) };
  for (const [name, value] of query) {
    if (name.startsWith("in.")) (filter.categories[name.slice(3)] ??= []).push(value);
    if (name.startsWith("range.")) {
      const [column, [low = "", high = ""]] = [name.slice(6), value.split("..")];
      filter.numbers[column] = [boundOf(column, low, -Infinity), boundOf(column, high, Infinity)];
    }
  }
  return filter;
}

/** Conditions on columns that this run has; an address made for another run may name others. */
export function keepKnown(filter: Filter, run: RunData): { filter: Filter; unknown: string[] } {
  const kinds = new Map(run.columns.map((column) => [column.name, column.kind]));
  const fits =
    (kind: string) =>
    ([name]: [string, unknown]) =>
      kinds.get(name) === kind;
  const all = [...Object.keys(filter.categories), ...Object.keys(filter.numbers)];
  const categories = Object.fromEntries(Object.entries(filter.categories).filter(fits("category")));
  const numbers = Object.fromEntries(Object.entries(filter.numbers).filter(fits("number")));
  return {
    filter: { categories, numbers },
    unknown: all.filter(
      (name) => ownValue(categories, name) === undefined && ownValue(numbers, name) === undefined,
    ),
  };
}

export function orderOf(query: URLSearchParams): Order | null {
  const text = query.get("sort");
  if (!text) return null;
  return text.startsWith("-")
    ? { column: text.slice(1), descending: true }
    : { column: text, descending: false };
}

const edit = (query: URLSearchParams, change: (next: URLSearchParams) => void): URLSearchParams => {
  const next = new URLSearchParams(query);
  change(next);
  return next;
};

export const withOrder = (query: URLSearchParams, order: Order | null): URLSearchParams =>
  edit(query, (next) =>
    order ? next.set("sort", (order.descending ? "-" : "") + order.column) : next.delete("sort"),
  );

export const withSearch = (query: URLSearchParams, text: string): URLSearchParams =>
  edit(query, (next) => (text.trim() ? next.set("q", text) : next.delete("q")));

/** The names of one column that are asked for; none: all. */
export const withNames = (
  query: URLSearchParams,
  column: string,
  names: string[],
): URLSearchParams =>
  edit(query, (next) => {
    next.delete(`in.${column}`);
    for (const name of names) next.append(`in.${column}`, name);
  });

export const withRange = (
  query: URLSearchParams,
  column: string,
  low: string,
  high: string,
): URLSearchParams =>
  edit(query, (next) =>
    low || high ? next.set(`range.${column}`, `${low}..${high}`) : next.delete(`range.${column}`),
  );

/** The columns that the list is to show; null where the address does not say. */
export const columnNames = (query: URLSearchParams): string[] | null =>
  query.has("column") ? query.getAll("column") : null;

export const withColumns = (query: URLSearchParams, names: string[] | null): URLSearchParams =>
  edit(query, (next) => {
    next.delete("column");
    // the question is always shown: its name alone stands for "nothing else"
    for (const name of names === null ? [] : names.length ? names : ["question"])
      next.append("column", name);
  });

/** How many columns are filtered. */
export const conditions = (query: URLSearchParams): number =>
  new Set([...query.keys()].filter((name) => name.startsWith("in.") || name.startsWith("range.")))
    .size;

/** The order and the columns are kept. */
export const withoutConditions = (query: URLSearchParams): URLSearchParams =>
  edit(query, (next) =>
    [...new Set(next.keys())]
      .filter((name) => name !== "sort" && name !== "column")
      .forEach((name) => next.delete(name)),
  );
