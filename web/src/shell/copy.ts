/** Copying, and the line that says what happened. */

let say: (message: string) => void = () => undefined;

/** Who shows messages: the shell. */
export function onMessage(listener: (message: string) => void): void {
  say = listener;
}

export function announce(message: string): void {
  say(message);
}

/** Puts a text on the clipboard; a browser that refuses gets the older way. */
export async function copy(text: string, noun: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    const focused = document.activeElement;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (focused instanceof HTMLElement) focused.focus();
    if (!done) return say("The browser did not let this page copy.");
  }
  say(`${noun} copied.`);
}
