/** A search through the steps of one trajectory, with the place of every hit. */
import type { Step } from "../data/api";
import { textsOfStep } from "../data/trajectory";
import { hits } from "../text/text";

export interface Hit {
  step: number;
  part: string;
  begin: number;
}

export interface Hits {
  /** In the order of the transcript, up to MOST_HITS. */
  all: Hit[];
  /** How many hits a step has. */
  byStep: Map<number, number>;
  /** Whether there may be more than are listed. */
  isCut: boolean;
}

export const MOST_HITS = 5_000;

export function searchSteps(steps: Step[], words: string): Hits {
  const all: Hit[] = [];
  const byStep = new Map<number, number>();
  if (!words.trim()) return { all, byStep, isCut: false };
  for (const [number, step] of steps.entries()) {
    for (const [part, text] of textsOfStep(step)) {
      const marks = hits(text, words, MOST_HITS - all.length).sort((a, b) => a.begin - b.begin);
      if (!marks.length) continue;
      for (const { begin } of marks) all.push({ step: number, part, begin });
      byStep.set(number, (byStep.get(number) ?? 0) + marks.length);
      if (all.length >= MOST_HITS) return { all, byStep, isCut: true };
    }
  }
  return { all, byStep, isCut: false };
}
