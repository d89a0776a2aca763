import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { defineConfig } from "vite";

/** The SHA-256 of everything that the build is made of, by which a machine without Node sees that the committed files are not stale. */
function sources(): string {
  const digest = createHash("sha256");
  const own = readdirSync("src", { recursive: true, encoding: "utf8" }).map((name) => `src/${name}`);
  const files = [...own.filter((name) => /\.(tsx?|css)$/.test(name)), "package.json", "tsconfig.json", "vite.config.ts"];
  for (const file of files.sort()) {
    digest.update(`${file}\0`).update(readFileSync(file)).update("\0");
  }
  return digest.digest("hex") + "\n";
}

/* One script and one style, with fixed names: a page carries both and allows them by their hashes. */
export default defineConfig({
  plugins: [
    {
      name: "sources",
      generateBundle() {
        this.emitFile({ type: "asset", fileName: "sources.sha256", source: sources() });
      },
    },
  ],
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    outDir: "../src/evalwright/reports/explorer/assets",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    rollupOptions: {
      input: "src/main.tsx",
      output: {
        format: "iife",
        entryFileNames: "explorer.js",
        assetFileNames: "explorer.[ext]",
      },
    },
  },
});
