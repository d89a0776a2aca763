/** Which scores are shares, from 0 (wrong) to 1 (right); of others no value is right or wrong. */
import type { RunData } from "../data/api";

const sharesByRun = new WeakMap<RunData, Map<string, boolean>>();

/** Whether all scores that the scorer gave in this run lie between 0 and 1. */
export function areShares(run: RunData, scorer: string): boolean {
  const known = sharesByRun.get(run) ?? new Map<string, boolean>();
  sharesByRun.set(run, known);
  let shares = known.get(scorer);
  if (shares === undefined) known.set(scorer, (shares = findShares(run, scorer)));
  return shares;
}

function findShares(run: RunData, scorer: string): boolean {
  // A run with one scorer has its scores in one column alone.
  const column =
    run.columns.find(({ name }) => name === `score.${scorer}`) ??
    run.columns.find(({ name }) => name === "score");
  if (column?.kind !== "number") return true;
  return !column.values.some((score) => score < 0 || score > 1);
}
