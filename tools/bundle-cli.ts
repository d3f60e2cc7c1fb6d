import { readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import process from "node:process";
import { build, type BuildOptions, type Metafile } from "esbuild";
import { buildInspector } from "./build-inspector.ts";
import { directImports } from "./direct-imports.ts";
import { leanBuiltins } from "./lean-builtins.ts";

/** What stays beside the bundle: it holds a binary for each platform, which no bundle can. */
export const externalPackages: readonly string[] = ["better-sqlite3"];

/** What a package asks for only where somebody has installed it. */
const optionalPackages: readonly string[] = ["pg-native", "@huggingface/transformers"];

/** A program for Node, from its sources. */
export const nodeProgram: BuildOptions = {
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node22.18",
  conditions: ["@throughline/source"],
  logLevel: "warning",
  external: [...externalPackages, ...optionalPackages],
  // Libraries in the older module format call `require` for Node's own modules, which an ES module does not have.
  banner: {
    js: 'import { createRequire as throughlineCreateRequire } from "node:module"; const require = throughlineCreateRequire(import.meta.url);',
  },
};

const shared = {
  ...nodeProgram,
  legalComments: "eof",
  // Beside the bundle, and not in what is published.
  sourcemap: "external",
  metafile: true,
  plugins: [leanBuiltins, directImports],
} satisfies BuildOptions;

/**
 * Bundles the command line in `folder` into `outdir`. One entry, a chunk for each action that is loaded on use (120
 * single files cost 34 ms at every start, a bundle 1.4 ms). The page lies beside it in `inspect`. Gives the folders of the
 * packages of others that are in both.
 */
export async function bundleCli(folder: string, outdir: string = join(folder, "dist")): Promise<readonly string[]> {
  rmSync(outdir, { recursive: true, force: true });
  const { metafile } = await build({
    ...shared,
    entryPoints: [join(folder, "src/main.ts")],
    outdir,
    splitting: true,
    chunkNames: "chunks/[name]-[hash]",
  });
  assertNoThreadFiles(metafile);
  const foreign = Object.keys(metafile.inputs).flatMap((path) => {
    const found = /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(path);
    return found === null ? [] : [resolve(found[0])];
  });
  const page = await buildInspector(join(outdir, "inspect"));
  return [...new Set([...foreign, ...page.foreign])];
}

/** No bundle has the file that a thread is started from by its URL, and a bundler says nothing. @throws {Error} for such a source */
function assertNoThreadFiles({ inputs }: Metafile): void {
  for (const path of Object.keys(inputs).filter((name) => isOurs(name)))
    if (/\bnew Worker\((?!\w+, \{ eval: true\b)/.test(readFileSync(path, "utf8")))
      throw new Error(`${path} starts a thread from a file, which the bundle does not have.`);
}

function isOurs(input: string): boolean {
  return input.endsWith(".ts") && !/[\\/]node_modules[\\/]/.test(input);
}

if (import.meta.main) await bundleCli(process.cwd());
