import { readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { build, type BuildOptions, type Metafile } from "esbuild";
import { directImports } from "./direct-imports.ts";
import { leanBuiltins } from "./lean-builtins.ts";

/**
 * What stays beside the bundle. The first holds a binary for each platform, which no bundle can. The others are the
 * packages of databases and providers: a run needs one of them, most runs none.
 */
export const externalPackages: readonly string[] = ["better-sqlite3", "pg", "@anthropic-ai/sdk", "openai", "ollama"];

/** A program for Node, from its sources. */
export const nodeProgram: BuildOptions = {
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node22.18",
  conditions: ["@throughline/source"],
  logLevel: "warning",
  external: [...externalPackages],
  // Libraries in the older module format call `require` for Node's own modules, which an ES module does not have.
  banner: {
    js: 'import { createRequire as throughlineCreateRequire } from "node:module"; const require = throughlineCreateRequire(import.meta.url);',
  },
};

const shared = {
  ...nodeProgram,
  legalComments: "eof",
  sourcemap: true,
  metafile: true,
  plugins: [leanBuiltins, directImports],
} satisfies BuildOptions;

/**
 * Bundles the command line in `folder` into `outdir`. One entry, a chunk for each action that is loaded on use (120
 * single files cost 34 ms at every start, a bundle 1.4 ms), and a file for each thread that one of them starts.
 */
export async function bundleCli(folder: string, outdir: string = join(folder, "dist")): Promise<void> {
  rmSync(outdir, { recursive: true, force: true });
  const { metafile } = await build({
    ...shared,
    entryPoints: [join(folder, "src/main.ts")],
    outdir,
    splitting: true,
    chunkNames: "chunks/[name]-[hash]",
  });
  await bundleThreads(metafile, new Set());
}

/**
 * Threads are started by the URL of a file beside the one that starts them, which is no import: a bundler leaves such a
 * file out and says nothing. Each is made where the output that names it looks for it, whole in itself, so that it does
 * not cut the chunks of everything else into more files.
 */
async function bundleThreads({ outputs }: Metafile, made: Set<string>): Promise<void> {
  for (const [output, { inputs }] of Object.entries(outputs)) {
    for (const input of Object.keys(inputs).filter((path) => isOurs(path))) {
      for (const source of threadsOf(resolve(input))) {
        const outfile = join(dirname(resolve(output)), source.replace(/^.*[\\/]/, "").replace(/\.ts$/, ".js"));
        if (made.has(outfile)) continue;
        made.add(outfile);
        const { metafile } = await build({ ...shared, entryPoints: [source], outfile });
        await bundleThreads(metafile, made);
      }
    }
  }
}

function isOurs(input: string): boolean {
  return input.endsWith(".ts") && !/[\\/]node_modules[\\/]/.test(input);
}

/**
 * The files of the threads that a source names.
 * @throws {Error} where a thread is started by anything but the URL of a file: the bundle would lack it
 */
export function threadsOf(path: string): string[] {
  const text = readFileSync(path, "utf8");
  const threads = [...text.matchAll(/new URL\(\s*"(\.{1,2}\/[^"]+\.ts)",\s*import\.meta\.url\s*,?\s*\)/g)];
  if (threads.length === 0 && /\bnew Worker\(/.test(text))
    throw new Error(`${path} starts a thread and does not name it as new URL("./<file>.ts", import.meta.url)`);
  return threads.map(([, name = ""]) => resolve(dirname(path), name));
}

if (import.meta.main) await bundleCli(process.cwd());
