/** The items of two runs side by side, and which of them one chooses to see. */
import type { Column, Comparison, Estimate, RunData } from "../data/api";

export type Pairs = Comparison["pairs"];

/** Whether the item is to be brought into view as soon as it is there: on going to another one, not on opening a comparison. */
export const toItem = { wanted: false };

/** a-lost: B scored higher. Right is what scores at least half. */
export type Kind = "flips" | "a-lost" | "b-lost" | "both-wrong" | "both-right" | "unscored" | "all";

export const KINDS: [Kind, string][] = [
  ["flips", "Scored differently"],
  ["a-lost", "A lost"],
  ["b-lost", "B lost"],
  ["both-wrong", "Both wrong"],
  ["both-right", "Both right"],
  ["unscored", "Without a score"],
  ["all", "All"],
];

export function isOf(kind: Kind, a: number, b: number): boolean {
  const scored = !Number.isNaN(a) && !Number.isNaN(b);
  if (kind === "all") return true;
  if (kind === "unscored") return !scored;
  if (!scored) return false;
  if (kind === "flips") return a !== b;
  if (kind === "a-lost") return a < b;
  if (kind === "b-lost") return a > b;
  if (Math.min(a, b) < 0 || Math.max(a, b) > 1) return false; // no share: nothing is right or wrong
  return kind === "both-wrong" ? a < 0.5 && b < 0.5 : a >= 0.5 && b >= 0.5;
}

/** What became of one item, in words. */
export function said(a: number, b: number): string {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) && Number.isNaN(b) ? "no score" : Number.isNaN(a) ? "A has no score" : "B has no score";
  if (a !== b) return a < b ? "A lost" : "B lost";
  return a === 1 ? "both right" : a === 0 ? "both wrong" : "the same score";
}

/** Places in `pairs` of some kind (and task, where one is given), flips first: those that differ most, then in the order of the run. */
export function chosen(pairs: Pairs, kind: Kind, taskOf: (place: number) => string, task: string): Int32Array {
  const apart = new Map<number, number[]>();
  for (let place = 0; place < pairs.a.length; place++) {
    const [a, b] = [pairs.scoreA[place]!, pairs.scoreB[place]!];
    if (!isOf(kind, a, b) || (task && taskOf(pairs.a[place]!) !== task)) continue;
    const distance = Math.abs(a - b) || 0;
    const alike = apart.get(distance);
    if (alike) alike.push(place);
    else apart.set(distance, [place]);
  }
  return Int32Array.from([...apart.keys()].sort((one, other) => other - one).flatMap((distance) => apart.get(distance)!));
}

export function counts(pairs: Pairs, taskOf: (place: number) => string, task: string): Map<Kind, number> {
  const out = new Map<Kind, number>(KINDS.map(([kind]) => [kind, 0]));
  for (let place = 0; place < pairs.a.length; place++) {
    if (task && taskOf(pairs.a[place]!) !== task) continue;
    for (const [kind] of KINDS) if (isOf(kind, pairs.scoreA[place]!, pairs.scoreB[place]!)) out.set(kind, out.get(kind)! + 1);
  }
  return out;
}

/** Of each task, how many items A and B scored higher. */
export function wins(pairs: Pairs, taskOf: (place: number) => string): Map<string, [a: number, b: number]> {
  const out = new Map<string, [number, number]>();
  for (let place = 0; place < pairs.a.length; place++) {
    const task = taskOf(pairs.a[place]!);
    let own = out.get(task);
    if (!own) out.set(task, (own = [0, 0]));
    const [a, b] = [pairs.scoreA[place]!, pairs.scoreB[place]!];
    if (a > b) own[0] += 1;
    if (b > a) own[1] += 1;
  }
  return out;
}

export function taskNames(run: RunData): (place: number) => string {
  const column = run.columns.find((one): one is Extract<Column, { kind: "category" }> => one.name === "task" && one.kind === "category");
  return (place) => (column ? (column.names[column.codes[place]!] ?? "") : "");
}

/** Pairs by task and id, where the data hold no comparison: the mean score of an item's repeats against the other's. */
export function pairUp(a: RunData, b: RunData): Pairs {
  const one = items(a);
  const other = items(b);
  const found = [...one].filter(([key]) => other.has(key));
  return {
    a: Int32Array.from(found, ([, item]) => item.place),
    b: Int32Array.from(found, ([key]) => other.get(key)!.place),
    scoreA: Float64Array.from(found, ([, item]) => item.sum / item.n),
    scoreB: Float64Array.from(found, ([key]) => other.get(key)!.sum / other.get(key)!.n),
  };
}

function items(run: RunData): Map<string, { place: number; sum: number; n: number }> {
  const task = taskNames(run);
  const scores = run.columns.find((one) => one.name === "score" && one.kind === "number");
  const out = new Map<string, { place: number; sum: number; n: number }>();
  for (let place = 0; place < run.size; place++) {
    const key = `${task(place)}\0${run.id(place)}`;
    const score = scores?.kind === "number" ? scores.values[place]! : NaN;
    const item = out.get(key) ?? { place, sum: 0, n: 0 };
    if (run.draw(place) < run.draw(item.place)) item.place = place;
    if (!Number.isNaN(score)) {
      item.sum += score;
      item.n += 1;
    }
    out.set(key, item);
  }
  return out;
}

/** The same comparison seen from the other side. The sentences name the runs, so they stay. */
export function flipped(found: Comparison): Comparison {
  const turned = (one: Estimate): Estimate => ({
    ...one,
    value: one.value === null ? null : -one.value,
    ...(one.low !== undefined && one.high !== undefined ? { low: -one.high, high: -one.low } : {}),
  });
  return {
    ...found,
    a: found.b,
    b: found.a,
    tasks: found.tasks.map((task) => ({
      ...task, a: task.b, b: task.a, difference: turned(task.difference), onlyA: task.onlyB, onlyB: task.onlyA,
    })),
    overall: found.overall && { ...found.overall, difference: turned(found.overall.difference) },
    pairs: { a: found.pairs.b, b: found.pairs.a, scoreA: found.pairs.scoreB, scoreB: found.pairs.scoreA },
  };
}
