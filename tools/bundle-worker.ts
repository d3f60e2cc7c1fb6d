import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { join, relative } from "node:path";
import process from "node:process";
import { buildSync } from "esbuild";
import { externalPackages } from "./bundle-cli.ts";

const root = join(import.meta.dirname, "..");

/**
 * One file of a program that a test starts many times, with everything it imports: its start takes a third of the
 * processor time of a start from hundreds of source files. It lies where the packages that stay outside are found.
 *
 * @param path the program's source
 * @returns the path of the bundle, made again in each process that asks
 */
export function bundledWorker(path: string): string {
  const name = relative(root, path);
  const hash = createHash("sha256").update(`${name}\0${process.pid}`).digest("hex").slice(0, 12);
  const outfile = join(root, "apps/cli/node_modules/.cache/test-workers", `${hash}.mjs`);
  buildSync({
    entryPoints: [path],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node22.18",
    conditions: ["@throughline/source"],
    external: [...externalPackages, "koffi", "*.node"],
    logLevel: "warning",
    // Libraries in the older module format call `require` for Node's own modules, which an ES module does not have.
    banner: {
      js: 'import { createRequire as workerCreateRequire } from "node:module"; const require = workerCreateRequire(import.meta.url);',
    },
  });
  process.once("exit", () => rmSync(outfile, { force: true }));
  return outfile;
}
