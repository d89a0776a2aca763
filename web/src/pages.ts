/**
 * What a page is, where it lives, and how one links to it. Addresses name runs, tasks, ids and
 * repeats, never places, so that a link still holds after a reload, in a longer run and in another
 * file made of the same runs.
 */
import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import type { Catalog, Data, RunData, RunInfo } from "./data/api";

export interface PageProps {
  data: Data;
  /**
   * The parts of the path that the pattern names in capitals, decoded: {RUN:
   * "quickstart-demo-small"}.
   */
  parameters: Record<string, string>;
  query: URLSearchParams;
  /**
   * Opens an address such as `links.run(...)`; `replace` leaves no step in the browser's history (a
   * filter while it is typed).
   */
  go(hash: string, replace?: boolean): void;
}

export interface Page {
  /**
   * Such as "run/RUN/sample/TASK/ID/DRAW": words in capitals stand for anything. "" is the first
   * page.
   */
  pattern: string;
  /** What the tab of the browser says. */
  title(parameters: Record<string, string>, data: Data): string;
  component: ComponentType<PageProps>;
}

export interface Address {
  page: Page;
  parameters: Record<string, string>;
  query: URLSearchParams;
}

/**
 * One part of a path, whatever it holds: half of a surrogate pair becomes %uD800, which no other
 * text becomes.
 */
function encode(segment: string): string {
  return segment
    .split(/(\p{Surrogate})/u)
    .map((piece, index) =>
      index % 2 ? `%u${piece.charCodeAt(0).toString(16).toUpperCase()}` : encodeURIComponent(piece),
    )
    .join("");
}

function decode(segment: string): string {
  try {
    return segment
      .split(/(%u[0-9A-F]{4})/)
      .map((piece, index) =>
        index % 2 ? String.fromCharCode(parseInt(piece.slice(2), 16)) : decodeURIComponent(piece),
      )
      .join("");
  } catch {
    return segment;
  }
}

function address(segments: string[], query?: Record<string, string> | URLSearchParams): string {
  const search = new URLSearchParams(query).toString();
  return `#/${segments.map(encode).join("/")}${search ? `?${search}` : ""}`;
}

/** Addresses of all pages. `run` is what `runAddress` gives. */
export const links = {
  first: () => "#/",
  /** `runs` are what `runAddress` gives; a query may have "sort" too. */
  board: (runs: string[], query: Record<string, string> = {}) =>
    address(["board"], new URLSearchParams([...runs.map((run) => ["run", run]), ...Object.entries(query)])),
  run: (run: string) => address(["run", run]),
  samples: (run: string, query?: Record<string, string> | URLSearchParams) =>
    address(["run", run, "samples"], query),
  sample: (
    run: string,
    task: string,
    id: string,
    draw: number,
    query?: Record<string, string> | URLSearchParams,
  ) => address(["run", run, "sample", task, id, String(draw)], query),
  /** The steps of two trajectories of one item, each of a run and a repeat. */
  steps: (
    [a, drawA]: [run: string, draw: number],
    [b, drawB]: [run: string, draw: number],
    task: string,
    id: string,
    query?: Record<string, string> | URLSearchParams,
  ) => address(["steps", a, String(drawA), b, String(drawB), task, id], query),
  /** What goes on in a run; `number` is the trajectory's. */
  live: (run: string, number?: number) =>
    address(["run", run, "live"], number === undefined ? {} : { show: String(number) }),
  compare: (a: string, b: string, query?: Record<string, string> | URLSearchParams) =>
    address(["compare", a, b], query),
  /** The answers of several runs; what the query names besides them stays. */
  answers: (runs: string[], query: URLSearchParams = new URLSearchParams()) =>
    address(["answers"], new URLSearchParams([...runs.map((run) => ["run", run]), ...query])),
  plots: (query?: Record<string, string> | URLSearchParams) => address(["plots"], query),
  labels: () => "#/labels",
  /** A search through the samples of all runs. */
  search: (words: string) => address(["search"], words.trim() ? { q: words } : {}),
};

/**
 * How an address names a run: by its folder's name, with ~2 after it where two folders are called
 * the same.
 */
export function runAddress(catalog: Catalog, run: RunInfo): string {
  const same = catalog.runs.filter((namesake) => namesake.name === run.name);
  const number = same.findIndex((namesake) => namesake.key === run.key);
  return number > 0 ? `${run.name}~${number + 1}` : run.name;
}

/** The run that an address names, undefined where this page holds none. */
export function findRun(catalog: Catalog, name: string): RunInfo | undefined {
  return catalog.runs.find((run) => runAddress(catalog, run) === name);
}

/** The page of a location's hash, and what its address says; null where there is none. */
export function route(pages: Page[], hash: string): Address | null {
  const text = hash.replace(/^#\/?/, "");
  const cut = text.indexOf("?");
  const path = cut < 0 ? text : text.slice(0, cut);
  const query = new URLSearchParams(cut < 0 ? "" : text.slice(cut + 1));
  const segments = path.split("/");
  for (const page of pages) {
    const names = page.pattern.split("/");
    if (names.length !== segments.length) continue;
    const parameters: Record<string, string> = Object.create(null);
    const fits = names.every((name, index) => {
      const segment = segments[index] ?? "";
      if (!/^[A-Z]+$/.test(name)) return name === segment;
      parameters[name] = decode(segment);
      return true;
    });
    if (fits) return { page, parameters, query };
  }
  return null;
}

/**
 * What is to be shown while something is read: the value, or why there is none. The last value
 * stays while a newer one is read.
 */
export type Read<T> = { value: T | null; error: string | null };

/** Reads something that may take a while, again whenever one of `again` changes. */
export function useRead<T>(read: () => Promise<T>, again: unknown[]): Read<T> {
  const [state, set] = useState<Read<T>>({ value: null, error: null });
  // Before painting, so that what is at hand already shows without a moment of "Reading".
  useLayoutEffect(() => {
    let current = true;
    read().then(
      (value) => current && set({ value, error: null }),
      (error: unknown) =>
        current &&
        set({ value: null, error: error instanceof Error ? error.message : String(error) }),
    );
    return () => {
      current = false;
    };
  }, again);
  return state;
}

/** The samples of a run, read again when the run grew. */
export function useRun(data: Data, key: string): Read<RunData> {
  const [version, set] = useState(0);
  useEffect(
    () => data.onChange((runs) => runs.includes(key) && set((old) => old + 1)),
    [data, key],
  );
  return useRead(() => data.run(key), [data, key, version]);
}
