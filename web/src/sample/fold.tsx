import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Something that is made only when it is opened, and for printing unless it is left out of it. */
export function Fold({
  summary,
  open = false,
  printed = true,
  children,
}: {
  summary: ComponentChildren;
  open?: boolean;
  printed?: boolean;
  children: () => ComponentChildren;
}) {
  const [isOpen, set] = useState(open);
  useEffect(() => {
    if (!printed) return;
    const print = () => set(true);
    window.addEventListener("beforeprint", print);
    return () => window.removeEventListener("beforeprint", print);
  }, [printed]);
  return (
    <details class="fold" open={isOpen} onToggle={(event) => set(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen && <div class="fold-inside">{children()}</div>}
    </details>
  );
}
