import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, extname, join, relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "vite";
import { repositoryRoot } from "./find-files.ts";

/** One file of the page, as `files.json` lists it. The server serves these files and no others. */
export interface PageFile {
  /** Is the path below `/inspect/`, with `/` between its parts. */
  readonly name: string;
  readonly type: string;
  readonly bytes: number;
  readonly sha256: string;
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

interface BuiltPage {
  readonly files: readonly PageFile[];
  /** Lists the folders of the packages of others that are in the page. */
  readonly foreign: readonly string[];
}

/**
 * Builds the page of `apps/inspector` into `outdir`: hashed files, each with its gzip form beside it, and `files.json`.
 */
export async function buildInspector(outdir: string): Promise<BuiltPage> {
  const folder = join(repositoryRoot, "apps/inspector");
  rmSync(outdir, { recursive: true, force: true });
  const built = await build({
    root: join(folder, "src"),
    base: "/inspect/",
    configFile: false,
    publicDir: false,
    // A warning would be about times. What is wrong throws.
    logLevel: "error",
    resolve: { conditions: ["@throughline/source", "module", "browser", "production"] },
    // Without `development`, NODE_ENV=test writes the place of each element in the source into the page.
    oxc: { jsx: { runtime: "automatic", importSource: "preact", development: false } },
    build: {
      outDir: outdir,
      emptyOutDir: true,
      target: "es2023",
      assetsDir: ".",
      // A font or picture in a data: address would need an exception in the policy.
      assetsInlineLimit: 0,
      cssCodeSplit: false,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
    },
  });
  const outputs = Array.isArray(built) ? built : [built];
  const modules = outputs.flatMap((output) =>
    "output" in output ? output.output.flatMap((part) => (part.type === "chunk" ? part.moduleIds : [])) : [],
  );
  return { files: writeList(outdir), foreign: foreignFolders(modules) };
}

function writeList(outdir: string): readonly PageFile[] {
  const files = readdirSync(outdir, { recursive: true, encoding: "utf8" })
    .map((name) => name.replaceAll("\\", "/"))
    .filter((name) => extname(name) !== "")
    .toSorted()
    .map((name): PageFile => {
      const type = types[extname(name)];
      if (type === undefined) throw new Error(`The page has a file of an unknown type: ${name}.`);
      const content = readFileSync(join(outdir, name));
      writeFileSync(join(outdir, `${name}.gz`), gzipSync(content, { level: 9 }));
      return { name, type, bytes: content.length, sha256: createHash("sha256").update(content).digest("hex") };
    });
  mkdirSync(dirname(join(outdir, "files.json")), { recursive: true });
  writeFileSync(join(outdir, "files.json"), `${JSON.stringify(files, null, 1)}\n`);
  return files;
}

function foreignFolders(modules: readonly string[]): readonly string[] {
  const found = modules.flatMap((path) => {
    const folder = /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(path);
    return folder === null ? [] : [resolve(folder[0])];
  });
  return [...new Set(found)];
}

if (import.meta.main) {
  const outdir = join(repositoryRoot, "apps/cli/dist/inspect");
  const { files } = await buildInspector(outdir);
  for (const { name, bytes } of files) {
    const gzip = readFileSync(join(outdir, `${name}.gz`)).length;
    process.stdout.write(`${relative(repositoryRoot, join(outdir, name))}  ${bytes} bytes, ${gzip} gzip\n`);
  }
}
