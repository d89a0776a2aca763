/** A line of samples.jsonl as the views show it. Nothing is trusted to have the shape that it should. */
import type { Failure, Message, Reply, Sample, ScoreOf } from "./api";

type Row = Record<string, unknown>;

const row = (value: unknown): Row => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Row) : {});
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const text = (value: unknown): string => (typeof value === "string" ? value : value === undefined || value === null ? "" : shown(value));
const number = (value: unknown): number | null => (typeof value === "number" ? value : null);
const shown = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value) ?? "");

const MARK = "\u0001";

/** A record as it was before texts that it has several times were named (parts.py, `compact`). */
export function recordOf(line: string): Row {
  const data = row(JSON.parse(line));
  const whole = (value: unknown, bases: string[]): unknown => {
    if (typeof value === "string") {
      if (value[0] !== MARK) return value;
      if (value[1] === "e") return value.slice(2);
      return value
        .slice(1)
        .split(MARK)
        .map((piece) => (piece[0] === "t" ? piece.slice(1) : (bases[Number(piece)] ?? "")))
        .join("");
    }
    if (Array.isArray(value)) return value.map((one) => whole(one, bases));
    if (typeof value !== "object" || value === null) return value;
    const out: Row = Object.create(null) as Row;
    for (const [name, part] of Object.entries(value)) out[name] = whole(part, bases);
    return out;
  };
  const own = { input: whole(data.input, []), answer: whole(data.answer, []), passages: whole(data.passages, []) };
  const bases = [own.input, own.answer, ...list(own.passages).map((one) => row(one).text)].map((one) => (typeof one === "string" ? one : ""));
  return whole(data, bases) as Row;
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
  const strategy = row(data.strategy);
  return {
    task: text(data.task),
    id: text(data.id),
    draw: number(data.draw) ?? 0,
    outcome: text(data.outcome),
    messages: messagesOf(data.prompt),
    input: text(data.input),
    choices: list(data.choices).map(text),
    gold: list(data.gold).filter((one) => typeof one === "number"),
    choice: number(data.choice),
    logLikelihoods: list(data.log_likelihoods).filter((one) => typeof one === "number"),
    targets: list(data.targets).map(text),
    passages: list(data.passages).map((one) => ({ id: text(row(one).id), text: text(row(one).text) })),
    answer,
    reasoning: text(data.reasoning),
    replies: list(data.responses).map((one, i) => replyOf(one, number(latencies[i]))),
    scores: scoresOf(data, answer),
    failure: failureOf(data.failure),
    metadata: Object.entries(row(data.metadata)).map(([name, value]) => [name, shown(value)]),
    strategy: data.strategy
      ? { name: text(strategy.name), draws: list(strategy.draws), votes: list(strategy.votes).map((one) => [text(list(one)[0]), number(list(one)[1]) ?? 0]) }
      : null,
    raw,
  };
}

function messagesOf(prompt: unknown): Message[] {
  if (typeof prompt === "string") return prompt ? [{ role: "", parts: [prompt] }] : [];
  return list(prompt).map((turn) => {
    const [role, content] = list(turn);
    const parts = typeof content === "string" ? [content] : list(content);
    return {
      role: text(role),
      parts: parts.map((part) => {
        const image = row(part);
        if (typeof image.image !== "string") return text(part);
        const source = typeof image.source === "string" ? { source: image.source } : {};
        return { image: image.image, mediaType: text(image.media_type), ...source };
      }),
    };
  });
}

function replyOf(value: unknown, latency: number | null): Reply {
  const data = row(value);
  const usage = row(data.usage);
  const reply: Reply = {};
  if (typeof data.text === "string") reply.text = data.text;
  if (typeof data.reasoning === "string") reply.reasoning = data.reasoning;
  if (typeof data.finish_reason === "string") reply.finish = data.finish_reason;
  if (typeof data.model === "string") reply.model = data.model;
  const numbers: [Exclude<keyof Reply, "text" | "reasoning" | "finish" | "model" | "tokens">, unknown][] = [
    ["logLikelihood", data.log_likelihood],
    ["inputTokens", usage.input_tokens],
    ["outputTokens", usage.output_tokens],
    ["reasoningTokens", usage.reasoning_tokens],
    ["cachedTokens", usage.cached_tokens],
    ["cost", data.cost],
    ["latency", latency],
  ];
  for (const [name, found] of numbers) if (typeof found === "number") reply[name] = found;
  const tokens = list(data.tokens)
    .map(list)
    .filter((one) => typeof one[0] === "string" && typeof one[1] === "number");
  if (tokens.length) reply.tokens = tokens as [string, number][];
  return reply;
}

function scoresOf(data: Row, answer: string): ScoreOf[] {
  const [scores, undecided, failures, exchanges] = [data.scores, data.undecided, data.score_failures, data.exchanges].map(row) as [Row, Row, Row, Row];
  const names = [...new Set([...Object.keys(scores), ...Object.keys(undecided), ...Object.keys(failures)])];
  return names.map((scorer) => {
    // Records of schema 1 have answers that were left without a score.
    const leftOut = scorer in undecided;
    const found = row(leftOut ? undecided[scorer] : scores[scorer]);
    const parts = Object.entries(row(found.parts)).filter((one): one is [string, number] => typeof one[1] === "number");
    return {
      scorer,
      value: leftOut ? null : number(found.value),
      label: leftOut ? "left out" : text(found.label),
      explanation: text(found.explanation),
      unsure: text(found.unsure),
      parts: Object.fromEntries(parts),
      evidence: spansOf(found.evidence, answer),
      failure: failureOf(failures[scorer]),
      exchange: list(exchanges[scorer]).map((one) => {
        const said = row(one);
        return { role: text(said.role), messages: requestOf(said.request), reply: replyOf(said.response, null) };
      }),
    };
  });
}

/** What a scorer sent: messages of a request for text, else each part of the request by its name. */
function requestOf(value: unknown): Message[] {
  const data = row(value);
  if ("generate" in data) return messagesOf(data.generate);
  return Object.entries(data).flatMap(([name, part]) => {
    const messages = messagesOf(part);
    return messages.length && messages[0]!.role ? messages : [{ role: name, parts: [shown(part)] }];
  });
}

/** Spans count code points in the record, and UTF-16 units here. */
function spansOf(value: unknown, answer: string): [number, number][] {
  const spans = list(value)
    .map(list)
    .filter((one): one is [number, number] => typeof one[0] === "number" && typeof one[1] === "number" && one[0] < one[1]);
  if (!spans.length) return [];
  const wanted = new Set(spans.flat());
  const places = new Map<number, number>();
  let points = 0;
  let units = 0;
  for (const point of answer) {
    if (wanted.has(points)) places.set(points, units);
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
