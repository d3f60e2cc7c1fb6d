import { join } from "node:path";
import type { BuildOptions } from "esbuild";

/** States how the Worker becomes one file. */
export const workerBundle: BuildOptions = {
  entryPoints: [join(import.meta.dirname, "../src/worker.ts")],
  bundle: true,
  minify: true,
  format: "esm",
  platform: "neutral",
  mainFields: ["module", "main"],
  conditions: ["@throughline/source", "workerd", "import"],
  external: ["node:*"],
};
