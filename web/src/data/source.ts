/** Where the packed parts come from: elements of the page, or files and a server. */

export interface Source {
  /**
   * A part, packed; `generation` tells readings of a growing run apart. Rejects where there is
   * none, in words for a person.
   */
  part(key: string, generation?: number): Promise<Uint8Array>;
  /** Whether there is such a part; null where only asking for it tells. */
  has(key: string): boolean | null;
}

export class MissingPart extends Error {}

/**
 * Parts that stand in the page as base64. While the browser still reads the page, later ones are
 * waited for.
 */
export class Embedded implements Source {
  private waiting: { key: string; go: () => void }[] = [];
  private ended: boolean;
  private damaged = false;

  constructor(private decode: (text: string) => Uint8Array) {
    this.ended = document.readyState !== "loading";
    if (this.ended) {
      this.end();
      return;
    }
    const watcher = new MutationObserver(() => this.look());
    watcher.observe(document.body, { childList: true });
    document.addEventListener("DOMContentLoaded", () => {
      watcher.disconnect();
      this.end();
    });
  }

  has(key: string): boolean | null {
    return document.getElementById(key) ? true : this.ended ? false : null;
  }

  async part(key: string): Promise<Uint8Array> {
    const text = this.text(key) ?? (await this.later(key));
    if (text === null)
      throw new MissingPart(
        this.damaged
          ? "This file is damaged: its end is missing. Make it again."
          : `The file has no part ${key}.`,
      );
    return this.decode(text);
  }

  /** Whether the page is read to its end. */
  whenRead(): Promise<void> {
    return this.ended
      ? Promise.resolve()
      : new Promise((go) => this.waiting.push({ key: "end", go }));
  }

  private async later(key: string): Promise<string | null> {
    if (!this.ended) await new Promise<void>((go) => this.waiting.push({ key, go }));
    return this.text(key);
  }

  /** The text of an element that is there to its end. */
  private text(key: string): string | null {
    const element = document.getElementById(key);
    return element && (this.ended || element.nextElementSibling) ? element.textContent : null;
  }

  private end(): void {
    this.ended = true;
    this.damaged = !document.getElementById("end");
    for (const waiter of this.waiting.splice(0)) waiter.go();
  }

  private look(): void {
    const still = this.waiting.filter((waiter) => {
      const element = document.getElementById(waiter.key);
      if (!element?.nextElementSibling) return true;
      waiter.go();
      return false;
    });
    this.waiting = still;
  }
}

/** Parts that are files behind a web server, or made by `evalwright view`. */
export class Fetched implements Source {
  constructor(
    private root: string,
    private end: string,
  ) {}

  has(): null {
    return null;
  }

  async part(key: string, generation?: number): Promise<Uint8Array> {
    const query = generation === undefined ? "" : `?generation=${generation}`;
    let reply: Response;
    try {
      reply = await fetch(`${this.root}${key}${this.end}${query}`);
    } catch {
      throw new MissingPart(
        location.protocol === "file:"
          ? "A browser reads these files only from a web server. Start one in this folder: python -m http.server"
          : "The server of this page does not answer.",
      );
    }
    if (!reply.ok)
      throw new MissingPart(
        reply.status === 404
          ? `There is no part ${key}.`
          : `The server replied ${reply.status}: ${(await reply.text()).slice(0, 500)}`,
      );
    return new Uint8Array(await reply.arrayBuffer());
  }
}
