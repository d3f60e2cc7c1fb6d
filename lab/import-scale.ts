import { spawn } from "node:child_process";
import { createWriteStream, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { importPaths } from "../packages/transfer/src/index.ts";

/** A state directory of OpenClaw's, as large as is wanted and always the same. */
export interface ScalePlan {
  readonly sessions: number;
  /** In all; every session gets its share, from a tenth of the mean to about twice of it. */
  readonly records: number;
}

export interface ScaleTotals {
  readonly sessions: number;
  readonly records: number;
  readonly bytes: number;
}

/** What one import, or the rest of one, came to. */
export interface ScaleRun {
  readonly imported: number;
  readonly grown: number;
  readonly unchanged: number;
  readonly refused: number;
  readonly records: number;
  readonly lost: number;
  readonly seconds: number;
  /** Of the process, at its highest. */
  readonly peakRssMb: number;
  /** Killed with SIGKILL before its end. */
  readonly wasKilled: boolean;
}

export interface ScaleReport {
  readonly written: ScaleTotals;
  readonly runs: readonly ScaleRun[];
  /** Counted in the store afterwards. */
  readonly stored: { readonly sessions: number; readonly records: number; readonly bytes: number };
  readonly again: ScaleRun;
}

const agents = ["main", "work"];
const startMs = Date.parse("2026-01-01T00:00:00Z");

/** A number that follows from its place alone, so that every run writes the same bytes. */
function noise(place: number): number {
  let value = (place + 1) * 0x9e3779b1;
  value = Math.imul(value ^ (value >>> 15), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

function hex(value: number): string {
  return value.toString(16).padStart(8, "0");
}

function sessionIdAt(at: number): string {
  const tail = hex(at).padStart(12, "0");
  return `${hex(noise(at))}-0000-4000-8000-${tail}`;
}

function recordCounts({ sessions, records }: ScalePlan): readonly number[] {
  const mean = records / sessions;
  const counts = Array.from({ length: sessions }, (_, at) =>
    Math.max(1, Math.round(mean * (0.1 + (noise(at) % 1800) / 1000))),
  );
  // What the shares leave over or lack is spread, so that the total is exact.
  let rest = records - counts.reduce((sum, count) => sum + count, 0);
  for (let at = 0; rest !== 0; at = (at + 1) % sessions) {
    const step = rest > 0 ? 1 : (counts[at] ?? 0) > 1 ? -1 : 0;
    counts[at] = (counts[at] ?? 0) + step;
    rest -= step;
  }
  return counts;
}

/** One transcript: a header, which counts as a record, then messages, calls and results. */
function transcript(sessionId: string, at: number, count: number): string {
  const timestamp = (line: number): string => new Date(startMs + at * 1000 + line * 7).toISOString();
  const lines = [
    `{"type":"session","version":3,"id":"${sessionId}","timestamp":"${timestamp(0)}","cwd":"/srv/${at % 17}"}`,
  ];
  let parent = "null";
  for (let line = 1; line < count; line++) {
    const id = hex(noise(at * 1000 + line));
    const text = `Line ${line} of session ${at}: ${"words of a talk about files, ports and plans. ".repeat(1 + (noise(line) % 4))}`;
    const message =
      line % 4 === 1
        ? `{"role":"user","content":"${text}","timestamp":${startMs + line}}`
        : line % 4 === 2
          ? `{"role":"assistant","content":[{"type":"toolCall","id":"call_${id}","name":"read","arguments":{"path":"src/${line}.ts"}}],"usage":{"input":${line},"output":9,"cacheRead":0,"cacheWrite":0,"totalTokens":${line + 9}},"stopReason":"toolUse","timestamp":${startMs + line}}`
          : line % 4 === 3
            ? `{"role":"toolResult","toolCallId":"call_${hex(noise(at * 1000 + line - 1))}","toolName":"read","content":[{"type":"text","text":"${text}"}],"isError":false,"timestamp":${startMs + line}}`
            : `{"role":"assistant","content":[{"type":"text","text":"${text}"}],"stopReason":"stop","timestamp":${startMs + line}}`;
    lines.push(
      `{"type":"message","id":"${id}","parentId":${parent},"timestamp":"${timestamp(line)}","message":${message}}`,
    );
    parent = `"${id}"`;
  }
  return `${lines.join("\n")}\n`;
}

/** Writes the directory, one file at a time. */
export async function writeScaleDirectory(root: string, plan: ScalePlan): Promise<ScaleTotals> {
  const counts = recordCounts(plan);
  const folders = agents.map((agent) => join(root, "agents", agent, "sessions"));
  for (const folder of folders) mkdirSync(folder, { recursive: true });
  const indexes = folders.map((folder) => createWriteStream(join(folder, "sessions.json")));
  for (const index of indexes) index.write("{");
  const isFirst = agents.map(() => true);
  let bytes = 0;
  for (const [at, count] of counts.entries()) {
    const agent = at % 5 === 0 ? 1 : 0;
    const sessionId = sessionIdAt(at);
    const text = transcript(sessionId, at, count);
    writeFileSync(join(folders[agent] ?? "", `${sessionId}.jsonl`), text);
    bytes += text.length;
    const entry = { sessionId, updatedAt: startMs + at, channel: "telegram", lastTo: `user-${at}`, totalTokens: at };
    const key = `agent:${agents[agent] ?? ""}:telegram:direct:user-${at}`;
    const isWritten = indexes[agent]?.write(
      `${isFirst[agent] === true ? "" : ","}\n${JSON.stringify(key)}: ${JSON.stringify(entry)}`,
    );
    isFirst[agent] = false;
    if (isWritten === false) await new Promise((done) => indexes[agent]?.once("drain", () => done(null)));
  }
  await Promise.all(indexes.map((index) => new Promise((done) => index.end("\n}\n", () => done(null)))));
  return { sessions: plan.sessions, records: plan.records, bytes };
}

/** The import itself, in a process of its own: says how far it is, and at the end what it came to. */
async function importHere(source: string, database: string): Promise<void> {
  const startedAtMs = performance.now();
  const totals = { imported: 0, grown: 0, unchanged: 0, refused: 0, records: 0, lost: 0 };
  let sources = 0;
  await using store = createSqliteStore({ path: database });
  for await (const { state, records, lost, error } of importPaths(store, [source])) {
    if (state !== "skipped") totals[state] += 1;
    totals.records += records;
    totals.lost += lost.length;
    if (error !== null) process.stderr.write(`${error.message}\n`);
    sources += 1;
    if (sources % 100 === 0) process.stdout.write(`${JSON.stringify({ sources })}\n`);
  }
  const seconds = Math.round((performance.now() - startedAtMs) / 100) / 10;
  const peakRssMb = Math.round(process.resourceUsage().maxRSS / 1024);
  process.stdout.write(`${JSON.stringify({ done: { ...totals, seconds, peakRssMb, wasKilled: false } })}\n`);
}

/** Runs the import as a process; kills it when it has gone through so many sources. */
function importApart(source: string, database: string, killAt: number | null): Promise<ScaleRun> {
  const args = ["--conditions=@throughline/source", import.meta.filename, "--import", source, database];
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_OPTIONS: "" },
  });
  return new Promise((resolve, reject) => {
    let text = "";
    let run: ScaleRun | null = null;
    child.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n")) {
        const said = JSON.parse(text.slice(0, end)) as { readonly sources?: number; readonly done?: ScaleRun };
        text = text.slice(end + 1);
        run = said.done ?? run;
        if (killAt !== null && (said.sources ?? 0) >= killAt) child.kill("SIGKILL");
      }
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      const nothing = {
        imported: 0,
        grown: 0,
        unchanged: 0,
        refused: 0,
        records: 0,
        lost: 0,
        seconds: 0,
        peakRssMb: 0,
      };
      if (signal === "SIGKILL") resolve({ ...nothing, wasKilled: true });
      else if (run === null) reject(new Error(`the import ended with ${String(code)}`));
      else resolve(run);
    });
  });
}

async function countStored(database: string): Promise<ScaleReport["stored"]> {
  await using store = createSqliteStore({ path: database });
  let [sessions, records] = [0, 0];
  for (const agentId of agents) {
    for (let cursor: string | null = null; ;) {
      const page = await store.list({ namespace: "", agentId, limit: 500, ...(cursor === null ? {} : { cursor }) });
      sessions += page.sessions.length;
      records += page.sessions.reduce((sum, { head }) => sum + head.lastSeq, 0);
      if (page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
  }
  return { sessions, records, bytes: statSync(database).size };
}

/** Writes a directory, imports it with two interruptions, and once more. */
export async function runScale(plan: ScalePlan, folder: string, tell: (line: string) => void): Promise<ScaleReport> {
  const [source, database] = [join(folder, "state"), join(folder, "sessions.db")];
  const written = await writeScaleDirectory(source, plan);
  tell(`written: ${written.sessions} sessions, ${written.records} records, ${Math.round(written.bytes / 1e6)} MB`);
  const runs: ScaleRun[] = [];
  for (const share of [1 / 3, 2 / 3, null]) {
    const killAt = share === null ? null : Math.max(1, Math.floor(plan.sessions * share));
    runs.push(await importApart(source, database, killAt));
    tell(JSON.stringify(runs.at(-1)));
  }
  const again = await importApart(source, database, null);
  tell(`again: ${JSON.stringify(again)}`);
  return { written, runs, stored: await countStored(database), again };
}

/** What is not as it must be; empty when all is well. */
export function problemsOf({ written, runs, stored, again }: ScaleReport, mostRssMb: number): readonly string[] {
  const last = runs.at(-1);
  const checks: readonly (readonly [string, boolean])[] = [
    [`${stored.sessions} of ${written.sessions} sessions are in the store`, stored.sessions === written.sessions],
    [`${stored.records} of ${written.records} records are in the store`, stored.records === written.records],
    ["a run was not interrupted", runs.slice(0, -1).every(({ wasKilled }) => wasKilled)],
    ["the last run imported everything again", last !== undefined && last.unchanged > 0],
    ["something was refused or lost", [...runs, again].every(({ refused, lost }) => refused === 0 && lost === 0)],
    [`the second import took ${again.records} records`, again.records === 0 && again.imported + again.grown === 0],
    [`${last?.peakRssMb ?? 0} MB of memory`, (last?.peakRssMb ?? 0) <= mostRssMb && again.peakRssMb <= mostRssMb],
  ];
  return checks.filter(([, isGood]) => !isGood).map(([problem]) => problem);
}

if (import.meta.main) {
  const [first, source = "", database = ""] = process.argv.slice(2);
  if (first === "--import") await importHere(source, database);
  else {
    const plan = { sessions: Number(process.argv[2] ?? 100_000), records: Number(process.argv[3] ?? 5_000_000) };
    const parent = process.argv[4] ?? tmpdir();
    const folder = mkdtempSync(join(parent, "import-scale-"));
    try {
      const report = await runScale(plan, folder, (line) => process.stdout.write(`${line}\n`));
      const problems = problemsOf(report, 300);
      const { stored } = report;
      process.stdout.write(
        `stored: ${stored.sessions} sessions, ${stored.records} records, ${Math.round(stored.bytes / 1e6)} MB\n`,
      );
      process.stdout.write(`import at scale: ${problems.length === 0 ? "as promised" : problems.join("; ")}\n`);
      process.exitCode = problems.length === 0 ? 0 : 1;
    } finally {
      if (existsSync(folder)) rmSync(folder, { recursive: true });
    }
  }
}
