/** What a query is, and whether a record's texts have all of it. Runs in workers and in the page. */

/** The word groups of a query: words, and what stands in quotes. */
export function wordsOf(query: string): string[] {
  return [...query.matchAll(/"([^"]+)"?|[^\s"]+/g)].map((found) => found[1] ?? found[0]);
}

type Test = (text: string) => boolean;

/** Whether a text contains a word, whatever the case. */
function containing(word: string): Test {
  if (word.toLowerCase() === word.toUpperCase()) return (text) => text.includes(word);
  const pattern = new RegExp(word.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&"), "i");
  return (text) => pattern.test(text);
}

/** A function from the lines of a block to the places, among those wanted, of the lines that have every word. */
export function searcher(words: string[]): (block: string, wanted: Int32Array | null) => number[] {
  const inTexts = words.map(containing);
  // In a line a word stands as JSON writes it; where a line escapes more than it must, only its texts can tell.
  const inLine = words.map((word) => containing(JSON.stringify(word).slice(1, -1)));
  const maybe = (text: string): boolean => text.includes("\\u") || inLine.every((test) => test(text));
  return (block, wanted) => {
    if (!maybe(block)) return [];
    const hits: number[] = [];
    let next = 0;
    let number = 0;
    for (let start = 0; start <= block.length; number++) {
      const found = block.indexOf("\n", start);
      const end = found < 0 ? block.length : found;
      const isWanted = wanted === null || wanted[next] === number;
      if (isWanted) {
        next++;
        const line = block.slice(start, end);
        if (maybe(line)) {
          const texts = textsOf(line);
          if (inTexts.every((test) => texts.some(test))) hits.push(number);
        }
      }
      start = end + 1;
    }
    return hits;
  };
}

const FIELDS = ["id", "input", "targets", "choices", "passages", "metadata", "answer", "reasoning", "prompt", "responses", "scores", "undecided", "score_failures", "failure", "exchanges", "strategy"];
/** Within those, texts that are words of the record and none of the model's or the task's. */
const APART = new Set(["image", "media_type", "finish_reason", "role", "party", "model"]);

function textsOf(line: string): string[] {
  const texts: string[] = [];
  const collect = (value: unknown): void => {
    if (typeof value === "string") texts.push(value);
    else if (Array.isArray(value)) value.forEach(collect);
    else if (typeof value === "object" && value !== null) {
      for (const [name, part] of Object.entries(value)) if (!APART.has(name)) collect(part);
    }
  };
  try {
    const row = JSON.parse(line) as Record<string, unknown>;
    for (const name of FIELDS) collect(row[name]);
  } catch {
    // A line that is no JSON has no texts.
  }
  return texts;
}
