/** Words and colours for what became of a sample. */
import type { Failure, Sample, ScoreOf } from "../data/api";

export type Tone = "good" | "bad" | "warn" | "quiet" | "part" | "plain";

/** Colour of an outcome; the words beside it say the same. Scores that are no shares have none. */
export function tone(
  outcome: string | null,
  score: number | null,
  failure: string | null,
  share = true,
): Tone {
  if (failure || outcome === "failed") return "warn";
  if (score === null) return "quiet";
  if (!share) return "plain";
  return score >= 1 ? "good" : score <= 0 ? "bad" : "part";
}

const OUTCOMES: Record<string, string> = {
  answered: "Answered",
  cut: "Cut before any answer",
  empty: "Empty",
  filtered: "Filtered by the provider",
  refused: "Refused by the model",
  too_long: "Prompt too long for the model",
  unfinished: "Still writing at the time limit",
  tool_call: "Called a tool that was not offered",
  failed: "Missing",
};

export const outcomeInWords = (outcome: string): string => OUTCOMES[outcome] ?? outcome;

/** The main score is the first that has a number. */
export const mainScore = (sample: Sample): ScoreOf | undefined =>
  sample.scores.find((score) => score.value !== null) ?? sample.scores[0];

const PARTIES: Record<string, string> = {
  provider: "The provider failed",
  model: "The model failed",
  task: "The task failed",
  dataset: "The dataset failed",
  scorer: "The scorer failed",
  judge: "The judge failed",
  sandbox: "The sandbox failed",
  configuration: "The configuration is wrong",
  store: "The store failed",
};

/** Who failed, and how. */
export function failureInWords(failure: Failure): string {
  const status = failure.status === null ? "" : `, HTTP status ${failure.status}`;
  const attempts = failure.attempts > 1 ? `, after ${failure.attempts} attempts` : "";
  return `${PARTIES[failure.party] ?? failure.party}: ${failure.kind}${status}${attempts}`;
}
