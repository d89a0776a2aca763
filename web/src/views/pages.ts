import type { Page } from "../pages";

export const pages: Page[] = [];
