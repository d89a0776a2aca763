/**
 * Opens what the page is about: parts in the page itself, files beside it, or a server that follows
 * runs.
 */
import type {
  Board,
  Catalog,
  Comparison,
  Data,
  OpenTrajectory,
  OpenTurns,
  Plots,
  RunData,
} from "./api";
import { fromBase64, inflate, json, withArrays } from "./parts";
import { RunTable } from "./run";
import { messagesOf } from "./sample";
import { workers } from "./workers";
import { Embedded, Fetched, MissingPart, type Source } from "./source";

/** Milliseconds between two looks at runs that may grow. */
const EVERY = 500;
/** Looks in a row without an answer after which the server counts as gone. */
const GONE = 3;

const DIGEST = /^[0-9a-f]{64}$/;
const PNG_FIRST_BYTE = 0x89;

interface State {
  version: number;
  /** By run: changes whenever its index does. */
  runs: Record<string, string>;
  /** By run of which trajectories are going on: changes whenever they do. */
  live?: Record<string, string>;
}

type RecordedTurns = Omit<OpenTurns, "messages"> & { tail: unknown };

export async function openData(): Promise<Data> {
  const app = document.getElementById("app")!;
  const sourceKind = app.dataset.source;
  const root = app.dataset.root ?? "";
  const source: Source =
    sourceKind === "embedded"
      ? new Embedded(fromBase64)
      : new Fetched(root, sourceKind === "fetched" ? ".bin" : "");
  const readPart = async <T>(key: string): Promise<T> =>
    json<T>(await inflate(await source.part(key)));
  const runs = new Map<string, Promise<RunTable>>();
  const before = new Map<string, RunTable>();
  const listeners = new Set<(runs: string[]) => void>();
  const liveListeners = new Set<(run: string) => void>();
  let liveStamps: Record<string, string> = {};

  const state = sourceKind === "live" ? await readPart<State>("state") : null;
  const data: Data = {
    catalog: await readPart<Catalog>("catalog"),
    served: sourceKind === "live",
    run(key: string): Promise<RunData> {
      const had = runs.get(key);
      if (had) return had;
      const info = data.catalog.runs.find((run) => run.key === key);
      if (!info) return Promise.reject(new MissingPart(`There is no run ${key} here.`));
      const table = RunTable.read(source, info, before.get(key));
      runs.set(key, table);
      table.then(
        (table) => {
          before.set(key, table);
          setTimeout(workers, 300); // a first search need not wait for them to start
          if (sourceKind !== "fetched") void table.readAhead();
        },
        () => runs.delete(key),
      );
      return table;
    },
    async board(keys: string[]): Promise<Board | null> {
      if (!data.catalog.chosenFromFolder)
        return keys.length === data.catalog.runs.length ? data.catalog.board : null;
      return readPart<Board | null>(`board/${keys.join("/")}`);
    },
    async comparison(a: string, b: string): Promise<Comparison | null> {
      for (const [first, second] of sourceKind === "live"
        ? [[a, b]]
        : [
            [a, b],
            [b, a],
          ]) {
        try {
          return comparisonOf(await inflate(await source.part(`compare/${first}/${second}`)));
        } catch (error) {
          if (!(error instanceof MissingPart)) throw error;
        }
      }
      return null;
    },
    async plots(run: string): Promise<Plots | null> {
      try {
        return await readPart<Plots>(`plots/${run}`);
      } catch (error) {
        if (error instanceof MissingPart) return null;
        throw error;
      }
    },
    async picture(run: string, digest: string): Promise<Blob | null> {
      if (!DIGEST.test(digest)) return null;
      try {
        const bytes = await source.part(`image/${run}/${digest}`);
        if (!bytes.length) return null;
        return new Blob([bytes as BlobPart], {
          type: bytes[0] === PNG_FIRST_BYTE ? "image/png" : "image/jpeg",
        });
      } catch (error) {
        if (error instanceof MissingPart) return null;
        throw error;
      }
    },
    async live(run: string) {
      try {
        return await readPart<{ open: OpenTrajectory[]; more: number }>(`live/${run}`);
      } catch (error) {
        if (error instanceof MissingPart) return { open: [], more: 0 };
        throw error;
      }
    },
    async liveTurns(run: string, number: number): Promise<OpenTurns | null> {
      try {
        const { tail, ...turns } = await readPart<RecordedTurns>(`live/${run}/${number}`);
        return { ...turns, messages: messagesOf(tail) };
      } catch (error) {
        if (error instanceof MissingPart) return null;
        throw error;
      }
    },
    onLive(listener: (run: string) => void): () => void {
      liveListeners.add(listener);
      return () => liveListeners.delete(listener);
    },
    liveRuns: () => Object.keys(liveStamps),
    onChange(listener: (runs: string[]) => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };

  // For who looks at the data in the browser's console.
  Object.assign(globalThis, { explorerData: data });
  if (state) {
    let seen: State = state;
    liveStamps = state.live ?? {};
    const tell = (changed: string[]): void => listeners.forEach((listener) => listener(changed));
    let silent = 0;
    const look = async (): Promise<void> => {
      try {
        const now = await readPart<State>("state");
        if (now.version !== seen.version || silent >= GONE) {
          const changed = Object.keys(now.runs).filter((key) => now.runs[key] !== seen.runs[key]);
          data.catalog = await readPart<Catalog>("catalog");
          for (const key of changed) runs.delete(key);
          seen = now;
          tell(changed);
        }
        silent = 0;
        const before = liveStamps;
        liveStamps = now.live ?? {};
        for (const key of new Set([...Object.keys(before), ...Object.keys(liveStamps)]))
          if (before[key] !== liveStamps[key]) for (const listener of liveListeners) listener(key);
      } catch {
        if (++silent === GONE) {
          data.catalog = { ...data.catalog, live: false };
          tell([]);
        }
      }
      setTimeout(() => void look(), silent >= GONE ? 3 * EVERY : EVERY);
    };
    setTimeout(() => void look(), EVERY);
  }
  return data;
}

function comparisonOf(bytes: Uint8Array): Comparison {
  const { head, arrays } = withArrays<Omit<Comparison, "pairs">>(bytes);
  if (head.refused)
    return {
      ...head,
      tasks: [],
      overall: null,
      conclusion: "",
      notes: [],
      pairs: {
        a: new Int32Array(),
        b: new Int32Array(),
        scoreA: new Float64Array(),
        scoreB: new Float64Array(),
      },
    };
  const [a, b, scoreA, scoreB] = arrays as [Int32Array, Int32Array, Float64Array, Float64Array];
  for (const places of [a, b]) for (let i = 1; i < places.length; i++) places[i]! += places[i - 1]!;
  return { ...head, pairs: { a, b, scoreA, scoreB } };
}
