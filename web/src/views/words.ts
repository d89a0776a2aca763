/** What differs between two texts, by words. */
import type { Mark } from "../text/text";

interface Word {
  text: string;
  begin: number;
}

const MOST_CHANGES = 800;
/**
 * Words of both texts whose differences are looked for; what comes after stands as different in one
 * piece.
 */
const MOST_WORDS = 60_000;
/**
 * Characters that the browser's dictionary is asked about: at once (its time grows with the
 * square), and of a whole text.
 */
const AT_ONCE = 300;
const MOST_ASKED = 30_000;

/**
 * Spaces; letters of Chinese and Japanese, one by one; languages that write words without spaces
 * between them; words; the rest.
 */
const PIECES =
  /\s+|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]\p{M}*|(?<run>[\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+)|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}])[\p{L}\p{M}\p{N}_])+|[^]/gu;

const dictionary =
  typeof Intl.Segmenter === "function"
    ? new Intl.Segmenter(undefined, { granularity: "word" })
    : null;

/** Words with what stands between them. */
function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  let segmented = 0;
  for (const match of text.matchAll(PIECES)) {
    const run = match.groups?.run;
    if (run === undefined || dictionary === null || segmented > MOST_ASKED) {
      words.push({ text: match[0], begin: match.index });
      continue;
    }
    segmented += run.length;
    for (let at = 0; at < run.length; at += AT_ONCE) {
      for (const word of dictionary.segment(run.slice(at, at + AT_ONCE)))
        words.push({ text: word.segment, begin: match.index + at + word.index });
    }
  }
  return words;
}

/**
 * Which words of each text the other lacks: the fewest changes from one to the other (Myers 1986,
 * "An O(ND) difference algorithm and its variations"). Beyond so many changes all between the
 * common beginning and end counts as different.
 */
export function differences(a: string, b: string): { a: Mark[]; b: Mark[] } {
  if (a === b) return { a: [], b: [] };
  const wordsA = wordsOf(a);
  const wordsB = wordsOf(b);
  let head = 0;
  while (head < wordsA.length && head < wordsB.length && wordsA[head]!.text === wordsB[head]!.text)
    head++;
  let tail = 0;
  while (
    tail < wordsA.length - head &&
    tail < wordsB.length - head &&
    wordsA[wordsA.length - 1 - tail]!.text === wordsB[wordsB.length - 1 - tail]!.text
  )
    tail++;
  const left = wordsA.slice(head, wordsA.length - tail);
  const right = wordsB.slice(head, wordsB.length - tail);
  const shared = left.length + right.length > MOST_WORDS ? null : findCommonWords(left, right);
  return {
    a: marks(left, shared?.[0] ?? null, "only-a", "only in A"),
    b: marks(right, shared?.[1] ?? null, "only-b", "only in B"),
  };
}

/** Which words of each belong to the longest common subsequence, null where too much differs. */
function findCommonWords(a: Word[], b: Word[]): [boolean[], boolean[]] | null {
  const size = Math.min(a.length + b.length, MOST_CHANGES);
  const ends = new Int32Array(2 * size + 3);
  const steps: Int32Array[] = [];
  let nChanges = -1;
  for (let changes = 0; changes <= size && nChanges < 0; changes++) {
    steps.push(ends.slice(size + 1 - changes - 1, size + 1 + changes + 2));
    for (let k = -changes; k <= changes; k += 2) {
      const down = k === -changes || (k !== changes && ends[size + k]! < ends[size + k + 2]!);
      let x = down ? ends[size + k + 2]! : ends[size + k]! + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x]!.text === b[y]!.text) {
        x++;
        y++;
      }
      ends[size + 1 + k] = x;
      if (x >= a.length && y >= b.length) {
        nChanges = changes;
        break;
      }
    }
  }
  if (nChanges < 0) return null;
  const inA = new Array<boolean>(a.length).fill(false);
  const inB = new Array<boolean>(b.length).fill(false);
  let x = a.length;
  let y = b.length;
  for (let changes = nChanges; changes >= 0; changes--) {
    const before = steps[changes]!; // of diagonal k at place k + changes + 1
    const k = x - y;
    const down =
      k === -changes || (k !== changes && before[k + changes]! < before[k + changes + 2]!);
    const previous = down ? k + 1 : k - 1;
    const fromX = changes === 0 ? 0 : before[previous + changes + 1]!;
    const fromY = changes === 0 ? 0 : fromX - previous;
    while (x > fromX && y > fromY) {
      x--;
      y--;
      inA[x] = true;
      inB[y] = true;
    }
    if (changes > 0) [x, y] = [fromX, fromY];
  }
  return [inA, inB];
}

/** Neighbouring words that differ, with the spaces between them, in one mark each. */
function marks(words: Word[], shared: boolean[] | null, kind: Mark["kind"], label: string): Mark[] {
  const marks: Mark[] = [];
  const end = (index: number) => words[index]!.begin + words[index]!.text.length;
  words.forEach((word, index) => {
    if (shared?.[index]) return;
    const last = marks.at(-1);
    const between =
      index > 0 && last !== undefined && shared?.[index - 1] && !words[index - 1]!.text.trim();
    if (
      last !== undefined &&
      (last.end === word.begin || (between && last.end === words[index - 1]!.begin))
    )
      last.end = end(index);
    else marks.push({ begin: word.begin, end: end(index), kind, label });
  });
  return marks;
}
