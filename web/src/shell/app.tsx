/**
 * The frame of every page: where one is, the pages beside it, keys, and the line that says what
 * happened.
 */
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Catalog, Data, RunInfo } from "../data/api";
import { findRun, links, type Page, route, runAddress } from "../pages";
import { plain } from "../text/special";
import { Line } from "../text/text";
import { copy, onMessage } from "./copy";
import { Help } from "./help";
import { listenToKeys, useKeys } from "./keys";
import { ThemeButton } from "./theme";

/** What the address names, or that before: "#main" is a place in the page that is shown. */
const pageAddress = (before: string) => (location.hash === "#main" ? before : location.hash);

/** Pages that are about all runs. */
const PLAIN_PAGES = [
  ["search", "Search"],
  ["plots", "Plots"],
  ["labels", "Labels"],
] as const;

/**
 * The address of what is shown, for other people: without the key that `evalwright view` asks of
 * this browser alone.
 */
const copyLink = () => copy(location.href, "Link");

export function App({ data, pages }: { data: Data; pages: Page[] }) {
  const [hash, setHash] = useState(pageAddress(""));
  const [, changed] = useState(0);
  const [message, setMessage] = useState("");
  const [help, setHelp] = useState(false);
  const main = useRef<HTMLElement>(null);

  const go = useCallback((to: string, replace = false) => {
    if (to === location.hash) return;
    if (replace) history.replaceState(null, "", to);
    else location.hash = to;
    setHash(to);
  }, []);

  useLayoutEffect(() => {
    const moved = () => setHash(pageAddress);
    window.addEventListener("hashchange", moved);
    const quiet = listenToKeys();
    const still = data.onChange(() => changed((old) => old + 1));
    let timer = 0;
    onMessage((text) => {
      setMessage(text);
      clearTimeout(timer);
      timer = window.setTimeout(() => setMessage(""), 4000);
    });
    return () => {
      window.removeEventListener("hashchange", moved);
      quiet();
      still();
    };
  }, []);

  useKeys([
    { keys: ["c"], does: "Copy the link to what is shown", run: () => void copyLink() },
    { keys: ["b"], does: firstPageName(data.catalog), run: () => go(links.first()) },
    { keys: ["?"], does: "These keys", run: () => setHelp(true) },
  ]);

  const match = useMemo(() => route(pages, hash), [pages, hash]);
  // A page is made anew when its address names something else; a changed query is the page's own
  // matter.
  const pageKey = match ? JSON.stringify([match.page.pattern, { ...match.parameters }]) : hash;
  const scrolled = useRef(pageKey);
  // Before the page's own effects, some of which bring a part of it into view.
  useLayoutEffect(() => {
    if (scrolled.current !== pageKey) window.scrollTo(0, 0);
    scrolled.current = pageKey;
  }, [pageKey]);
  const before = useRef(pageKey);
  useEffect(() => {
    document.title = plain(
      [match?.page.title(match.parameters, data), data.catalog.title].filter(Boolean).join(" · "),
    );
    if (before.current === pageKey) return;
    before.current = pageKey;
    // Those who hear the page are told that it is another one; the page itself may already have put
    // the focus where it belongs.
    if (!main.current?.contains(document.activeElement))
      main.current?.focus({ preventScroll: true });
  });

  const name = match?.parameters.RUN;
  const run = name === undefined ? undefined : findRun(data.catalog, name);
  const PageComponent = match?.page.component;
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => (event.preventDefault(), main.current?.focus())}
      >
        Skip to the content
      </a>
      <header class="shell">
        <a class="shell-title" href={links.first()}>
          <Line value={data.catalog.title} />
        </a>
        <nav aria-label="Pages">
          <a href={links.first()} aria-current={match?.page.pattern === "" ? "page" : undefined}>
            {firstPageName(data.catalog)}
          </a>
          {PLAIN_PAGES.filter(([path]) => path !== "search" || data.catalog.runs.length > 1).map(
            ([path, name]) => (
              <a
                href={`#/${path}`}
                aria-current={match?.page.pattern === path ? "page" : undefined}
              >
                {name}
              </a>
            ),
          )}
        </nav>
        <div class="shell-does">
          <ThemeButton />
          <button type="button" onClick={copyLink}>
            Copy link
          </button>
          <button type="button" onClick={() => setHelp(true)} aria-haspopup="dialog">
            Keys
          </button>
        </div>
      </header>
      {run && <RunBar data={data} run={run} pattern={match?.page.pattern ?? ""} />}
      <main id="main" ref={main} tabIndex={-1}>
        {name !== undefined && !run ? (
          <MissingPage>
            This page holds no run called <Line value={name} />. It holds: <RunList data={data} />
          </MissingPage>
        ) : match && PageComponent ? (
          <PageComponent
            key={pageKey}
            data={data}
            parameters={match.parameters}
            query={match.query}
            go={go}
          />
        ) : (
          <MissingPage>
            This address leads nowhere. It may come from a newer version. Open the{" "}
            <a href={links.first()}>first page</a>.
          </MissingPage>
        )}
      </main>
      <p class="message" role="status" aria-live="polite">
        {message}
      </p>
      {help && <Help close={() => setHelp(false)} />}
    </>
  );
}

function firstPageName(catalog: Catalog): string {
  if (catalog.chosenFromFolder) return "All runs";
  return catalog.runs.length > 1 ? "Board" : "Overview";
}

function MissingPage({ children }: { children: preact.ComponentChildren }) {
  return (
    <div class="page">
      <h1>Not found</h1>
      <p class="note">{children}</p>
    </div>
  );
}

const RunList = ({ data }: { data: Data }) => (
  <>
    {data.catalog.runs.slice(0, 50).map((run, index) => (
      <>
        {index ? ", " : ""}
        <a href={links.run(runAddress(data.catalog, run))}>
          <Line value={run.name} />
        </a>
      </>
    ))}
  </>
);

/** What there is about one run. */
function RunBar({ data, run, pattern }: { data: Data; run: RunInfo; pattern: string }) {
  const address = runAddress(data.catalog, run);
  const others = data.catalog.runs.filter((otherRun) => otherRun.key !== run.key);
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event) => {
      if (menu.current && !menu.current.contains(event.target as Node)) menu.current.open = false;
    };
    document.addEventListener("pointerdown", close);
    return () => document.removeEventListener("pointerdown", close);
  }, []);
  return (
    <nav class="runbar" aria-label="This run">
      <span class="runbar-name">
        <Line value={run.label || run.name} />
      </span>
      <a href={links.run(address)} aria-current={pattern === "run/RUN" ? "page" : undefined}>
        Summary
      </a>
      <a
        href={links.samples(address)}
        aria-current={pattern === "run/RUN/samples" ? "page" : undefined}
      >
        Samples
      </a>
      {(run.state === "running" || data.liveRuns().includes(run.key)) && data.served && (
        <a
          href={links.live(address)}
          aria-current={pattern === "run/RUN/live" ? "page" : undefined}
        >
          Live
        </a>
      )}
      {others.length > 0 && (
        <details class="menu" ref={menu}>
          <summary>Compare with</summary>
          <ul onClick={() => menu.current && (menu.current.open = false)}>
            {others.slice(0, 60).map((otherRun) => (
              <li>
                <a href={links.compare(address, runAddress(data.catalog, otherRun))}>
                  <Line value={otherRun.label || otherRun.name} />
                </a>
              </li>
            ))}
          </ul>
        </details>
      )}
    </nav>
  );
}
