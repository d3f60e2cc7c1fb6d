// What many sessions cost the JSONL store: the first list of a process, with its index and without one; entry updates among
// few and many; and how long sessions.json holds the event loop while it is read, merged and written anew.
// node --conditions=@throughline/source benchmarks/jsonl-sessions.ts [sessions] [sessions with a sessions.json]
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import type { SessionRef } from "../packages/core/src/index.ts";
import { createPayloadCoder } from "../packages/core/src/store.ts";
import { createJsonlStore } from "../packages/store-jsonl/src/index.ts";
import { ownHeaderLine } from "../packages/store-jsonl/src/own-header.ts";
import { encodeRowChange } from "../packages/store-jsonl/src/session-row.ts";

const [mode = "100000", argument = "10000"] = process.argv.slice(2);

if (mode === "list") await list(argument);
else if (mode === "view") await view(argument);
else await main(Number(mode), Number(argument));

function refOf(index: number): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:telegram:direct:${index}` };
}

/** Sessions as the store leaves them: a transcript each and a line in the entries log. */
async function makeSessions(root: string, count: number): Promise<void> {
  const agent = join(root, "agents/main");
  {
    await using store = createJsonlStore({ root, sessionsJson: false });
    await store.save(refOf(0), { sessionId: "session-0" }, { ifRevision: null });
  }
  const codec = { coder: createPayloadCoder(undefined), isCoded: false };
  const nowMs = Date.now();
  const lines: string[] = [];
  for (let index = 1; index < count; index++) {
    const sessionId = `session-${index}`;
    const { key } = refOf(index);
    const entry = {
      sessionId,
      label: `Conversation number ${index}`,
      lastChannel: "telegram",
      lastTo: `telegram:${index}`,
      deliveryContext: { channel: "telegram", to: `telegram:${index}`, accountId: "default" },
      origin: { provider: "telegram", surface: "telegram", label: `User ${index}`, chatType: "direct" },
      totalTokens: index,
    };
    const fileName = `${sessionId}.jsonl`;
    const times = { createdAtMs: nowMs - count + index, updatedAtMs: nowMs - count + index };
    const row = { sessionId, key, revision: 1, fileName, isArchived: false, entry, ...times };
    lines.push(encodeRowChange({ op: "save", rows: [row] }, codec, { namespace: "", agentId: "main" }));
    writeFileSync(join(agent, "sessions", fileName), `${ownHeaderLine(sessionId, key, times.createdAtMs)}\n`);
  }
  appendFileSync(join(agent, "throughline/entries.log"), lines.map((line) => `${line}\n`).join(""));
}

/** The first list of a new process. */
async function list(root: string): Promise<void> {
  const before = process.memoryUsage.rss();
  const from = performance.now();
  const store = createJsonlStore({ root, sessionsJson: false });
  const { sessions } = await store.list({ limit: 50 });
  const tookMs = performance.now() - from;
  const rssMb = (process.memoryUsage.rss() - before) / 2 ** 20;
  process.stdout.write(JSON.stringify({ tookMs, rssMb, count: sessions.length }));
  await store.close();
}

/** A process that changes entries while another program changes sessions.json: how long the loop stood still at most. */
async function view(root: string): Promise<void> {
  const path = join(root, "agents/main/sessions/sessions.json");
  const store = createJsonlStore({ root, sessionsJson: true });
  await pause(50);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const longest: number[] = [];
  const measured = async (work: () => Promise<unknown>): Promise<void> => {
    delay.reset();
    delay.enable();
    // The first tick only starts the clock.
    await pause(10);
    await work();
    await pause(5);
    delay.disable();
    longest.push(delay.max / 1e6);
  };
  const update = (index: number): Promise<unknown> =>
    store.append(refOf(index), [], { entry: { totalTokens: performance.now() }, durability: "none" });
  await measured(() => store.load(refOf(1)));
  const touched = statSync(path, { bigint: true }).mtimeNs;
  await measured(async () => {
    await update(1);
    while (statSync(path, { bigint: true }).mtimeNs === touched) await pause(25);
  });
  const entries = JSON.parse(readFileSync(path, "utf8")) as Record<string, Record<string, unknown>>;
  const entry = entries[refOf(2).key];
  if (entry !== undefined) Object.assign(entry, { label: "another program", updatedAt: Date.now() });
  writeFileSync(path, JSON.stringify(entries, null, 2));
  await measured(() => store.load(refOf(2)));
  const changed = (await store.load(refOf(2)))?.entry["label"];
  process.stdout.write(JSON.stringify({ longest, isMerged: changed === "another program" }));
  await store.close();
}

function run<T>(...args: readonly string[]): T {
  const options = ["--conditions=@throughline/source", import.meta.filename, ...args];
  return JSON.parse(execFileSync(process.execPath, options).toString()) as T;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

async function updateTimes(root: string, count: number): Promise<{ readonly hot: number; readonly random: number }> {
  await using store = createJsonlStore({ root, sessionsJson: false });
  await store.list({ limit: 1 });
  const timed = async (index: number): Promise<number> => {
    const from = performance.now();
    await store.append(refOf(index), [], { entry: { totalTokens: from }, durability: "process" });
    return performance.now() - from;
  };
  const [hot, random]: [number[], number[]] = [[], []];
  for (let each = 0; each < 1000; each++) {
    hot.push(await timed(Math.floor(Math.random() * 20)));
    random.push(await timed(Math.floor(Math.random() * count)));
  }
  return { hot: median(hot.slice(200)), random: median(random.slice(200)) };
}

async function main(most: number, withView: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-bench-"));
  try {
    const times: { readonly hot: number; readonly random: number }[] = [];
    for (const count of [100, most]) {
      const root = join(folder, String(count));
      await makeSessions(root, count);
      const made = run<{ tookMs: number }>("list", root);
      times.push(await updateTimes(root, count));
      const warm = Array.from({ length: 7 }, () => run<{ tookMs: number; rssMb: number }>("list", root));
      process.stdout.write(
        `first list of 50 among ${count}: ${median(warm.map(({ tookMs }) => tookMs)).toFixed(1)} ms and ` +
          `${median(warm.map(({ rssMb }) => rssMb)).toFixed(0)} MB; with the index to be made first ${made.tookMs.toFixed(0)} ms\n`,
      );
    }
    const [few, many] = times;
    process.stdout.write(
      `entry update, ${most} over 100 sessions: 20 hot keys ${((many?.hot ?? 0) / (few?.hot ?? 1)).toFixed(2)} (at most 1.5), ` +
        `random ${((many?.random ?? 0) / (few?.random ?? 1)).toFixed(2)} (at most 2.5), ${many?.random.toFixed(3)} ms (at most 0.15)\n`,
    );
    const root = join(folder, "view");
    await makeSessions(root, withView);
    {
      await using store = createJsonlStore({ root, sessionsJson: true });
      await store.append(refOf(3), [], { entry: { totalTokens: 3 } });
    }
    const { longest, isMerged } = run<{ longest: readonly number[]; isMerged: boolean }>("view", root);
    const [load = 0, publish = 0, merge = 0] = longest;
    process.stdout.write(
      `sessions.json of ${withView} sessions, longest hold of the loop: first load ${load.toFixed(0)} ms, written anew ` +
        `${publish.toFixed(0)} ms, after another program's change ${merge.toFixed(0)} ms (at most 25)${isMerged ? "" : "; the change is LOST"}\n`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
