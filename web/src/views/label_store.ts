/**
 * Answers that one wants to label, and their labels: kept in this browser, or in this page alone
 * where a browser keeps nothing.
 */
import { useEffect, useState } from "preact/hooks";
import type { LabelSet, RunInfo } from "../data/api";

export interface Picked {
  /** What `runIdentity` says: it holds in other files of the same run too. */
  run: string;
  task: string;
  id: string;
  draw: number;
}

interface StoredLabels {
  name: string;
  picked: Picked[];
  /** By labeller and answer. "" is said too: looked at, without a label. */
  labels: Record<string, string>;
}

/** A run by what stays the same wherever its page is. */
export const runIdentity = (run: RunInfo) => `${run.name}\n${run.started}`;

const PLACE = "evalwright.explorer.labels";
const listeners = new Set<() => void>();
let stored: StoredLabels = read();

function read(): StoredLabels {
  const empty: StoredLabels = { name: "", picked: [], labels: Object.create(null) };
  try {
    const parsed = JSON.parse(localStorage.getItem(PLACE) ?? "{}") as Partial<StoredLabels>;
    const picked = Array.isArray(parsed.picked)
      ? parsed.picked.filter(
          (answer) =>
            [answer?.run, answer?.task, answer?.id].every((text) => typeof text === "string") &&
            Number.isInteger(answer.draw),
        )
      : [];
    const labels = Object.entries(parsed.labels ?? {}).filter(
      ([, value]) => typeof value === "string",
    );
    return {
      name: typeof parsed.name === "string" ? parsed.name : "",
      picked,
      labels: Object.assign(empty.labels, Object.fromEntries(labels)),
    };
  } catch {
    return empty;
  }
}

function store(next: StoredLabels): void {
  stored = next;
  try {
    localStorage.setItem(PLACE, JSON.stringify(stored));
  } catch {
    // A browser that keeps nothing still labels.
  }
  for (const listener of listeners) listener();
}

// Another tab may have labelled meanwhile.
globalThis.addEventListener?.("storage", (event) => {
  if (event.key !== PLACE) return;
  stored = read();
  for (const listener of listeners) listener();
});

/** Draws the component again when a label or a choice changes. */
export function useLabels(): void {
  const [, again] = useState(0);
  useEffect(() => {
    const listener = () => again((n) => n + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
}

const isSame = (a: Picked, b: Picked) =>
  a.run === b.run && a.task === b.task && a.id === b.id && a.draw === b.draw;

/**
 * The labeller's name, with single spaces: the first of their labels counts, whatever was typed
 * around it.
 */
export const labeller = () => stored.name.trim().replace(/\s+/g, " ");
export const typedName = () => stored.name;
export const rename = (name: string) => store({ ...stored, name });
export const picked = () => stored.picked;
export const isPicked = (item: Picked) => stored.picked.some((picked) => isSame(picked, item));
export const pick = (item: Picked) => {
  if (!isPicked(item)) store({ ...stored, picked: [...stored.picked, item] });
};
export const unpick = (item: Picked) =>
  store({ ...stored, picked: stored.picked.filter((picked) => !isSame(picked, item)) });

const key = ({ run, task, id, draw }: Picked) => JSON.stringify([labeller(), run, task, id, draw]);
/** undefined: not looked at yet. */
export const labelOf = (item: Picked): string | undefined => stored.labels[key(item)];
export const setLabel = (item: Picked, value: string) =>
  store({
    ...stored,
    labels: Object.assign(Object.create(null), stored.labels, { [key(item)]: value }),
  });

/** What a row of a labelling set is called. */
export function rowName(set: LabelSet, index: number): string {
  return `${set.name}-${String(index + 1).padStart(String(set.rows.length).length, "0")}`;
}

/**
 * A cell that no spreadsheet runs: an apostrophe stands before what it would take for a formula.
 */
function cell(value: string): string {
  const safe = /^\s*[=+\-@]/.test(value) ? `'${value}` : value;
  return /[",\r\n\t;]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The table that `evalwright check judge calibrate` reads. */
export function table(rows: { row: string; item: Picked }[]): string {
  const who = labeller();
  const lines = rows.map(({ row, item }) =>
    [row, item.task, item.id, String(item.draw), labelOf(item) ?? "", who].map(cell).join(","),
  );
  return ["row,task,id,draw,label,labeller", ...lines, ""].join("\r\n");
}
