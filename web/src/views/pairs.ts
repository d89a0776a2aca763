/** The items of two runs side by side, and which of them one chooses to see. */
import type { Column, Comparison, Estimate, RunData } from "../data/api";

export type Pairs = Comparison["pairs"];

/**
 * Whether the item is to be brought into view as soon as it is there: on going to another one, not
 * on opening a comparison.
 */
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
export function scoreChange(a: number, b: number): string {
  if (Number.isNaN(a) || Number.isNaN(b))
    return Number.isNaN(a) && Number.isNaN(b)
      ? "no score"
      : Number.isNaN(a)
        ? "A has no score"
        : "B has no score";
  if (a !== b) return a < b ? "A lost" : "B lost";
  return a === 1 ? "both right" : a === 0 ? "both wrong" : "the same score";
}

/**
 * Places in `pairs` of some kind (and task, where one is given), flips first: those that differ
 * most, then in the order of the run.
 */
export function selectPairs(
  pairs: Pairs,
  kind: Kind,
  taskOf: (place: number) => string,
  task: string,
): Int32Array {
  const apart = new Map<number, number[]>();
  for (let index = 0; index < pairs.a.length; index++) {
    const [a, b] = [pairs.scoreA[index]!, pairs.scoreB[index]!];
    if (!isOf(kind, a, b) || (task && taskOf(pairs.a[index]!) !== task)) continue;
    const distance = Math.abs(a - b) || 0;
    const alike = apart.get(distance);
    if (alike) alike.push(index);
    else apart.set(distance, [index]);
  }
  return Int32Array.from(
    [...apart.keys()].sort((a, b) => b - a).flatMap((distance) => apart.get(distance)!),
  );
}

export function counts(
  pairs: Pairs,
  taskOf: (place: number) => string,
  task: string,
): Map<Kind, number> {
  const countByKind = new Map<Kind, number>(KINDS.map(([kind]) => [kind, 0]));
  for (let index = 0; index < pairs.a.length; index++) {
    if (task && taskOf(pairs.a[index]!) !== task) continue;
    for (const [kind] of KINDS)
      if (isOf(kind, pairs.scoreA[index]!, pairs.scoreB[index]!))
        countByKind.set(kind, countByKind.get(kind)! + 1);
  }
  return countByKind;
}

/** Of each task, how many items A and B scored higher. */
export function countWins(
  pairs: Pairs,
  taskOf: (place: number) => string,
): Map<string, [a: number, b: number]> {
  const winsByTask = new Map<string, [number, number]>();
  for (let index = 0; index < pairs.a.length; index++) {
    const task = taskOf(pairs.a[index]!);
    let taskWins = winsByTask.get(task);
    if (!taskWins) winsByTask.set(task, (taskWins = [0, 0]));
    const [a, b] = [pairs.scoreA[index]!, pairs.scoreB[index]!];
    if (a > b) taskWins[0] += 1;
    if (b > a) taskWins[1] += 1;
  }
  return winsByTask;
}

export function taskNames(run: RunData): (place: number) => string {
  const column = run.columns.find(
    (column): column is Extract<Column, { kind: "category" }> =>
      column.name === "task" && column.kind === "category",
  );
  return (index) => (column ? (column.names[column.codes[index]!] ?? "") : "");
}

/**
 * Pairs by task and id, where the data hold no comparison: the mean score of an item's repeats
 * against the other's.
 */
export function pairUp(a: RunData, b: RunData): Pairs {
  const itemsOfA = meanScores(a);
  const itemsOfB = meanScores(b);
  const shared = [...itemsOfA].filter(([key]) => itemsOfB.has(key));
  return {
    a: Int32Array.from(shared, ([, item]) => item.place),
    b: Int32Array.from(shared, ([key]) => itemsOfB.get(key)!.place),
    scoreA: Float64Array.from(shared, ([, item]) => item.sum / item.n),
    scoreB: Float64Array.from(shared, ([key]) => itemsOfB.get(key)!.sum / itemsOfB.get(key)!.n),
  };
}

function meanScores(run: RunData): Map<string, { place: number; sum: number; n: number }> {
  const task = taskNames(run);
  const scores = run.columns.find((column) => column.name === "score" && column.kind === "number");
  const itemsByKey = new Map<string, { place: number; sum: number; n: number }>();
  for (let sampleIndex = 0; sampleIndex < run.size; sampleIndex++) {
    const key = `${task(sampleIndex)}\0${run.id(sampleIndex)}`;
    const score = scores?.kind === "number" ? scores.values[sampleIndex]! : NaN;
    const item = itemsByKey.get(key) ?? { place: sampleIndex, sum: 0, n: 0 };
    if (run.draw(sampleIndex) < run.draw(item.place)) item.place = sampleIndex;
    if (!Number.isNaN(score)) {
      item.sum += score;
      item.n += 1;
    }
    itemsByKey.set(key, item);
  }
  return itemsByKey;
}

/** The same comparison seen from the other side. The sentences name the runs, so they stay. */
export function flipComparison(comparison: Comparison): Comparison {
  const flipEstimate = (estimate: Estimate): Estimate => ({
    ...estimate,
    value: estimate.value === null ? null : -estimate.value,
    ...(estimate.low !== undefined && estimate.high !== undefined
      ? { low: -estimate.high, high: -estimate.low }
      : {}),
  });
  return {
    ...comparison,
    a: comparison.b,
    b: comparison.a,
    tasks: comparison.tasks.map((task) => ({
      ...task,
      a: task.b,
      b: task.a,
      difference: flipEstimate(task.difference),
      onlyA: task.onlyB,
      onlyB: task.onlyA,
    })),
    overall: comparison.overall && {
      ...comparison.overall,
      difference: flipEstimate(comparison.overall.difference),
    },
    pairs: {
      a: comparison.pairs.b,
      b: comparison.pairs.a,
      scoreA: comparison.pairs.scoreB,
      scoreB: comparison.pairs.scoreA,
    },
  };
}
