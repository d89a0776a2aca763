/**
 * The steps of a model that acted with tools, from the conversation, the replies and what the
 * strategy recorded. Nothing is trusted to have the shape that it should: a step that cannot be
 * found in the conversation is shown by its reply alone. The terminal reads records alike
 * (`runs/transcripts.py`).
 */
import type { Call, Message, Reply, Step, ToolUse, Trajectory, Used } from "./api";

type Row = Record<string, unknown>;

const row = (value: unknown): Row =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Row) : {};
const rows = (value: unknown): Row[] => (Array.isArray(value) ? value.map(row) : []);
const numberOr = <T>(value: unknown, otherwise: T): number | T =>
  typeof value === "number" && Number.isFinite(value) ? value : otherwise;
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** Records of steps that are read; a damaged record may claim any number. */
const MOST_STEPS = 100_000;

/** Whether a strategy recorded steps. */
export const isTrajectory = (strategy: Row): boolean =>
  Array.isArray(strategy.tool_calls) || typeof strategy.ended === "string";

const NOTHING_USED: Used = {
  modelSeconds: 0,
  toolSeconds: 0,
  inputTokens: 0,
  outputTokens: 0,
  dollars: 0,
};

export function trajectoryOf(
  strategy: Row,
  messages: Message[],
  allReplies: Reply[],
  timing: Row = {},
): Trajectory {
  // Replies of a program's other conversations come before those of the main one.
  const nAside = Math.min(Math.max(numberOr(strategy.side_replies, 0), 0), allReplies.length);
  const replies = allReplies.slice(nAside);
  const turns = messages.flatMap((message, index) => (message.role === "assistant" ? [index] : []));
  const claimed = Math.min(numberOr(strategy.steps, 0) - nAside, turns.length, MOST_STEPS);
  const n = Math.max(replies.length, claimed);
  const first = firstStep(messages, turns, replies, n);
  const uses = usesByStep(strategy, timing, nAside);
  const compacted = new Map(
    rows(strategy.compacted).map((mark) => [
      numberOr(mark.step, -1),
      {
        turns: numberOr(mark.turns, 0),
        summary: textOf(mark.summary),
        dollars: numberOr(mark.dollars, null),
      },
    ]),
  );
  const steps: Step[] = [];
  let total = NOTHING_USED;
  // A conversation that holds no step at all is what the model was sent.
  const opening = messages.slice(0, turns[first] ?? messages.length);
  let read = opening.length;
  for (let number = 0; number < n; number++) {
    const at = turns[first + number];
    const turn = at === undefined ? null : (messages[at] ?? null);
    const before = at === undefined ? messages.slice(read) : messages.slice(read, at);
    read = at === undefined ? messages.length : at + 1;
    const results: Message[] = [];
    while (turn && messages[read]?.role === "tool") results.push(messages[read++]!);
    const reply = replies[number - (n - replies.length)] ?? {};
    const step = stepOf(turn, reply, results, uses.get(number) ?? []);
    total = sum(total, step.used);
    steps.push({ ...step, before, total, compacted: compacted.get(number) ?? null });
  }
  return {
    opening,
    steps,
    after: messages.slice(read),
    ended: textOf(strategy.ended),
    attempts: numberOr(strategy.attempts, 1),
    startedAnew: rows(strategy.started_anew).map((start) => ({
      afterCalls: numberOr(start.after_calls, 0),
      why: textOf(start.why),
      dollars: numberOr(start.dollars, null),
    })),
    sandbox: textOf(row(strategy.sandbox).backend),
  };
}

/**
 * Which of the assistant's turns is the first step: examples in the prompt come before, and the
 * last reply may or may not be a turn.
 */
function firstStep(messages: Message[], turns: number[], replies: Reply[], n: number): number {
  const withLast = Math.max(0, turns.length - n);
  const withoutLast = Math.max(0, turns.length - n + 1);
  const matching = (first: number): number => {
    let same = 0;
    replies.forEach((reply, i) => {
      const message = messages[turns[first + i + n - replies.length] ?? -1];
      if (message && isReply(message, reply)) same++;
    });
    return same;
  };
  const holdsLast = !replies.length || matching(withLast) > matching(withoutLast);
  return holdsLast ? withLast : withoutLast;
}

function isReply(message: Message, reply: Reply): boolean {
  const calls = reply.calls ?? [];
  if (calls.length !== message.calls.length) return false;
  if (calls.length)
    return calls.every((call, i) => {
      const recorded = message.calls[i]!;
      return call.name === recorded.name && call.arguments === recorded.arguments;
    });
  const text = textsOf(message);
  return text === "" ? !reply.text?.trim() : (reply.text ?? "").includes(text);
}

const textsOf = (message: Message): string =>
  message.parts.filter((part) => typeof part === "string").join("\n");

/**
 * What the strategy recorded of calls, by step, in their order. Times, and what was replayed, stand
 * apart in a record.
 */
function usesByStep(strategy: Row, timing: Row, nAside: number): Map<number, Row[]> {
  const byStep = new Map<number, Row[]>();
  const seconds: unknown[] = Array.isArray(timing.tool_calls) ? timing.tool_calls : [];
  const replayed = new Set<unknown>(Array.isArray(timing.replayed) ? timing.replayed : []);
  for (const [index, call] of rows(strategy.tool_calls).entries()) {
    const use = {
      ...call,
      ...(index in seconds ? { seconds: seconds[index] } : {}),
      ...(replayed.has(index) ? { replayed: true } : {}),
    } as Row;
    const step = numberOr(use.step, -1) - nAside;
    const listed = byStep.get(step);
    if (listed) listed.push(use);
    else byStep.set(step, [use]);
  }
  return byStep;
}

function stepOf(
  turn: Message | null,
  reply: Reply,
  results: Message[],
  recorded: Row[],
): Omit<Step, "before" | "total" | "compacted"> {
  const calls = reply.calls ?? turn?.calls ?? [];
  const byId = new Map(results.filter(({ callId }) => callId).map((result) => [result.callId, result]));
  // Ids that several calls share, as some servers give them, say nothing.
  const isById = byId.size === results.length;
  const uses: ToolUse[] = calls.map((call, i) => {
    const result = (isById && call.id ? byId.get(call.id) : results[i]) ?? null;
    const facts = recorded[i] ?? {};
    return {
      call,
      result,
      isError: result?.isError || facts.is_error === true,
      exitCode: numberOr(facts.exit_code, null) ?? exitCodeOf(result),
      seconds: numberOr(facts.seconds, null),
      replayed: facts.replayed === true,
      again: facts.again === true,
    };
  });
  const toolSeconds = recorded.reduce((seconds, use) => seconds + numberOr(use.seconds, 0), 0);
  return {
    text: turn ? textsOf(turn) : (reply.text ?? ""),
    reasoning: reply.reasoning || turn?.reasoning || "",
    reply,
    uses,
    used: {
      modelSeconds: reply.latency ?? 0,
      toolSeconds,
      inputTokens: reply.inputTokens ?? 0,
      outputTokens: reply.outputTokens ?? 0,
      dollars: reply.cost ?? null,
    },
  };
}

const sum = (a: Used, b: Used): Used => ({
  modelSeconds: a.modelSeconds + b.modelSeconds,
  toolSeconds: a.toolSeconds + b.toolSeconds,
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  dollars: a.dollars === null || b.dollars === null ? null : a.dollars + b.dollars,
});

/** Characters at both ends of a result in which it may say how its command ended. */
const EXIT_CODE_CHARS = 200;
const EXIT_CODE = /\bexit(?:ed)?(?:[ _-]with)?[ _-](?:code|status)[^\w\n-]{0,3}(-?\d{1,5})\b/i;

/** The exit code that a result's first or last line names. */
function exitCodeOf(result: Message | null): number | null {
  if (!result) return null;
  const text = textsOf(result);
  const first = text.slice(0, EXIT_CODE_CHARS).split("\n", 1)[0] ?? "";
  const last = text.trimEnd().slice(-EXIT_CODE_CHARS).split("\n").at(-1) ?? "";
  const match = EXIT_CODE.exec(first) ?? EXIT_CODE.exec(last);
  return match ? Number(match[1]) : null;
}

/** The texts of a step that a search looks through, by the part that shows each. */
export function textsOfStep(step: Step): [part: string, text: string][] {
  const texts: [string, string][] = [];
  step.before.forEach((message, i) => texts.push([`before ${i}`, textsOf(message)]));
  if (step.reasoning) texts.push(["reasoning", step.reasoning]);
  if (step.text) texts.push(["text", step.text]);
  step.uses.forEach(({ call, result }, i) => {
    texts.push([`call ${i}`, call.name]);
    argumentsOf(call).forEach(({ text }, k) => texts.push([`call ${i} ${k}`, text]));
    if (result) texts.push([`result ${i}`, textsOf(result)]);
  });
  return texts;
}

export interface Argument {
  /** "" where the arguments are not an object: they are then shown as they were written. */
  name: string;
  text: string;
}

/** Longer arguments are shown as they were written. */
const LONGEST_PARSED_CHARS = 2_000_000;

/** The arguments of a call, as a reader wants them: texts as texts, other values as JSON. */
export function argumentsOf(call: Call): Argument[] {
  if (!call.arguments.trim()) return [];
  const written = [{ name: "", text: call.arguments }];
  if (call.arguments.length > LONGEST_PARSED_CHARS) return written;
  try {
    const parsed: unknown = JSON.parse(call.arguments);
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return written;
    return Object.entries(parsed).map(([name, value]) => ({
      name,
      text: typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? ""),
    }));
  } catch {
    return written; // the model's own mistake
  }
}

const COMMANDS = ["command", "code", "cmd", "script"];

/** What a call runs, to be copied as it would be typed; else its arguments. */
export function commandOf(call: Call): string {
  const written = argumentsOf(call);
  const command = written.find(({ name }) => COMMANDS.includes(name)) ?? written[0];
  return written.length === 1 || COMMANDS.includes(command?.name ?? "")
    ? (command?.text ?? "")
    : call.arguments;
}

/** What a call does: its tool and its arguments, however they are spaced. */
export function signatureOf(use: ToolUse): string {
  let written = use.call.arguments;
  try {
    written = JSON.stringify(sorted(JSON.parse(written)));
  } catch {
    // the model's own mistake is compared as it was written
  }
  return `${use.call.name}\0${written}`;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, child]) => [name, sorted(child)]),
  );
}

const ENDINGS: Record<string, string> = {
  submit: "The model submitted its answer.",
  answer: "The model answered without a further call.",
  exit: "The agent's program ended by itself.",
  max_steps: "Stopped: the limit of steps was reached.",
  messages: "Stopped: the limit of messages was reached.",
  tokens: "Stopped: the limit of tokens was reached.",
  dollars: "Stopped: the limit of dollars was reached.",
  seconds: "Stopped: the limit of seconds was reached.",
};
const FREE_ENDINGS = new Set(["submit", "answer", "exit"]);

/** How a trajectory ended, in a sentence. */
export const endingInWords = (ended: string): string =>
  Object.hasOwn(ENDINGS, ended) ? ENDINGS[ended]! : `Ended by: ${ended}.`;

export const isLimit = (ended: string): boolean =>
  Object.hasOwn(ENDINGS, ended) && !FREE_ENDINGS.has(ended);
