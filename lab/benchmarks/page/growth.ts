// One store of one size for lab/benchmarks/page.ts: a process fills it, a second one measures it.
// node --conditions=@throughline/source lab/benchmarks/page/growth.ts fill|measure sqlite|jsonl FOLDER RECORDS
import { closeSync, fdatasync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { entryOfMany, makeManySessions, refOfMany } from "../../../benchmarks/many-sessions.ts";
import { median } from "../../../benchmarks/measure.ts";
import {
  openSession,
  readWindow,
  sessionRef,
  type RecordDraft,
  type SessionStore,
} from "../../../packages/core/src/index.ts";
import { systemRandom } from "../../../packages/core/src/node/system-ports.ts";
import { buildContext } from "../../../packages/history/src/index.ts";
import { createJsonlStore } from "../../../packages/store-jsonl/src/index.ts";
import { createSqliteStore } from "../../../packages/store-sqlite/src/index.ts";

/** What was measured on one store. Medians. */
export interface Growth {
  readonly store: string;
  readonly records: number;
  readonly sessions: number;
  readonly controlUs: number;
  readonly turnUs: number;
  readonly listMs: number;
  readonly resumeMs: number;
  readonly searchMs: number;
  readonly hits: number;
  readonly memoryMb: number;
}

const ref = sessionRef({ namespace: "", agentId: "main", key: "agent:main:long" });
const recordsPerSession = 10;
const perBatch = 400;
/** Records behind the summary, which every resume reads. */
const windowRecords = 100;
const needles = 10;
const origin = { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-5" };

let state = 1;
/** Words as they occur in text: few are frequent, and many are rare. */
function text(words: number): string {
  let made = "";
  for (let each = 0; each < words; each++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    made += `w${Math.floor(30_000 ** (state / 2 ** 32))} `;
  }
  return made;
}

function draftAt(index: number, isNeedle: boolean): RecordDraft {
  const words = `${text([20, 10, 60, 40][index % 4] ?? 20)}${isNeedle ? "needleword" : ""}`;
  const [turn, place] = [Math.floor(index / 4), index % 4];
  const call = { type: "toolCall", id: `toolu_${turn}`, name: "read", arguments: { path: `file-${turn}.ts` } };
  const messages: readonly unknown[] = [
    { role: "user", content: words },
    { role: "assistant", content: [{ type: "text", text: words }, call], ...origin, stopReason: "toolUse" },
    { role: "toolResult", toolCallId: call.id, toolName: "read", content: words, isError: false },
    { role: "assistant", content: [{ type: "text", text: words }], ...origin, stopReason: "stop" },
  ];
  return { type: "message", message: messages[place] } as RecordDraft;
}

/** Half of the records are one long session; the others are sessions of ten records. */
function partsOf(records: number): { readonly long: number; readonly sessions: number } {
  const sessions = Math.floor(records / 2 / recordsPerSession);
  return { long: records - sessions * recordsPerSession, sessions };
}

function opened(kind: string, folder: string): SessionStore {
  if (kind === "jsonl") return createJsonlStore({ root: folder, sessionsJson: false });
  return createSqliteStore({ path: join(folder, "sessions.db") });
}

async function fillSessions(store: SessionStore, count: number): Promise<void> {
  for (let index = 1; index <= count; index++) {
    await store.save(refOfMany(index), entryOfMany(index), { ifRevision: null, durability: "process" });
    const drafts = Array.from({ length: recordsPerSession }, (_, place) => draftAt(place, false));
    await store.append(refOfMany(index), drafts, { durability: "process" });
  }
}

async function fill(kind: string, folder: string, records: number): Promise<void> {
  const { long, sessions } = partsOf(records);
  if (kind === "jsonl") await makeManySessions(folder, sessions + 1, recordsPerSession);
  await using store = opened(kind, folder);
  if (kind !== "jsonl") await fillSessions(store, sessions);
  await openSession(store, ref, { random: systemRandom });
  const spacing = Math.max(1, Math.floor(long / needles));
  const kept = Math.min(windowRecords, Math.floor(long / 2));
  for (let from = 0; from < long;) {
    // The last records follow a summary of all records before them.
    const end = from < long - kept ? Math.min(from + perBatch, long - kept) : long;
    const drafts = Array.from({ length: end - from }, (_, at) => draftAt(from + at, (from + at) % spacing === 0));
    const { records: stored } = await store.append(ref, drafts, { durability: "process" });
    if (end === long - kept) {
      const { id: firstKeptEntryId = "", seq: windowFromSeq = 1 } = stored.at(-1) ?? {};
      const summary = { type: "compaction", summary: text(200), firstKeptEntryId, tokensBefore: 100_000 };
      await store.append(ref, [summary as RecordDraft], { durability: "process", windowFromSeq });
    }
    from = end;
  }
  // The first list and the first search complete what they read.
  await store.list({ limit: 1 });
  for await (const _hit of store.search?.search({ text: "needleword" }) ?? []) continue;
}

async function msOf(work: () => Promise<unknown>): Promise<number> {
  const beganMs = performance.now();
  await work();
  return performance.now() - beganMs;
}

async function medianMs(rounds: number, work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) times.push(await msOf(work));
  return median(times);
}

/** Turns of the store and the same bytes written and flushed by themselves, one after the other. */
async function turns(store: SessionStore, folder: string, rounds: number): Promise<readonly [number, number]> {
  const file = openSync(join(folder, "control.txt"), "a", 0o600);
  const [ours, control]: [number[], number[]] = [[], []];
  for (let round = -5; round < rounds; round++) {
    const drafts = Array.from({ length: 4 }, (_, place) => draftAt(round * 4 + 20 + place, false));
    const bytes = Buffer.from(drafts.map((draft) => `${JSON.stringify(draft)}\n`).join(""));
    const rawMs = await msOf(async () => {
      writeSync(file, bytes);
      await new Promise<void>((resolve, reject) => fdatasync(file, (error) => (error ? reject(error) : resolve())));
    });
    const turnMs = await msOf(() => store.append(ref, drafts, { durability: "disk" }));
    if (round < 0) continue;
    control.push(rawMs * 1000);
    ours.push(turnMs * 1000);
  }
  closeSync(file);
  return [median(control), median(ours)];
}

async function resume(kind: string, folder: string): Promise<void> {
  await using store = opened(kind, folder);
  const { records, state: session } = await readWindow(store, ref);
  if (buildContext(records, { headId: session.head.headId }).messages.length === 0) throw new Error("empty context");
}

async function measure(kind: string, folder: string, records: number): Promise<Growth> {
  globalThis.gc?.();
  const beforeBytes = process.memoryUsage.rss();
  const resumeMs = await medianMs(9, () => resume(kind, folder));
  await using store = opened(kind, folder);
  const listMs = await medianMs(15, async () => {
    if ((await store.list({ limit: 50 })).sessions.length === 0) throw new Error("empty list");
  });
  let hits = 0;
  const searchMs = await medianMs(15, async () => {
    hits = 0;
    for await (const _hit of store.search?.search({ text: "needleword" }) ?? []) hits++;
  });
  const memoryMb = (process.memoryUsage.rss() - beforeBytes) / 1e6;
  const [controlUs, turnUs] = await turns(store, folder, 60);
  const { sessions } = partsOf(records);
  return {
    store: kind,
    records,
    sessions: sessions + 1,
    controlUs,
    turnUs,
    listMs,
    resumeMs,
    searchMs,
    hits,
    memoryMb,
  };
}

if (import.meta.main) {
  const [mode, kind = "", folder = "", records = "0"] = process.argv.slice(2);
  if (mode === "fill") await fill(kind, folder, Number(records));
  else process.stdout.write(`${JSON.stringify(await measure(kind, folder, Number(records)))}\n`);
}
