/** Texts of strangers, shown as they are. (The first shape; what it does with marks and lengths follows.) */

/** A part of a text that is to be seen: what a score rests on, a hit of a search, a word that differs. */
export interface Mark {
  begin: number;
  end: number;
  /** evidence, hit, only-a, only-b */
  kind: "evidence" | "hit" | "only-a" | "only-b";
  /** Said to those who cannot see the colour, and shown on hovering. */
  label?: string;
}

/** A text in a box of its own, with its line breaks; long ones are clipped until one asks for the rest. */
export function Text({ value }: { value: string; marks?: Mark[] }) {
  return <pre class="said">{value}</pre>;
}

/** The beginning of a text in one line. */
export function Line({ value }: { value: string; marks?: Mark[] }) {
  return <span class="said-line">{value}</span>;
}
