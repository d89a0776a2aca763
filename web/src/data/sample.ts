/**
 * A line of samples.jsonl as the views show it. Nothing is trusted to have the shape that it
 * should.
 */
import type {
  Call,
  Failure,
  Message,
  Reply,
  Sample,
  ScoreOf,
  SentenceVerdict,
  SentenceVerdicts,
} from "./api";
import { isTrajectory, trajectoryOf } from "./trajectory";

type Row = Record<string, unknown>;

const row = (value: unknown): Row =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Row) : {};
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const text = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : asText(value);
const number = (value: unknown): number | null => (typeof value === "number" ? value : null);
const asText = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value) ?? "");

const MARK = "\u0001";

/** A record as it was before texts that it has several times were named (parts.py, `compact`). */
export function recordOf(line: string): Row {
  const data = row(JSON.parse(line));
  const expand = (value: unknown, bases: string[]): unknown => {
    if (typeof value === "string") {
      if (value[0] !== MARK) return value;
      if (value[1] === "e") return value.slice(2);
      return value
        .slice(1)
        .split(MARK)
        .map((piece) => (piece[0] === "t" ? piece.slice(1) : (bases[Number(piece)] ?? "")))
        .join("");
    }
    if (Array.isArray(value)) return value.map((child) => expand(child, bases));
    if (typeof value !== "object" || value === null) return value;
    const expanded: Row = Object.create(null) as Row;
    for (const [name, child] of Object.entries(value)) expanded[name] = expand(child, bases);
    return expanded;
  };
  const base = {
    input: expand(data.input, []),
    answer: expand(data.answer, []),
    passages: expand(data.passages, []),
  };
  const bases = [
    base.input,
    base.answer,
    ...list(base.passages).map((passage) => row(passage).text),
  ].map((text) => (typeof text === "string" ? text : ""));
  return expand(data, bases) as Row;
}

/** The lines of a block of records, and which row of the block each is. */
export function linesOf(block: string): { lines: string[]; order: number[] } {
  const [first, ...lines] = block.split("\n");
  return { lines, order: JSON.parse(first ?? "[]") as number[] };
}

export function sampleOf(line: string): Sample {
  const raw = recordOf(line);
  const data = raw;
  const answer = text(data.answer);
  const latencies = list(row(data.timing).latency);
  const targets = list(data.targets).map(text);
  const calls = targets.length ? null : expectedCalls(data);
  const strategy = row(data.strategy);
  const messages = messagesOf(data.prompt);
  const replies = list(data.responses).map((response, i) =>
    replyOf(response, number(latencies[i])),
  );
  return {
    task: text(data.task),
    id: text(data.id),
    draw: number(data.draw) ?? 0,
    outcome: text(data.outcome),
    messages,
    tools: list(data.tools).map((tool) => ({
      name: text(row(tool).name),
      description: text(row(tool).description),
      parameters: row(tool).parameters,
    })),
    input: text(data.input),
    choices: list(data.choices).map(text),
    gold: list(data.gold).filter((index) => typeof index === "number"),
    choice: number(data.choice),
    logLikelihoods: list(data.log_likelihoods).filter(
      (logLikelihood) => typeof logLikelihood === "number",
    ),
    targets: calls === null ? targets : [calls],
    passages: list(data.passages).map((passage) => ({
      id: text(row(passage).id),
      text: text(row(passage).text),
    })),
    answer,
    reasoning: text(data.reasoning),
    replies,
    scores: scoresOf(data, answer, sourcesOf(data)),
    failure: failureOf(data.failure),
    metadata: Object.entries(row(data.metadata))
      .filter(([name]) => calls === null || name !== CALLS_METADATA)
      .map(([name, value]) => [name, asText(value)]),
    strategy: data.strategy
      ? {
          name: text(strategy.name),
          draws: list(strategy.draws),
          votes: list(strategy.votes).map((vote) => [
            text(list(vote)[0]),
            number(list(vote)[1]) ?? 0,
          ]),
        }
      : null,
    trajectory: isTrajectory(strategy)
      ? trajectoryOf(strategy, messages, replies, row(data.timing))
      : null,
    raw,
  };
}

const CALLS_SCORER = "tool-calls";
const CALLS_METADATA = "calls";

/**
 * The calls that the scorer `tool-calls` expected, a line for each; null where the record says
 * nothing of calls. The terminal writes them alike (`expected_calls` in `recorded_answers.py`).
 */
function expectedCalls(data: Row): string | null {
  const expected = row(data.metadata)[CALLS_METADATA];
  const isScored = CALLS_SCORER in row(data.scores) || CALLS_SCORER in row(data.score_failures);
  if (!isScored || !Array.isArray(expected)) return null;
  if (expected.length > 0 && expected.every(Array.isArray)) {
    return expected.map((turn, i) => `turn ${i + 1}: ${expectedTurn(turn, " ")}`).join("\n");
  }
  return expectedTurn(expected, "\n");
}

function expectedTurn(calls: unknown[], separator: string): string {
  if (!calls.length) return "no call";
  return calls.map(expectedCall).join(separator);
}

function expectedCall(value: unknown): string {
  const call = row(value);
  if (!("name" in call)) return spaced(value);
  const remarks = Object.entries(call)
    .filter(([key, remark]) => key !== "name" && key !== "arguments" && !isEmpty(remark))
    .map(([key, remark]) => `${key} ${spaced(remark)}`);
  const written = `${text(call.name)}(${isEmpty(call.arguments) ? "" : spaced(call.arguments)})`;
  return remarks.length ? `${written} [${remarks.join(", ")}]` : written;
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) ? !value.length : !Object.keys(row(value)).length;
}

/** JSON on one line, with spaces after commas and colons. */
function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "";
  const pairs = Object.entries(value).map(([key, part]) => `${JSON.stringify(key)}: ${spaced(part)}`);
  return `{${pairs.join(", ")}}`;
}

export function messagesOf(prompt: unknown): Message[] {
  if (typeof prompt === "string") return prompt ? [plainMessage("", prompt)] : [];
  return list(prompt).map((turn) => {
    const [role, content, extras] = list(turn);
    const more = row(extras);
    const pieces = typeof content === "string" ? [content] : list(content);
    return {
      role: text(role),
      tool: text(more.tool_name),
      isError: more.is_error === true,
      callId: text(more.tool_call_id),
      reasoning: text(more.reasoning),
      calls: callsOf(more.tool_calls),
      parts: pieces.map((piece) => {
        const image = row(piece);
        if (typeof image.image !== "string") return text(piece);
        const source = typeof image.source === "string" ? { source: image.source } : {};
        return { image: image.image, mediaType: text(image.media_type), ...source };
      }),
    };
  });
}

const plainMessage = (role: string, content: string): Message => ({
  role,
  tool: "",
  isError: false,
  callId: "",
  reasoning: "",
  calls: [],
  parts: [content],
});

function callsOf(value: unknown): Call[] {
  return list(value).map((call) => ({
    name: text(row(call).name),
    arguments: text(row(call).arguments),
    id: text(row(call).id),
  }));
}

function replyOf(value: unknown, latency: number | null): Reply {
  const data = row(value);
  const usage = row(data.usage);
  const reply: Reply = {};
  const calls = callsOf(data.tool_calls);
  if (calls.length) reply.calls = calls;
  if (typeof data.text === "string") reply.text = data.text;
  if (typeof data.reasoning === "string") reply.reasoning = data.reasoning;
  if (typeof data.finish_reason === "string") reply.finish = data.finish_reason;
  if (typeof data.model === "string") reply.model = data.model;
  const numbers: [
    Exclude<keyof Reply, "text" | "calls" | "reasoning" | "finish" | "model" | "tokens">,
    unknown,
  ][] = [
    ["logLikelihood", data.log_likelihood],
    ["inputTokens", usage.input_tokens],
    ["outputTokens", usage.output_tokens],
    ["reasoningTokens", usage.reasoning_tokens],
    ["cachedTokens", usage.cached_tokens],
    ["cost", data.cost],
    ["latency", latency],
  ];
  for (const [name, amount] of numbers) if (typeof amount === "number") reply[name] = amount;
  const tokens = list(data.tokens)
    .map(list)
    .filter((pair) => typeof pair[0] === "string" && typeof pair[1] === "number");
  if (tokens.length) reply.tokens = tokens as [string, number][];
  return reply;
}

/** The texts that evidence may be in: the passages, and the question at -1. */
function sourcesOf(data: Row): Map<number, string> {
  const sources = new Map([[-1, text(data.input)]]);
  list(data.passages).forEach((passage, index) => sources.set(index, text(row(passage).text)));
  return sources;
}

function scoresOf(data: Row, answer: string, sources: Map<number, string>): ScoreOf[] {
  const [scores, undecided, failures, exchanges] = [
    data.scores,
    data.undecided,
    data.score_failures,
    data.exchanges,
  ].map(row) as [Row, Row, Row, Row];
  const names = [
    ...new Set([...Object.keys(scores), ...Object.keys(undecided), ...Object.keys(failures)]),
  ];
  return names.map((scorer) => {
    // Records of schema 1 have answers that were left without a score.
    const leftOut = scorer in undecided;
    const score = row(leftOut ? undecided[scorer] : scores[scorer]);
    const numbers = Object.entries(row(score.parts)).filter(
      (entry): entry is [string, number] => typeof entry[1] === "number",
    );
    return {
      scorer,
      value: leftOut ? null : number(score.value),
      label: leftOut ? "left out" : text(score.label),
      explanation: text(score.explanation),
      unsure: text(score.unsure),
      parts: Object.fromEntries(numbers),
      evidence: spansOf(score.evidence, answer),
      sentences: sentencesOf(score.sentences, answer, sources),
      failure: failureOf(failures[scorer]),
      exchange: list(exchanges[scorer]).map((exchange) => {
        const exchanged = row(exchange);
        return {
          role: text(exchanged.role),
          messages: requestOf(exchanged.request),
          reply: replyOf(exchanged.response, null),
        };
      }),
    };
  });
}

/**
 * What a scorer sent: messages of a request for text, else each part of the request by its name.
 */
function requestOf(value: unknown): Message[] {
  const data = row(value);
  if ("generate" in data) return messagesOf(data.generate);
  return Object.entries(data).flatMap(([name, prompt]) => {
    const messages = messagesOf(prompt);
    return messages.length && messages[0]!.role
      ? messages
      : [plainMessage(name, asText(prompt))];
  });
}

function sentencesOf(
  value: unknown,
  answer: string,
  sources: Map<number, string>,
): SentenceVerdicts[] {
  return list(value).flatMap((sentence) => {
    const [span] = spansOf([row(sentence).span], answer);
    if (!span) return [];
    const verdicts = Object.entries(row(row(sentence).verdicts)).map(([role, verdict]) =>
      verdictOf(role, row(verdict), sources),
    );
    return [{ begin: span[0], end: span[1], verdicts }];
  });
}

function verdictOf(role: string, verdict: Row, sources: Map<number, string>): SentenceVerdict {
  const evidence = list(verdict.evidence).flatMap((place) => {
    const passage = number(row(place).passage) ?? -1;
    const [span] = spansOf([row(place).span], sources.get(passage) ?? "");
    return span ? [{ passage, begin: span[0], end: span[1] }] : [];
  });
  return {
    role,
    supported: verdict.supported === true,
    probability: number(verdict.probability) ?? NaN,
    reason: text(verdict.reason),
    relation: evidence.length ? text(verdict.relation) : "",
    evidence,
    refused: text(verdict.refused),
  };
}

/** Spans count code points in the record, and UTF-16 units here. */
function spansOf(value: unknown, answer: string): [number, number][] {
  const spans = list(value)
    .map(list)
    .filter(
      (span): span is [number, number] =>
        typeof span[0] === "number" && typeof span[1] === "number" && span[0] < span[1],
    );
  if (!spans.length) return [];
  const ends = new Set(spans.flat());
  const places = new Map<number, number>();
  let points = 0;
  let units = 0;
  for (const point of answer) {
    if (ends.has(points)) places.set(points, units);
    points += 1;
    units += point.length;
  }
  places.set(points, units);
  return spans.flatMap(([begin, end]): [number, number][] => {
    const [from, to] = [places.get(begin), places.get(end)];
    return from === undefined || to === undefined ? [] : [[from, to]];
  });
}

function failureOf(value: unknown): Failure | null {
  if (!value) return null;
  const data = row(value);
  return {
    kind: text(data.kind),
    party: text(data.party),
    message: text(data.message),
    status: number(data.status),
    attempts: number(data.attempts) ?? 1,
  };
}
