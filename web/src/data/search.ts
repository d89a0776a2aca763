/** What a query is, and whether a record's texts have all of it. */
import { linesOf, recordOf } from "./sample";

/** The word groups of a query: words, and what stands in quotes. */
export function wordsOf(query: string): string[] {
  return [...query.matchAll(/"([^"]+)"?|[^\s"]+/g)].map((match) => match[1] ?? match[0]);
}

type Test = (text: string) => boolean;

/** Whether a text contains a word, whatever the case. */
function containing(word: string): Test {
  if (word.toLowerCase() === word.toUpperCase()) return (text) => text.includes(word);
  const pattern = new RegExp(word.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&"), "i");
  return (text) => pattern.test(text);
}

/** A function that says whether every word is in one of a few texts. */
export function matcher(words: string[]): (texts: string[]) => boolean {
  const tests = words.map(containing);
  return (texts) => tests.every((test) => texts.some(test));
}

/**
 * A function from a block to the rows, among those wanted, whose texts have every word.
 *
 * Most lines are passed over unread: a line holds the letters of a word as they are, unless it
 * escapes more than it must, or the word goes from one of its pieces into the next, between letters
 * and signs.
 */
export function searcher(words: string[]): (block: string, wanted: Int32Array | null) => number[] {
  const inTexts = matcher(words);
  const inLine = words.flatMap((word) => word.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []).map(containing);
  const maybe = (text: string): boolean =>
    inLine.every((test) => test(text)) || /\\u(?!00[01])/.test(text);
  return (block, rows) => {
    if (!maybe(block)) return [];
    const rowSet = rows && new Set(rows);
    const { lines, order } = linesOf(block);
    const hits = lines.flatMap((line, i) => {
      const row = order[i]!;
      if ((rowSet && !rowSet.has(row)) || !maybe(line)) return [];
      return inTexts(textsOf(line)) ? [row] : [];
    });
    return hits.sort((a, b) => a - b);
  };
}

const FIELDS = [
  "id",
  "input",
  "targets",
  "choices",
  "passages",
  "metadata",
  "answer",
  "reasoning",
  "prompt",
  "responses",
  "scores",
  "undecided",
  "score_failures",
  "failure",
  "exchanges",
  "strategy",
];
/** Within those, texts that are words of the record and none of the model's or the task's. */
const APART = new Set(["image", "media_type", "finish_reason", "role", "party", "model"]);

function textsOf(line: string): string[] {
  const texts: string[] = [];
  const collect = (value: unknown): void => {
    if (typeof value === "string") texts.push(value);
    else if (Array.isArray(value)) value.forEach(collect);
    else if (typeof value === "object" && value !== null) {
      for (const [name, child] of Object.entries(value)) if (!APART.has(name)) collect(child);
    }
  };
  try {
    const row = recordOf(line);
    for (const name of FIELDS) collect(row[name]);
  } catch {
    // A line that is no JSON has no texts.
  }
  return texts;
}
