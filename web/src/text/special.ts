/**
 * Characters that would not be seen, or would move the text around them. They stay in the text
 * (what is copied is what was recorded) and get a label; those that turn the direction of text are
 * held in a box of their own, so that they turn nothing.
 */

export interface Piece {
  text: string;
  /** What to show in its place, such as "RLO" or "NUL ×12". */
  label?: string;
  /** It may act on its neighbours: the marks that right-to-left text needs. */
  acts?: boolean;
}

const NAMES: Record<number, string> = {
  0x7f: "DEL",
  0x85: "NEL",
  0xad: "SHY",
  0x61c: "ALM",
  0x180e: "MVS",
  0x200b: "ZWSP",
  0x200e: "LRM",
  0x200f: "RLM",
  0x2028: "LSEP",
  0x2029: "PSEP",
  0x202a: "LRE",
  0x202b: "RLE",
  0x202c: "PDF",
  0x202d: "LRO",
  0x202e: "RLO",
  0x2060: "WJ",
  0x2066: "LRI",
  0x2067: "RLI",
  0x2068: "FSI",
  0x2069: "PDI",
  0xfeff: "BOM",
};
const C0 =
  "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(
    " ",
  );
const ACTING = new Set([0x61c, 0x200e, 0x200f]);

// Flags made of tag characters pass; else tag characters, which hide text, are labelled. Zero-width
// joiners shape letters and pass.
const SPECIAL =
  /(?<flag>\u{1F3F4}[\u{E0020}-\u{E007E}]{1,6}\u{E007F})|(?<one>[\0-\x08\x0B\x0C\x0E-\x1F\x7F-\x9F\xAD\u061C\u115F\u1160\u180E\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F\u3164\uFEFF\uFFA0\uFFF9-\uFFFB\u{E0000}-\u{E007F}\p{Surrogate}]|\r(?!\n))\k<one>*|(?<=[\p{Mn}\p{Me}]{6})[\p{Mn}\p{Me}]+/gu;

const point = (code: number) => `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;

/** What a character is called in a label. */
function nameOf(code: number): string {
  if (code >= 0xe0021 && code <= 0xe007e) return `TAG ${String.fromCharCode(code - 0xe0000)}`;
  return C0[code] ?? NAMES[code] ?? point(code);
}

/** A text in pieces; together they are the text. */
export function pieces(text: string): Piece[] {
  const runs: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(SPECIAL)) {
    if (match.groups?.flag) continue;
    if (match.index > end) runs.push({ text: text.slice(end, match.index) });
    end = match.index + match[0].length;
    const code = match[0].codePointAt(0) ?? 0;
    const times = match[0].length / (code > 0xffff ? 2 : 1);
    const label =
      match.groups?.one === undefined
        ? `+${times.toLocaleString("en")} combining`
        : nameOf(code) + (times > 1 ? ` ×${times.toLocaleString("en")}` : "");
    runs.push({ text: match[0], label, acts: ACTING.has(code) });
  }
  if (end < text.length) runs.push({ text: text.slice(end) });
  return runs;
}

/**
 * A text for places that take no markup, such as the title of the window: what is not seen is left
 * out.
 */
export const plain = (text: string): string =>
  pieces(text.slice(0, 300))
    .filter((piece) => piece.label === undefined)
    .map((piece) => piece.text)
    .join("");

/** The nearest place at or before this one that splits no character. */
export function wholeCharacter(text: string, index: number): number {
  const after = text.charCodeAt(index);
  const before = text.charCodeAt(index - 1);
  return after >= 0xdc00 && after < 0xe000 && before >= 0xd800 && before < 0xdc00
    ? index - 1
    : index;
}
