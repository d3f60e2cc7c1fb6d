// What a question of `memory_search` costs among many records of SQLite, and which step holds the event loop: the CPU of the
// thread between two turns of the loop, the longest and the median over the questions, and the CPU of all. The steps are the
// candidates of the index, the reads around them, and the whole tool. An idle control comes first and last.
// node --conditions=@throughline/source lab/benchmarks/memory-search.ts [--records 200000] [--questions 32] [--path FILE]
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { type SearchHit, sessionRef, type SessionStore } from "../../packages/core/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { RecordsAround } from "../../packages/tools/src/search/records-around.ts";
import { wordsToLookUp } from "../../packages/tools/src/search/words-to-look-up.ts";
import { createMemorySearchTool } from "../../packages/tools/src/workspace/memory-search-tool.ts";
import { Holds, median } from "../../benchmarks/measure.ts";

const { values } = parseArgs({
  options: { records: { type: "string" }, questions: { type: "string" }, path: { type: "string" } },
});
const count = Number(values.records ?? 200_000);
const questions = Number(values.questions ?? 32);
const perSession = 1000;
const folder = mkdtempSync(join(tmpdir(), "memory-search-"));
const ref = sessionRef({ key: "agent:main:asking" });

let state = 7;
function random(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

/** A few words are in most texts, and most words in few, as in a language. */
function word(): string {
  return `w${Math.floor(20_000 ** random()).toString(36)}x`;
}

const words = (number: number): string => Array.from({ length: number }, word).join(" ");

async function fill(store: SessionStore): Promise<void> {
  for (let session = 0; session * perSession < count; session++) {
    const at = sessionRef({ key: `agent:main:s${session}` });
    await store.save(at, { sessionId: `s${session}` }, { ifRevision: null });
    const drafts = Array.from({ length: perSession }, (_, index) => ({
      type: "message",
      message: { role: index % 2 === 0 ? "user" : "assistant", content: words(6 + Math.floor(random() * 20)) },
    }));
    await store.append(at, drafts, { durability: "process" });
  }
  for await (const _left of store.search?.fill?.({}) ?? []);
}

async function held(
  name: string,
  work: (question: string) => Promise<unknown>,
  asked: readonly string[],
): Promise<void> {
  const holds: number[] = [];
  const before = process.threadCpuUsage();
  for (const question of asked) {
    const one = new Holds();
    await work(question);
    // The last hold ends with the turn of the loop after the work.
    await new Promise((resolve) => setTimeout(resolve, 2));
    one.end();
    holds.push(one.longestMs);
  }
  const { user, system } = process.threadCpuUsage(before);
  const cpuMs = (user + system) / 1000 / asked.length;
  process.stdout.write(
    `${name}: holds the loop for ${median(holds).toFixed(1)} ms, at most ${Math.max(...holds).toFixed(1)}; ${cpuMs.toFixed(1)} ms of CPU a question\n`,
  );
}

async function candidatesOf(store: SessionStore, question: string): Promise<readonly SearchHit[]> {
  const found = store.search?.search({ anyOf: wordsToLookUp(question), state: "active", limit: 400, agentId: "main" });
  return Array.fromAsync(found ?? []);
}

try {
  const path = values.path ?? join(folder, "s.db");
  if (!existsSync(path)) {
    await using filling = createSqliteStore({ path, searchFill: "on-demand" });
    await fill(filling);
  }
  await using store = createSqliteStore({ path });
  const tool = createMemorySearchTool({ root: folder, store, sessions: "agent" });
  const run = (query: string): Promise<unknown> =>
    Promise.resolve(tool.run({ query }, { signal: new AbortController().signal, ref, callId: "lab" }));
  const asked = Array.from({ length: questions }, () => words(8));
  // The first questions compile the code and read the pages.
  for (const question of asked.slice(0, 4)) await run(question);
  process.stdout.write(`${count} records, load ${loadavg()[0]?.toFixed(1) ?? "?"}\n`);
  const idle = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 50));
  await held("idle", idle, asked);
  await held("candidates", (question) => candidatesOf(store, question), asked);
  const candidates = new Map<string, readonly SearchHit[]>();
  for (const question of asked) candidates.set(question, await candidatesOf(store, question));
  const read = async (question: string): Promise<void> => {
    const signal = new AbortController().signal;
    const around = new RecordsAround({ storeOf: () => store, signal: () => signal });
    for (const hit of candidates.get(question) ?? []) if (!(await around.add(hit))) break;
    await around.episodes();
  };
  await held("reads around them", read, asked);
  await held("memory_search", run, asked);
  await held("idle", idle, asked);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
