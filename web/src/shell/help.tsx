import { useEffect, useRef } from "preact/hooks";
import { keysNow } from "./keys";

const SHOWN: Record<string, string> = {
  ArrowDown: "↓",
  ArrowUp: "↑",
  ArrowLeft: "←",
  ArrowRight: "→",
  PageDown: "Page down",
  PageUp: "Page up",
  " ": "Space",
};

/** The keys that hold now. */
export function Help({ close }: { close(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class="help"
      aria-labelledby="help-title"
      onClose={close}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      <div class="help-inside">
        <h2 id="help-title">Keys</h2>
        <table>
          <tbody>
            {keysNow().map((key) => (
              <tr>
                <th scope="row">
                  {key.keys.map((name, index) => (
                    <>
                      {index ? " or " : ""}
                      <kbd>{SHOWN[name] ?? name}</kbd>
                    </>
                  ))}
                </th>
                <td>{key.does}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
