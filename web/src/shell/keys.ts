/** Keys: each page says which it answers, and the help lists those that hold now. */
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Key {
  /** As `KeyboardEvent.key` has it: "j", "ArrowDown", "?". */
  keys: string[];
  /** What it does, for the help: "Next sample". */
  does: string;
  run(event: KeyboardEvent): void;
}

const groups: { current: Key[] }[] = [];

/** Keys that hold while the component is on the page. The newest component's come first. */
export function useKeys(keys: Key[]): void {
  const latest = useRef(keys);
  latest.current = keys;
  // Before the next event: what is shown answers its keys.
  useLayoutEffect(() => {
    groups.unshift(latest);
    return () => void groups.splice(groups.indexOf(latest), 1);
  }, []);
}

/** All that hold now, the page's own first. */
export const keysNow = (): Key[] => groups.flatMap((group) => group.current);

/** Whether keys are meant for what has the focus, such as a search box. */
const isTextField = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select") ||
    target.isContentEditable);

export function listenToKeys(): () => void {
  const listener = (event: KeyboardEvent) => {
    if (
      event.defaultPrevented ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      event.isComposing
    )
      return;
    if (isTextField(event.target) || document.querySelector("dialog[open]")) return;
    // A focused button or link keeps the keys that belong to it.
    if (
      event.key === "Enter" &&
      event.target instanceof HTMLElement &&
      event.target.closest("a, button, summary")
    )
      return;
    const key = keysNow().find((binding) => binding.keys.includes(event.key));
    if (!key) return;
    event.preventDefault();
    key.run(event);
  };
  document.addEventListener("keydown", listener);
  return () => document.removeEventListener("keydown", listener);
}
