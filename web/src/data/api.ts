/**
 * What the views read, wherever the data comes from: a file that holds all of it, a folder of files
 * behind a web server, or `evalwright view`, which follows runs that are still going.
 *
 * Numbers with an interval are made in Python; this side only counts, filters, sorts and shows.
 * Texts are data from strangers: they go to the page as text nodes and attributes' values, never as
 * markup.
 */

/** A number with its interval, in its own unit. Absent bounds: there is no interval. */
export interface Estimate {
  value: number | null;
  low?: number;
  high?: number;
  n: number;
  /** Items without a score, through no fault of the model. */
  missing: number;
  method: string;
}

export interface Metric extends Estimate {
  name: string;
  /** Of shares: shown in points of 100. */
  bounded: boolean;
  lowerIsBetter: boolean;
  /** Whether it is unknown which values are better; left out where it is known. */
  noDirection?: boolean;
}

export interface Slice {
  /** Such as "domain". */
  key: string;
  parts: { name: string; metric: Metric }[];
}

export interface TaskInfo {
  name: string;
  description: string;
  samples: number;
  missing: number;
  unsure: number;
  /** How many records have which outcome. */
  outcomes: Record<string, number>;
  /** How many failures of each kind. */
  failures: Record<string, number>;
  metrics: Metric[];
  slices: Slice[];
}

/** A node of the tree of tasks, inner ones first. */
export interface GroupInfo {
  name: string;
  label: string;
  parts: string[];
  metric: Metric | null;
}

export type RunState = "running" | "finished" | "stopped";

export interface RunInfo {
  /** By which every other call names it: its place, as text. */
  key: string;
  /** The folder's name, as the command line takes it. */
  name: string;
  label: string;
  model: string;
  started: string;
  seconds: number | null;
  state: RunState;
  /** Samples recorded so far, and those that the run will have where that is known. */
  records: number;
  expected: number | null;
  tasks: TaskInfo[];
  groups: GroupInfo[];
  /** US dollars; null where it is not known of every answer. */
  cost: number | null;
  inputTokens: number;
  outputTokens: number;
  /** Facts to show as they are: machine, versions, settings, how it ended. */
  facts: [name: string, value: string][];
  /** The template that was used in place of the tasks' own prompt; "" where none was. */
  prompt?: string;
  /** Whether this page can have pictures of the run's images. */
  hasImages: boolean;
  /** Why an image of this run is not shown, where it is not. */
  imagesMissing: string;
  /** What `evalwright check judge sample` drew of this run, and keeps beside it. */
  labelSets: LabelSet[];
}

/**
 * Answers drawn for people to label, in the order drawn. The first one's row is called NAME-001 (as
 * many digits as the last).
 */
export interface LabelSet {
  name: string;
  scorer: string;
  /** Labels may lie between 0 and 1. */
  graded: boolean;
  rows: [task: string, id: string, draw: number][];
}

export interface BoardRow {
  run: string;
  /** First and last rank that the data leave open. */
  ranks: [number, number] | null;
  overall: Metric | null;
  /** By column. */
  cells: (Metric | null)[];
}

/** More than one run, as `evalwright leaderboard` gives them: best first. */
export interface Board {
  columns: { name: string; note: string }[];
  rows: BoardRow[];
  /** What limits the comparison, as sentences. */
  notes: string[];
}

export interface Catalog {
  format: 1;
  title: string;
  /** ISO 8601. */
  made: string;
  /** Of evalwright. */
  version: string;
  /** Runs may grow: `onChange` tells when. */
  live: boolean;
  /** The page begins with a list of runs to choose from; boards are made of the chosen ones. */
  chosenFromFolder?: boolean;
  runs: RunInfo[];
  board: Board | null;
}

/** A column of an index: one value for each sample. NaN and -1 stand for "none". */
export type Column =
  | { name: string; title: string; kind: "number"; values: Float64Array }
  | {
      name: string;
      title: string;
      kind: "category";
      names: string[];
      codes: Int32Array;
      /** Where a value is a set of members, such as the tools that were called. */
      sets?: { members: string[]; of: number[][] };
    };

export interface ImagePart {
  image: string;
  mediaType: string;
  source?: string;
}

/** A call of a tool, as the model wrote it. */
export interface Call {
  name: string;
  /** A JSON object, where the model wrote one. */
  arguments: string;
  /** The provider's name for the call, which its result repeats; "" where it has none. */
  id: string;
}

export interface Message {
  role: string;
  /** The tool whose result this is; "" elsewhere. */
  tool: string;
  /** Whether the result says that the call failed. */
  isError: boolean;
  /** The id of the call whose result this is; "" elsewhere. */
  callId: string;
  /** Of an assistant's turn with calls; "" elsewhere. */
  reasoning: string;
  calls: Call[];
  /** Texts, and images by the hash of the bytes that were sent. */
  parts: (string | ImagePart)[];
}

export interface Reply {
  text?: string;
  calls?: Call[];
  reasoning?: string;
  finish?: string;
  logLikelihood?: number;
  inputTokens?: number;
  outputTokens?: number;
  reasoningTokens?: number;
  cachedTokens?: number;
  cost?: number;
  model?: string;
  /** Seconds. */
  latency?: number;
  /** The tokens with the natural log of their probabilities, where they were recorded. */
  tokens?: [text: string, logProbability: number][];
}

export interface ScoreOf {
  scorer: string;
  value: number | null;
  label: string;
  explanation: string;
  /** Why a careful reader might argue with the value; "" where none would. */
  unsure: string;
  /** Numbers that it is made of. */
  parts: Record<string, number>;
  /** Spans of the answer that the score rests on: beginning and end in UTF-16 code units. */
  evidence: [begin: number, end: number][];
  failure: Failure | null;
  /** Verdicts of judges on sentences of the answer, in order. */
  sentences: SentenceVerdicts[];
  /** What a judge was sent and what it replied. */
  exchange: { role: string; messages: Message[]; reply: Reply }[];
}

/** What judges found of one sentence of an answer. Places count UTF-16 code units. */
export interface SentenceVerdicts {
  begin: number;
  end: number;
  verdicts: SentenceVerdict[];
}

export interface SentenceVerdict {
  /** The judge's role. */
  role: string;
  supported: boolean;
  probability: number;
  reason: string;
  /** What the spans are to the sentence: supports, contradicts or nearest; "" without spans. */
  relation: string;
  /** Spans of the source; passage -1 is the question. */
  evidence: { passage: number; begin: number; end: number }[];
  /** Why the evidence that the judge named is not shown. */
  refused: string;
}

export interface Failure {
  kind: string;
  party: string;
  message: string;
  status: number | null;
  attempts: number;
}

/**
 * All that is recorded of one sample and repeat. The id is the index's: of a very long one its
 * beginning and a digest.
 */
export interface Sample {
  task: string;
  id: string;
  draw: number;
  outcome: string;
  messages: Message[];
  /** The tools that this sample offered, where not every sample of the task offered the same. */
  tools: { name: string; description: string; parameters: unknown }[];
  input: string;
  choices: string[];
  /** Places of the right choices, and of the chosen one. */
  gold: number[];
  choice: number | null;
  logLikelihoods: number[];
  targets: string[];
  passages: { id: string; text: string }[];
  answer: string;
  reasoning: string;
  replies: Reply[];
  scores: ScoreOf[];
  failure: Failure | null;
  metadata: [name: string, value: string][];
  /** How the answer was formed of several draws, where it was. */
  strategy: { name: string; draws: unknown[]; votes: [answer: string, votes: number][] } | null;
  /** The steps of a model that acted with tools; null for other samples. */
  trajectory: Trajectory | null;
  /** The record as it stands in samples.jsonl. */
  raw: unknown;
}

/** A call of a tool within a trajectory, and what came of it. */
export interface ToolUse {
  call: Call;
  /** What the model read; null where the call was not carried out. */
  result: Message | null;
  isError: boolean;
  /** Of the command that it ran, where the result says so. */
  exitCode: number | null;
  seconds: number | null;
  /** Whether the result was stored by an interrupted run, and not made again. */
  replayed: boolean;
  /** Whether an interruption may have made it happen twice. */
  again: boolean;
}

/** What was used up to a point; null where it is not known. */
export interface Used {
  modelSeconds: number;
  toolSeconds: number;
  inputTokens: number;
  outputTokens: number;
  dollars: number | null;
}

/** A reply of the model, and what its calls gave. */
export interface Step {
  /** Turns of others that came before the reply, such as the user's. */
  before: Message[];
  text: string;
  reasoning: string;
  reply: Reply;
  uses: ToolUse[];
  used: Used;
  /** All steps up to this one. */
  total: Used;
  /** The model read a summary in place of this many turns, from this reply on. */
  compacted: { turns: number; summary: string; dollars: number | null } | null;
}

export interface Trajectory {
  /** What the model was sent before its first reply. */
  opening: Message[];
  steps: Step[];
  /** Turns behind the last step's results. */
  after: Message[];
  /** "submit", "answer", a limit's name, ... */
  ended: string;
  attempts: number;
  startedAnew: { afterCalls: number; why: string; dollars: number | null }[];
  /** Such as "jail". */
  sandbox: string;
}

/** A trajectory of a run that is going on. */
export interface OpenTrajectory {
  /** By which the page asks for its turns. */
  number: number;
  task: string;
  id: string;
  draw: number;
  attempt: number;
  /** Turns so far. */
  turns: number;
  /** The beginning of the last turn, in one line. */
  last: string;
}

/** The last turns of a trajectory that is going on. */
export interface OpenTurns extends OpenTrajectory {
  /** Turns before those that are kept, and how many of them were replies. */
  dropped: number;
  droppedReplies: number;
  messages: Message[];
}

export interface Preview {
  question: string;
  answer: string;
  /** The targets, or the right options; "" where there is neither. */
  expected: string;
  /** Why a judge gave its score; "" where no judge did. */
  reason: string;
}

/**
 * Conditions that must all hold. A category is one of the names (empty: none); a number lies in the
 * range.
 */
export interface Filter {
  categories: Record<string, string[]>;
  numbers: Record<string, [low: number, high: number]>;
}

/**
 * What a record has under a name of a stranger's, which may be that of something that every object
 * has ("constructor").
 */
export const ownValue = <T>(record: Record<string, T>, name: string): T | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined;

export interface RunData {
  info: RunInfo;
  /** How many samples (with repeats) the index has now. */
  size: number;
  /**
   * Those of facets and of the table: task, outcome, label, failure, score, latency, tokens, cost,
   * length, slices, scorers.
   */
  columns: Column[];
  id(place: number): string;
  draw(place: number): number;
  /** The place of a sample, -1 where there is none. */
  find(task: string, id: string, draw: number): number;
  /**
   * Places that fulfil the filter, in the order of the run. Synchronous: it reads columns alone.
   */
  filter(filter: Filter): Int32Array;
  /**
   * How many of the places (null: of all) have each name of a category, by code; the last counts
   * those without.
   */
  counts(column: string, places: Int32Array | null): Int32Array;
  /**
   * Places ordered by a column; those without a value come last. Ties keep the order of the run.
   */
  sort(places: Int32Array, column: string, descending: boolean): Int32Array;
  /** The first words of a row, null while they are being read (then `onPreviews` tells). */
  preview(place: number): Preview | null;
  onPreviews(listener: () => void): () => void;
  sample(place: number): Promise<Sample>;
  /**
   * Places whose id or first words, as far as they are read, hold every word group: what a search
   * can show before it has read a record. Where first words were shortened it may be wrong.
   */
  likelyHits(query: string): Int32Array;
  /**
   * Places among the given ones whose texts (question, messages, answer, reasoning, replies,
   * targets, explanations, id) contain every word group of the query, whatever the case; "in
   * quotes" is one. Hits come in parts, in the order of the run.
   */
  search(
    query: string,
    places: Int32Array,
    found: (hits: Int32Array, done: number, of: number) => void,
    stop: AbortSignal,
  ): Promise<void>;
}

/** One task of two runs. */
export interface TaskDifference {
  task: string;
  metric: string;
  bounded: boolean;
  lowerIsBetter: boolean;
  paired: boolean;
  a: number | null;
  b: number | null;
  difference: Estimate;
  pValue: number | null;
  /** Whether the conclusion claims that the two differ; absent in pages of earlier versions. */
  claimed?: boolean;
  onlyA: number;
  onlyB: number;
  /** What the numbers mean. */
  sentence: string;
}

export interface Comparison {
  a: string;
  b: string;
  /** Why the two are not compared; the rest is then empty. */
  refused?: string;
  tasks: TaskDifference[];
  overall: { difference: Estimate; pValue?: number | null } | null;
  /** The verdict in one line; absent in pages of earlier versions. */
  headline?: string;
  conclusion: string;
  /** What differs in how the runs were made, and what limits the comparison. */
  notes: string[];
  /**
   * Items that both have: place in A, place in B, and both main scores (NaN: none). The first
   * repeat's place, the mean score of its repeats.
   */
  pairs: { a: Int32Array; b: Int32Array; scoreA: Float64Array; scoreB: Float64Array };
}

/**
 * The score of some samples that are alike in a number: from `low` to `high`, `mean` on average.
 */
export interface Bin {
  low: number;
  high: number;
  mean: number;
  score: Estimate;
}

/**
 * The main score of a task against a number that is known of its samples, in bins of about as many
 * samples each.
 */
export interface Curve {
  task: string;
  metric: string;
  bounded: boolean;
  lowerIsBetter: boolean;
  /** Characters of the answer, seconds, US dollars, or how sure the model says it is (0 to 1). */
  against: "length" | "latency" | "cost" | "confidence";
  bins: Bin[];
  /** Sentences to stand below it. */
  notes: string[];
}

/** Two judges of the same answers. onlyA: answers that A passes and B does not. */
export interface Agreement {
  a: string;
  b: string;
  raw: Estimate;
  kappa: Estimate;
  onlyA: number;
  onlyB: number;
}

export interface Plots {
  curves: Curve[];
  agreement: Agreement[];
}

export interface Data {
  catalog: Catalog;
  run(key: string): Promise<RunData>;
  /** The board of some runs, given by their keys; null where this page cannot have one. */
  board(runs: string[]): Promise<Board | null>;
  /** null where the file was made without this pair. */
  comparison(a: string, b: string): Promise<Comparison | null>;
  /**
   * What plots need that counting cannot give; null while the run is going, and where the file was
   * made without.
   */
  plots(run: string): Promise<Plots | null>;
  /** The picture of an image, for an <img>; null where there is none of it. */
  picture(run: string, digest: string): Promise<Blob | null>;
  /** Trajectories that are going on, and how many more there are. */
  live(run: string): Promise<{ open: OpenTrajectory[]; more: number }>;
  /** The last turns of one of them; null where it has ended. */
  liveTurns(run: string, number: number): Promise<OpenTurns | null>;
  /** Called when trajectories of a run grew, began or ended. */
  onLive(listener: (run: string) => void): () => void;
  /** Runs of which something is going on that `live` shows. */
  liveRuns(): string[];
  /**
   * Called after `catalog` changed, with the keys of runs whose index changed; runs are to be read
   * again.
   */
  onChange(listener: (runs: string[]) => void): () => void;
  /**
   * How the commands that the page offers name this run, such as "evalwright". Empty for a page
   * that is not served.
   */
  served: boolean;
}
