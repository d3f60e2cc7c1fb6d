import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";
import { nodeProgram } from "./bundle-cli.ts";

/** Where the packages that stay outside a bundle are found. */
const folder: string = join(import.meta.dirname, "../apps/cli/node_modules/.cache/test-workers");

/**
 * One file of a program that a test starts many times, with everything it imports: its start takes a third of the
 * processor time of a start from hundreds of source files.
 *
 * @param source the program's source, as `new URL("./name.ts", import.meta.url)`
 * @returns the path of the bundle, which has the hash of what it holds in its name
 */
export function bundledWorker(source: URL): string {
  const path = fileURLToPath(source);
  const { outputFiles } = buildSync({ ...nodeProgram, entryPoints: [path], outfile: "worker.mjs", write: false });
  const bytes = outputFiles?.[0]?.contents ?? new Uint8Array();
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  const outfile = join(folder, `${basename(path, ".ts")}-${hash}.mjs`);
  if (!existsSync(outfile)) {
    mkdirSync(folder, { recursive: true });
    // Other processes may be making it, too.
    const part = `${outfile}.${process.pid}`;
    writeFileSync(part, bytes);
    renameSync(part, outfile);
  }
  return outfile;
}
