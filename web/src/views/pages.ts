import type { Page } from "../pages";
import { findRun } from "../pages";
import { BoardPage, FirstPage } from "./board";
import { ComparePage } from "./compare";
import { AnswersPage } from "./grid";
import { LabelsPage } from "./labels";
import { PlotsPage } from "./plots";
import { RunPage } from "./run";
import "./views.css";

/** The pages that are about runs; those of samples are in `samples/`. */
export const pages: Page[] = [
  { pattern: "", title: () => "", component: FirstPage },
  { pattern: "board", title: () => "Board", component: BoardPage },
  {
    pattern: "run/RUN",
    title: ({ RUN = "" }, data) => findRun(data.catalog, RUN)?.label || RUN,
    component: RunPage,
  },
  {
    pattern: "compare/A/B",
    title: ({ A = "", B = "" }) => `${A} and ${B}`,
    component: ComparePage,
  },
  { pattern: "answers", title: () => "Answers side by side", component: AnswersPage },
  { pattern: "plots", title: () => "Plots", component: PlotsPage },
  { pattern: "labels", title: () => "Labels", component: LabelsPage },
];
