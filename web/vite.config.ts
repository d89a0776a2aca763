import { defineConfig } from "vite";

/* One script and one style, with fixed names: a page carries both and allows them by their hashes. */
export default defineConfig({
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
