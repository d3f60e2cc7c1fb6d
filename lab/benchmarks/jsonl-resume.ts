// Resuming a compacted session by its window: with the index, with every derived file deleted, and how flat it is.
// Rebuilding 10,000 messages against reading and parsing the same bytes. Each figure in a process of its own, which runs
// the store as a bundle with V8's compile cache, as the command line does; what sources cost beside it is said.
// node --conditions=@throughline/source lab/benchmarks/jsonl-resume.ts [megabytes of the large session]
// The default of 200 takes about a minute; the target is said for a million messages: 1000, with 2 GB free for the files.
import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";
import { leanBuiltins } from "../../tools/lean-builtins.ts";
import { longPath, longRef, makeLongTranscript } from "./long-transcript.ts";
import { median } from "../../benchmarks/measure.ts";

const [mode = "all", root = "", argument = ""] = process.argv.slice(2);

if (mode === "resume") await resume(root);
else if (mode === "parse") parseWindow(root);
else if (mode === "list") await listAll(root);
else if (mode === "rebuild") await rebuild(root, argument);
else await main(Number(mode === "all" ? 200 : mode));

async function resume(store: string): Promise<void> {
  const rssBefore = process.memoryUsage.rss();
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  await using handle = createJsonlStore({ root: store, sessionsJson: false });
  const state = await handle.load(longRef);
  let count = 0;
  for await (const { records } of handle.read(longRef, { afterSeq: (state?.head.windowSeq ?? 1) - 1 }))
    count += records.length;
  const tookMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(cpuBefore);
  const rssMb = (process.memoryUsage.rss() - rssBefore) / 2 ** 20;
  process.stdout.write(
    JSON.stringify({ tookMs, cpuMs: (user + system) / 1000, rssMb, count, messages: state?.messageCount }),
  );
}

/** Makes the index again. */
async function listAll(store: string): Promise<void> {
  await using handle = createJsonlStore({ root: store, sessionsJson: false });
  const { sessions } = await handle.list();
  process.stdout.write(JSON.stringify({ tookMs: 0, count: sessions.length }));
}

/** What a resume cannot do without, by itself: the window's bytes, read and parsed. */
function parseWindow(store: string): void {
  const startMs = performance.now();
  const bytes = readFileSync(join(store, "window.jsonl"));
  let count = 0;
  for (let from = 0; from < bytes.length; count++) {
    const end = bytes.indexOf(0x0a, from);
    JSON.parse(bytes.toString("utf8", from, end));
    from = end + 1;
  }
  process.stdout.write(JSON.stringify({ tookMs: performance.now() - startMs, count }));
}

async function rebuild(store: string, which: string): Promise<void> {
  const path = join(store, longPath);
  const startMs = performance.now();
  let count = 0;
  if (which === "control") {
    const bytes = readFileSync(path);
    for (let from = 0; from < bytes.length;) {
      const end = bytes.indexOf(0x0a, from);
      if (JSON.parse(bytes.toString("utf8", from, end)) !== null) count++;
      from = end + 1;
    }
  } else {
    const handle = createJsonlStore({ root: store, sessionsJson: false, index: which === "indexed" });
    for await (const { records } of handle.read(longRef)) count += records.length;
  }
  process.stdout.write(JSON.stringify({ tookMs: performance.now() - startMs, count }));
}

/** The session, and beside it a copy of its window. */
async function makeSession(store: string, sizeBytes: number): Promise<void> {
  const windowAt = await makeLongTranscript(store, sizeBytes);
  const path = join(store, longPath);
  const window = Buffer.alloc(statSync(path).size - windowAt);
  const file = openSync(path, "r");
  readSync(file, window, 0, window.length, windowAt);
  closeSync(file);
  writeFileSync(join(store, "window.jsonl"), window);
}

/** This file and the store as one file each process loads, and the line that starts it. */
async function bundle(folder: string): Promise<string> {
  const { build } = await import("esbuild");
  await build({
    entryPoints: [import.meta.filename],
    outfile: join(folder, "bundle.mjs"),
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node22.18",
    conditions: ["@throughline/source"],
    external: ["esbuild"],
    plugins: [leanBuiltins],
    logLevel: "warning",
  });
  const cache = JSON.stringify(join(folder, "compile-cache"));
  const start = `import { enableCompileCache } from "node:module";\nenableCompileCache(${cache});\nawait import("./bundle.mjs");\n`;
  writeFileSync(join(folder, "start.mjs"), start);
  return join(folder, "start.mjs");
}

function deleteDerived(store: string): void {
  for (const name of ["index.db", "index.db-wal", "index.db-shm"])
    rmSync(join(store, "agents/main/throughline", name), { force: true });
}

interface Figures {
  readonly tookMs: number;
  /** Of the processor, all threads: what is left to compare on a machine that others use. */
  readonly cpuMs?: number;
  readonly rssMb?: number;
  readonly count: number;
}

function run(program: string, ...args: readonly string[]): Figures {
  const options = ["--conditions=@throughline/source", program, ...args];
  return JSON.parse(execFileSync(process.execPath, options).toString()) as Figures;
}

/** A session of one size, and what was seen of it. */
interface Case {
  readonly store: string;
  readonly bytes: number;
  readonly warm: Figures[];
  readonly sources: Figures[];
  readonly parsed: Figures[];
  readonly bare: Figures[];
}

async function makeCase(folder: string, megabytes: number): Promise<Case> {
  const store = join(folder, `s${megabytes}`);
  await makeSession(store, megabytes * 1_000_000);
  return { store, bytes: statSync(join(store, longPath)).size, warm: [], sources: [], parsed: [], bare: [] };
}

/** The two sizes take turns, so that a slow moment of the machine meets both. */
function measure(program: string, cases: readonly Case[]): void {
  for (const { store } of cases) run(program, "resume", store);
  for (let round = 0; round < 7; round++)
    for (const { store, warm, sources, parsed } of cases) {
      parsed.push(run(program, "parse", store));
      warm.push(run(program, "resume", store));
      sources.push(run(import.meta.filename, "resume", store));
    }
  for (let round = 0; round < 7; round++)
    for (const { store, bare } of cases) {
      deleteDerived(store);
      bare.push(run(program, "resume", store));
    }
}

function describeCase({ bytes, warm, sources, parsed, bare }: Case): string {
  const ms = (figures: readonly Figures[]): string => median(figures.map(({ tookMs }) => tookMs)).toFixed(1);
  const cpu = (figures: readonly Figures[]): string => median(figures.map(({ cpuMs = 0 }) => cpuMs)).toFixed(1);
  return (
    `resume, ${(bytes / 1e6).toFixed(0)} MB, window of 1.5 MB: ${ms(warm)} ms and ` +
    `${median(warm.map(({ rssMb = 0 }) => rssMb)).toFixed(0)} MB (at most 20 and 100), from sources ${ms(sources)}; ` +
    `nothing derived: ${ms(bare)} ms (at most 60); of the processor ${cpu(warm)} and ${cpu(bare)} ms; ` +
    `the window read and parsed by itself: ${ms(parsed)} ms\n`
  );
}

async function main(megabytes: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-bench-"));
  try {
    const program = await bundle(folder);
    const cases = [await makeCase(folder, 10), await makeCase(folder, megabytes)];
    measure(program, cases);
    for (const each of cases) process.stdout.write(describeCase(each));
    const [shortMs = 1, longMs = 0] = cases.map(({ warm }) => median(warm.map(({ tookMs }) => tookMs)));
    process.stdout.write(`large over small: ${(longMs / shortMs).toFixed(2)} (at most 1.5)\n`);
    const small = join(folder, "s10");
    const ours: Record<string, number[]> = { control: [], store: [], indexed: [] };
    run(program, "list", small);
    for (let round = 0; round < 7; round++)
      for (const which of Object.keys(ours)) ours[which]?.push(run(program, "rebuild", small, which).tookMs);
    const ratio = (which: string): string => (median(ours[which] ?? []) / median(ours["control"] ?? [])).toFixed(2);
    process.stdout.write(
      `read all of 10 MB over readFile and JSON.parse: ${ratio("indexed")} (at most 1.2), without the index ${ratio("store")}\n`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
