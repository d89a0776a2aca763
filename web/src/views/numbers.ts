/**
 * Numbers as text, in the way of the terminal and the static pages: points of 100 with a decimal,
 * other units by their interval.
 */
import type { Estimate } from "../data/api";
import { plain } from "../text/special";

export const NOTHING = "n/a";

type Interval = Pick<Estimate, "value" | "low" | "high">;

/** Thousands are told apart by commas, wherever the browser stands. */
function toDecimals(number: number, decimals: number): string {
  return number.toLocaleString("en-US", {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  });
}

export function count(n: number): string {
  return toDecimals(n, 0);
}

/** "1 sample", "2 samples". */
export function counted(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

export function hasInterval(
  estimate: Interval,
): estimate is { value: number; low: number; high: number } {
  return (
    Number.isFinite(estimate.value) &&
    Number.isFinite(estimate.low) &&
    Number.isFinite(estimate.high)
  );
}

function decimalsOf(estimate: Interval, bounded: boolean): number {
  if (bounded) return 1;
  const width = (estimate.high ?? NaN) - (estimate.low ?? NaN);
  if (Number.isFinite(width) && width > 0)
    return Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(width))));
  const magnitude = Math.abs(estimate.value ?? 0);
  return magnitude === 0 || !Number.isFinite(magnitude)
    ? 3
    : Math.min(9, Math.max(0, 3 - Math.floor(Math.log10(magnitude))));
}

/** A bare number of a unit, without a minus before zero. */
export function number(
  amount: number | null | undefined,
  bounded: boolean,
  decimals = bounded ? 1 : 3,
): string {
  if (amount === null || amount === undefined || Number.isNaN(amount)) return NOTHING;
  if (!Number.isFinite(amount)) return amount > 0 ? "inf" : "-inf";
  const scaled = bounded ? 100 * amount : amount;
  if (Math.abs(scaled) >= 1e7) return scaled.toExponential(3);
  return toDecimals(Number(scaled.toFixed(decimals)) === 0 ? 0 : scaled, decimals);
}

export function value(estimate: Interval | null, bounded: boolean): string {
  return estimate === null
    ? NOTHING
    : number(estimate.value, bounded, decimalsOf(estimate, bounded));
}

/** "[57.1, 67.6]", "" where there is none. */
export function interval(estimate: Interval | null, bounded: boolean): string {
  if (estimate === null || !hasInterval(estimate)) return "";
  const decimals = decimalsOf(estimate, bounded);
  const low = number(estimate.low, bounded, decimals);
  const high = number(estimate.high, bounded, decimals);
  return `[${low}, ${high}]`;
}

/** A difference with its sign: "+3.2". */
export function signed(estimate: Interval, bounded: boolean): string {
  const text = value(estimate, bounded);
  return text === NOTHING || text.startsWith("-") || Number(text.replaceAll(",", "")) === 0
    ? text
    : `+${text}`;
}

export function ranks(range: [number, number] | null): string {
  if (range === null) return NOTHING;
  return range[0] === range[1] ? String(range[0]) : `${range[0]}–${range[1]}`;
}

/** US dollars with digits for small sums: "$12.34", "$0.0021". */
export function money(dollars: number | null): string {
  if (dollars === null || !Number.isFinite(dollars)) return NOTHING;
  if (dollars === 0) return "$0";
  if (Math.abs(dollars) >= 0.0995) return `$${toDecimals(dollars, 2)}`;
  return Math.abs(dollars) >= 1e-4 ? `$${Number(dollars.toPrecision(2))}` : "under $0.0001";
}

/** A short number of tokens or characters: "812", "12.3k", "4.56M". */
export function shortNumber(n: number): string {
  for (const [size, mark] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const) {
    if (n >= size * 0.9995) {
      const scaled = n / size;
      return `${scaled.toFixed(scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2)}${mark}`;
    }
  }
  return Number.isInteger(n) ? String(n) : String(Number(n.toPrecision(3)));
}

/** A round number on an axis: "0.2", "300", "1k". */
export function tickText(n: number): string {
  return n >= 1000
    ? shortNumber(n).replace(/\.?0+(?=[a-zA-Z])/, "")
    : String(Number(n.toPrecision(3)));
}

/** "0.42 s", "12 s", "3 min 5 s", "2 h 10 min". */
export function duration(seconds: number | null): string {
  if (seconds === null || !Number.isFinite(seconds)) return NOTHING;
  if (seconds < 10) return `${Number(seconds.toPrecision(2))} s`;
  const wholeSeconds = Math.round(seconds);
  if (wholeSeconds < 60) return `${wholeSeconds} s`;
  const minutes = Math.floor(wholeSeconds / 60);
  if (minutes < 60) return `${minutes} min${wholeSeconds % 60 ? ` ${wholeSeconds % 60} s` : ""}`;
  return `${count(Math.floor(minutes / 60))} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
}

/** A probability: "< 0.001", "0.013", "0.40"; more digits where two would round it onto 5%. */
export function pValue(p: number | null): string {
  if (p === null || Number.isNaN(p)) return NOTHING;
  if (p < 0.001) return "< 0.001";
  if (p > 0.0495 && p < 0.0505) return String(Number(p.toPrecision(4)));
  return p < 0.0995 ? String(Number(p.toPrecision(2))) : p.toFixed(2);
}

/** What a number rests on: "240", "240, 3 unscored". */
export function basisText(estimate: Estimate): string {
  return `${count(estimate.n)}${estimate.missing ? `, ${count(estimate.missing)} missing` : ""}`;
}

/** "2026-11-23 02:46 UTC" of an ISO 8601 time, as it is where it is none. */
export function moment(text: string): string {
  const time = new Date(text);
  return Number.isNaN(time.getTime())
    ? text
    : `${time.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/**
 * A name for places that take no markup (options, the words of a picture): in one line, without
 * what is not seen, not long.
 */
export function plainName(text: string, most = 60): string {
  const letters = Array.from(plain(text).replace(/\s+/g, " ").trim());
  return (
    (letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : letters.join("")) ||
    "(no name)"
  );
}
