import { execFile } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundleCli, externalPackages } from "../../../tools/bundle-cli.ts";
import { noticePages } from "../../../tools/third-party.ts";
import { cleanEnvironment, objects, seed, temporaryDirectory, user } from "./harness.ts";

const directory = temporaryDirectory();
const home = directory.path;
// As npm lays it out: the bundle and its entry, and none of our packages beside them.
const installed = join(home, "node_modules/@throughline/cli");
const packageRoot = join(import.meta.dirname, "..");

let bundled: readonly string[];

beforeAll(async () => {
  mkdirSync(installed, { recursive: true });
  for (const name of ["bin", "package.json"])
    cpSync(join(packageRoot, name), join(installed, name), { recursive: true });
  bundled = await bundleCli(packageRoot, join(installed, "dist"));
  // Dependencies of its own, which npm puts beside it.
  for (const name of externalPackages)
    symlinkSync(realpathSync(join(packageRoot, "node_modules", name)), join(home, "node_modules", name));
  await seed(home, [{ key: "notes", drafts: [user("hello")] }]);
});
afterAll(() => directory.remove());

/** Writes down at the end what was loaded: modules by URL, and Node's own by name. */
const spy = `
import { registerHooks } from "node:module";
import { writeFileSync } from "node:fs";
const loaded = [];
registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
process.on("exit", () => writeFileSync(process.env.SPY_FILE, JSON.stringify({ loaded, builtin: process.moduleLoadList })));
`;

interface Loaded {
  readonly stdout: string;
  /** Every module, by URL. */
  readonly loaded: readonly string[];
  readonly chunks: readonly string[];
  readonly builtin: readonly string[];
}

async function load(...args: readonly string[]): Promise<Loaded> {
  const spyPath = join(home, "spy.mjs");
  const spyFile = join(home, "loaded.json");
  writeFileSync(spyPath, spy);
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--import", spyPath, join(installed, "bin/throughline.js"), ...args],
    {
      env: cleanEnvironment(home, { SPY_FILE: spyFile, NODE_OPTIONS: "" }),
    },
  );
  const { loaded, builtin } = JSON.parse(readFileSync(spyFile, "utf8")) as { loaded: string[]; builtin: string[] };
  return {
    stdout,
    loaded,
    chunks: loaded.filter((url) => url.includes("/dist/")).map((url) => url.replace(/^.*\/dist\//, "")),
    builtin,
  };
}

/** What a chunk was made from: the source map names it. */
function sourcesOf(chunk: string): string[] {
  const { sources } = JSON.parse(readFileSync(join(installed, "dist", `${chunk}.map`), "utf8")) as {
    sources: string[];
  };
  return sources;
}

describe("the bundle", () => {
  it.each([[["--help"]], [["sessions"]], [["sessions", "--json"]]])(
    "loads for %s no schema library, no fetch and no model SDK",
    async (args) => {
      const { chunks, builtin } = await load(...args);
      const sources = chunks.flatMap(sourcesOf);
      expect(sources.length).toBeGreaterThan(10);
      for (const unwanted of [
        /\/zod\//,
        /openai/,
        /@anthropic-ai/,
        /ollama/,
        /vocabulary/,
        /packages\/(history|transfer|inspect|tokens|session|models|guard|workspace-tools)\//,
      ]) {
        expect(sources.filter((source) => unwanted.test(source))).toEqual([]);
      }
      expect(builtin.filter((name) => /undici|NativeModule (http|https|tls)$/.test(name))).toEqual([]);
      // A pipe as stdout loads `net`; that is not ours. One entry and a few chunks: each costs opening a file, less than half a millisecond.
      expect(chunks.length).toBeLessThanOrEqual(args[0] === "--help" ? 25 : 42);
    },
  );

  it("loads no store, no command and no child process for --help", async () => {
    const { chunks, builtin } = await load("--help");
    const sources = chunks.flatMap(sourcesOf);
    expect(builtin.filter((name) => /NativeModule (child_process|crypto|sqlite|zlib)$/.test(name))).toEqual([]);
    expect(sources.filter((source) => /packages\/store-|src\/commands\//.test(source))).toEqual([]);
  });

  it("loads the schema library when there is a configuration file", async () => {
    const file = join(home, "settings.json");
    writeFileSync(file, '{"agent":"main"}');
    const { chunks, stdout } = await load("config", "--config", file, "--json");
    expect(chunks.flatMap(sourcesOf).some((source) => source.includes("/zod/"))).toBe(true);
    expect(objects(stdout).at(-1)).toMatchObject({ kind: "end", count: objects(stdout).length - 1 });
  });

  it("loads one vocabulary for context, and none for what does not count", { tags: ["slow"] }, async () => {
    const vocabularies = async (...args: readonly string[]): Promise<readonly string[]> =>
      (await load(...args)).chunks
        .flatMap(sourcesOf)
        .flatMap((source) => /\/vocabulary\/([\w-]+)\.ts$/.exec(source)?.[1] ?? []);
    expect(await vocabularies("context", "notes", "--model", "openai/gpt-5")).toEqual(["o200k-base"]);
    expect(await vocabularies("show", "notes")).toEqual([]);
    expect(await vocabularies("sessions")).toEqual([]);
  });

  it("loads no model SDK for the offline rules", { tags: ["slow"] }, async () => {
    const { loaded } = await load("chat", "--key", "talk", "--once", "hello", "--model", "offline");
    expect(loaded.filter((url) => /node_modules\/(?:@anthropic-ai|openai|ollama)\//.test(url))).toEqual([]);
  });

  it("checks and copies a store that is read in a thread of its own", { tags: ["slow"] }, async () => {
    const big = join(home, "big.db");
    const drafts = Array.from({ length: 10 }, (_, index) => user(`${index} ${"lamp ".repeat(200_000)}`));
    await seed(home, [{ key: "long", drafts }], `sqlite:${big}`);
    // From this size on a file is no longer read in the thread that everything else waits for.
    expect(statSync(big).size).toBeGreaterThan(8 * 1024 * 1024);
    for (const args of [
      ["verify", "--full"],
      ["backup", join(home, "big-backup.db")],
    ]) {
      const { stdout } = await load(...args, "--store", `sqlite:${big}`, "--json");
      expect(objects(stdout).filter(({ kind }) => kind === "finding" || kind === "error")).toEqual([]);
    }
    expect(statSync(join(home, "big-backup.db")).size).toBeGreaterThan(8 * 1024 * 1024);
  });

  it(
    "loads the editor, Markdown and highlighting on use, and none of the editor's own screen",
    { tags: ["slow"] },
    async () => {
      const { chunks } = await load("chat", "--key", "talk", "--once", "hello", "--model", "offline");
      const unused = chunks.flatMap(sourcesOf).filter((source) => /\/(?:pi-tui|marked|highlight\.js)\//.test(source));
      expect(unused).toEqual([]);
      const all = readdirSync(join(installed, "dist/chunks")).filter((name) => name.endsWith(".js"));
      const sources = all.flatMap((name) => sourcesOf(`chunks/${name}`));
      expect(sources.some((source) => source.includes("/pi-tui/src/components/editor"))).toBe(true);
      expect(
        sources.filter((source) => /marked-cjk|pi-tui\/src\/(?:tui-|terminal|autocomplete|native)/.test(source)),
      ).toEqual([]);
      // The library of the editor depends on a Markdown lexer of its own.
      expect(new Set(sources.flatMap((source) => /\/(marked@[^/]+)\//.exec(source)?.[1] ?? []))).toHaveLength(1);
    },
  );

  it("draws the first prompt of a chat before the store, the editor, Markdown, diffs and the search of names are loaded", () => {
    const chunks = readdirSync(join(installed, "dist/chunks")).filter((name) => /^chat-[^.]+\.js$/.test(name));
    const found = new Set(["main.js", ...chunks.map((name) => `chunks/${name}`)]);
    // What is added while the set is walked is walked too.
    for (const chunk of found)
      for (const [, name = ""] of readFileSync(join(installed, "dist", chunk), "utf8").matchAll(
        /^(?:import|\}|export) ?[^;"]*"\.\/(?:chunks\/)?(chunk-[^"]+)";$/gm,
      ))
        found.add(`chunks/${name}`);
    const sources = [...found].flatMap(sourcesOf);
    expect(sources.some((source) => source.endsWith("chat/screen/live-terminal.ts"))).toBe(true);
    const late =
      /\/(?:pi-tui|marked|highlight\.js|diff|fzf|better-sqlite3)\/|packages\/(?:store-|session\/|transfer\/|history\/)/;
    expect(sources.filter((source) => late.test(source))).toEqual([]);
    expect(found.size).toBeLessThanOrEqual(30);
  });

  it("names all that others have made of it, with their terms", () => {
    expect(bundled.length).toBeGreaterThan(20);
    for (const [path, text] of Object.entries(noticePages(bundled)))
      expect(readFileSync(join(packageRoot, "../..", path), "utf8"), `tools/third-party.ts --write`).toBe(text);
  });

  it("runs on its own, without the packages it was made from", { tags: ["slow"] }, async () => {
    expect(readdirSync(join(home, "node_modules/@throughline"))).toEqual(["cli"]);
    expect(objects((await load("show", "notes", "--json")).stdout).map(({ kind }) => kind)).toEqual(["record", "end"]);
    expect(objects((await load("context", "notes", "--json")).stdout)[0]).toMatchObject({
      kind: "context",
      recordsInContext: 1,
    });
  });
});
