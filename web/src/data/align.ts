/**
 * Two trajectories, step by step: equal steps beside each other, and between them those that
 * differ.
 */
import type { Step } from "./api";
import { signatureOf } from "./trajectory";

/** Places of steps; null where one of the two has none. */
export interface AlignedRow {
  a: number | null;
  b: number | null;
  /** Whether both made the same calls, or, without calls, said the same. */
  same: boolean;
}

/** Pairs of steps that are looked at; longer trajectories are matched by their order alone. */
const MOST_PAIRS = 4_000_000;

const keyOf = (step: Step): string =>
  step.uses.length ? step.uses.map(signatureOf).join("\n") : `\0\0${step.text.trim()}`;

export function align(a: Step[], b: Step[]): AlignedRow[] {
  const [keysA, keysB] = [a.map(keyOf), b.map(keyOf)];
  let head = 0;
  while (head < a.length && head < b.length && keysA[head] === keysB[head]) head++;
  let tail = 0;
  while (
    tail < a.length - head &&
    tail < b.length - head &&
    keysA[a.length - 1 - tail] === keysB[b.length - 1 - tail]
  )
    tail++;
  const rows: AlignedRow[] = [];
  const same = (i: number, j: number) => rows.push({ a: i, b: j, same: true });
  for (let i = 0; i < head; i++) same(i, i);
  let [i, j] = [head, head];
  const middle = commonSteps(
    keysA.slice(head, a.length - tail),
    keysB.slice(head, b.length - tail),
  );
  const ends: [number, number][] = [
    ...middle.map(([x, y]): [number, number] => [x + head, y + head]),
    [a.length - tail, b.length - tail],
  ];
  for (const [endA, endB] of ends) {
    // Between two equal steps, the first differing steps of both stand beside each other.
    while (i < endA || j < endB)
      rows.push({ a: i < endA ? i++ : null, b: j < endB ? j++ : null, same: false });
    if (endA < a.length - tail) same(i++, j++);
  }
  for (let k = 0; k < tail; k++) same(a.length - tail + k, b.length - tail + k);
  return rows;
}

/** The longest list of equal steps in the order of both. */
function commonSteps(a: string[], b: string[]): [number, number][] {
  if (a.length * b.length > MOST_PAIRS) {
    const n = Math.min(a.length, b.length);
    return Array.from({ length: n }, (_, i): [number, number] => [i, i]).filter(
      ([i]) => a[i] === b[i],
    );
  }
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        a[i] === b[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
  const pairs: [number, number][] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) i++;
    else j++;
  }
  return pairs;
}
