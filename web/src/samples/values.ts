/** Numbers as they are shown, and words for what is not there. */
import type { Column } from "../data/api";

/** A number with as many places as its size needs. */
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (Number.isInteger(value) && size < 1e15) return value.toLocaleString("en");
  if (size >= 1000) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  if (size >= 100) return value.toFixed(1);
  if (size >= 0.01)
    return value
      .toFixed(size >= 10 ? 1 : size >= 1 ? 2 : 3)
      .replace(/(\.\d*?)0+$/, "$1")
      .replace(/\.$/, "");
  return value.toPrecision(2).replace(/e([+-])0?(\d)/, "e$1$2");
}

/** The day (UTC) of milliseconds since 1970; one that no date is, as a number. */
export function dayOf(value: number): string {
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? number(value) : date.toISOString().slice(0, 10);
}

export const count = (value: number): string => value.toLocaleString("en");

/** How many of what: "1 sample", "3 samples". */
export const counted = (value: number, noun: string, many = `${noun}s`): string =>
  `${count(value)} ${value === 1 ? noun : many}`;

export const dollars = (value: number): string =>
  value === 0
    ? "$0"
    : value < 0.01
      ? `$${value.toPrecision(2)}`
      : `$${value.toFixed(value < 1 ? 3 : 2)}`;

export const seconds = (value: number): string =>
  value < 1
    ? `${Math.round(value * 1000)} ms`
    : value < 120
      ? `${number(value)} s`
      : `${(value / 60).toFixed(1)} min`;

export const categoryOf = (column: Column | undefined, index: number): string | null =>
  column?.kind === "category" ? (column.names[column.codes[index] ?? -1] ?? null) : null;

export const numberOf = (column: Column | undefined, index: number): number | null => {
  const value = column?.kind === "number" ? column.values[index] : undefined;
  return value === undefined || Number.isNaN(value) ? null : value;
};
