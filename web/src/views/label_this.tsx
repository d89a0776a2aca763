import type { RunInfo } from "../data/api";
import { links } from "../pages";
import { isPicked, pick, runIdentity, unpick, useLabels } from "./label_store";

/** Puts an answer on the list of those to label, or takes it off. */
export function LabelThis({
  run,
  task,
  id,
  draw,
}: {
  run: RunInfo;
  task: string;
  id: string;
  draw: number;
}) {
  useLabels();
  const item = { run: runIdentity(run), task, id, draw };
  const there = isPicked(item);
  return (
    <span class="label-this">
      <button
        type="button"
        aria-pressed={there}
        onClick={() => (there ? unpick(item) : pick(item))}
      >
        Label this
      </button>
      {there && (
        <>
          {" "}
          <a href={links.labels()}>Added to Labels</a>
        </>
      )}
    </span>
  );
}
