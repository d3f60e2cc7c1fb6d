// Resuming a compacted session by its window: with the index, with every derived file deleted, and how flat it is.
// Rebuilding 10,000 messages against reading and parsing the same bytes. Each figure in a process of its own.
// node --conditions=@throughline/source benchmarks/jsonl-resume.ts [megabytes of the large session]
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { SessionRef } from "../packages/core/src/index.ts";
import { attachEnvelope } from "../packages/openclaw-format/src/index.ts";
import { createJsonlStore } from "../packages/store-jsonl/src/index.ts";

const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:long" };
const [mode = "all", root = "", argument = ""] = process.argv.slice(2);

if (mode === "resume") await resume(root);
else if (mode === "rebuild") await rebuild(root, argument);
else await main(Number(mode === "all" ? 200 : mode));

async function resume(store: string): Promise<void> {
  const rssBefore = process.memoryUsage.rss();
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  await using handle = createJsonlStore({ root: store, sessionsJson: false });
  const state = await handle.load(ref);
  let count = 0;
  for await (const { records } of handle.read(ref, { afterSeq: (state?.head.windowSeq ?? 1) - 1 }))
    count += records.length;
  const tookMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(cpuBefore);
  const rssMb = (process.memoryUsage.rss() - rssBefore) / 2 ** 20;
  process.stdout.write(
    JSON.stringify({ tookMs, cpuMs: (user + system) / 1000, rssMb, count, messages: state?.messageCount }),
  );
}

async function rebuild(store: string, which: string): Promise<void> {
  const path = join(store, "agents/main/sessions/long.jsonl");
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
    const handle = createJsonlStore({ root: store, sessionsJson: false, index: false });
    for await (const { records } of handle.read(ref)) count += records.length;
  }
  process.stdout.write(JSON.stringify({ tookMs: performance.now() - startMs, count }));
}

/** A transcript of so many bytes as the store writes it, its window the last 1.5 MB. */
async function makeSession(store: string, sizeBytes: number): Promise<void> {
  await using handle = createJsonlStore({ root: store, sessionsJson: false });
  await handle.save(ref, { sessionId: "long" }, { ifRevision: null });
  const path = join(store, "agents/main/sessions/long.jsonl");
  const content = "x".repeat(700);
  const timestamp = "2026-01-02T03:04:05.006Z";
  let seq = 0;
  for (let written = 0; written < sizeBytes - 1_500_000;) {
    const lines: string[] = [];
    for (let each = 0; each < 2000; each++) {
      const parentId = seq === 0 ? null : `r${seq}`;
      const record = { type: "message", id: `r${++seq}`, parentId, timestamp, message: { role: "user", content } };
      lines.push(attachEnvelope(JSON.stringify(record), { seq, at: 1_767_323_045_006 }));
    }
    const text = `${lines.join("\n")}\n`;
    appendFileSync(path, text);
    written += text.length;
  }
  const draft = { type: "message", message: { role: "user", content } };
  await handle.append(ref, [draft], { windowFromSeq: seq + 1, durability: "process" });
  for (let each = 0; each < 1500; each += 100)
    await handle.append(
      ref,
      Array.from({ length: 100 }, () => draft),
      { durability: "process" },
    );
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

function run(...args: readonly string[]): Figures {
  const options = ["--conditions=@throughline/source", import.meta.filename, ...args];
  return JSON.parse(execFileSync(process.execPath, options).toString()) as Figures;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

async function main(megabytes: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-bench-"));
  try {
    const took: number[] = [];
    for (const size of [10, megabytes]) {
      const store = join(folder, `s${size}`);
      await makeSession(store, size * 1_000_000);
      const bytes = statSync(join(store, "agents/main/sessions/long.jsonl")).size;
      const warm: Figures[] = [];
      const bare: Figures[] = [];
      run("resume", store);
      for (let round = 0; round < 7; round++) warm.push(run("resume", store));
      for (let round = 0; round < 7; round++) {
        deleteDerived(store);
        bare.push(run("resume", store));
      }
      took.push(median(warm.map(({ tookMs }) => tookMs)));
      process.stdout.write(
        `resume, ${(bytes / 1e6).toFixed(0)} MB, window of 1.5 MB: ${took.at(-1)?.toFixed(1)} ms and ` +
          `${median(warm.map(({ rssMb = 0 }) => rssMb)).toFixed(0)} MB (at most 20 and 100); nothing derived: ` +
          `${median(bare.map(({ tookMs }) => tookMs)).toFixed(1)} ms (at most 60); of the processor ` +
          `${median(warm.map(({ cpuMs = 0 }) => cpuMs)).toFixed(1)} and ${median(bare.map(({ cpuMs = 0 }) => cpuMs)).toFixed(1)} ms\n`,
      );
    }
    process.stdout.write(`large over small: ${((took[1] ?? 0) / (took[0] ?? 1)).toFixed(2)} (at most 1.5)\n`);
    const small = join(folder, "s10");
    const [ours, control]: [number[], number[]] = [[], []];
    for (let round = 0; round < 7; round++) {
      control.push(run("rebuild", small, "control").tookMs);
      ours.push(run("rebuild", small, "store").tookMs);
    }
    process.stdout.write(
      `read all of 10 MB over readFile and JSON.parse: ${(median(ours) / median(control)).toFixed(2)} (at most 1.2)\n`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
