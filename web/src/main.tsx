import { render } from "preact";
import "./style.css";
import { openData } from "./data/open";
import type { Page } from "./pages";
import { SamplePage } from "./sample/page";
import { SearchPage } from "./samples/everywhere";
import { SamplesPage } from "./samples/page";
import { StepsPage } from "./transcript/beside";
import { LivePage } from "./transcript/live";
import { App } from "./shell/app";
import { pages as views } from "./views/pages";

const pages: Page[] = [
  ...views,
  { pattern: "search", title: () => "Search", component: SearchPage },
  { pattern: "run/RUN/samples", title: ({ RUN }) => `Samples of ${RUN}`, component: SamplesPage },
  {
    pattern: "run/RUN/sample/TASK/ID/DRAW",
    title: ({ ID, RUN }) => `${ID} · ${RUN}`,
    component: SamplePage,
  },
  { pattern: "run/RUN/live", title: ({ RUN }) => `Live: ${RUN}`, component: LivePage },
  {
    pattern: "steps/A/FIRST/B/SECOND/TASK/ID",
    title: ({ ID }) => `${ID}, step by step`,
    component: StepsPage,
  },
];

const root =
  document.getElementById("app") ?? document.body.appendChild(document.createElement("div"));
root.textContent = "";
render(<p class="opening">Reading the runs…</p>, root);
openData().then(
  (data) => render(<App data={data} pages={pages} />, root),
  (error: unknown) =>
    render(
      <main class="page">
        <h1>The runs could not be read</h1>
        <p class="note">{error instanceof Error ? error.message : String(error)}</p>
      </main>,
      root,
    ),
);
