// Append, resume and list of each store among 10, 10,000 and 100,000 sessions, beside the same in an earlier checkout, and the
// memory of both. The two take turns, a new process each; a figure is a median, and a ratio that of two medians.
// node --conditions=@throughline/source lab/benchmarks/store-pairs.ts --beside CHECKOUT [--stores sqlite,jsonl,memory]
//   [--sessions 10,10000,100000] [--rounds 5]
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import type { SessionRef, SessionStore } from "../../packages/core/src/index.ts";
import { median, timesOf } from "../../benchmarks/measure.ts";
import { repositoryRoot } from "../../tools/find-files.ts";

/** What one process measured, in milliseconds and megabytes. */
type Figures = Readonly<Record<"first list" | "list" | "resume" | "append" | "memory", number>>;

const { values } = parseArgs({
  options: {
    beside: { type: "string", default: repositoryRoot },
    stores: { type: "string", default: "sqlite,jsonl,memory" },
    sessions: { type: "string", default: "10,10000,100000" },
    rounds: { type: "string", default: "5" },
    child: { type: "string", default: "" },
  },
});

const operations = 60;
const recordsEach = 6;

function refOf(index: number): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:telegram:direct:${index}` };
}

async function openStore(checkout: string, name: string, folder: string): Promise<SessionStore> {
  const path = pathToFileURL(join(checkout, `packages/store-${name}/src/index.ts`)).href;
  const module = (await import(path)) as Readonly<Record<string, (options: object) => SessionStore>>;
  if (name === "sqlite") return module["createSqliteStore"]?.({ path: join(folder, "store.db") }) as SessionStore;
  if (name === "jsonl") return module["createJsonlStore"]?.({ root: folder, sessionsJson: false }) as SessionStore;
  return module["createMemoryStore"]?.({}) as SessionStore;
}

async function fill(store: SessionStore, count: number): Promise<void> {
  const drafts = Array.from({ length: recordsEach }, (_, index) => ({
    type: "message",
    message: { role: index % 2 === 0 ? "user" : "assistant", content: `text ${index} of some length` },
  }));
  for (let index = 0; index < count; index++) {
    await store.save(refOf(index), { sessionId: `session-${index}`, label: `Number ${index}` }, { ifRevision: null });
    await store.append(refOf(index), drafts, { durability: "none" });
  }
}

async function medianMs(work: (index: number) => Promise<unknown>, count: number): Promise<number> {
  let step = 0;
  return median(await timesOf(operations, () => work((step++ * 7919) % count)));
}

/** Fills the store where it is empty, and measures. */
async function measure(checkout: string, name: string, folder: string, count: number): Promise<Figures> {
  const before = process.memoryUsage().rss;
  const store = await openStore(checkout, name, folder);
  const from = performance.now();
  const { sessions } = await store.list({ limit: 50 });
  const firstList = performance.now() - from;
  if (sessions.length === 0) await fill(store, count);
  const list = await medianMs(() => store.list({ limit: 50 }), count);
  const resume = await medianMs(async (index) => {
    await store.load(refOf(index));
    await Array.fromAsync(store.read(refOf(index)));
  }, count);
  const draft = { type: "message", message: { role: "user", content: "one more" } };
  const append = await medianMs(
    (index) => store.append(refOf(index), [draft], { durability: name === "memory" ? "none" : "process" }),
    count,
  );
  globalThis.gc?.();
  const memory = (process.memoryUsage().rss - before) / 2 ** 20;
  await store.close();
  return { "first list": firstList, list, resume, append, memory };
}

function inProcess(checkout: string, store: string, folder: string, count: number): Figures {
  const child = JSON.stringify([checkout, store, folder, count]);
  const args = ["--expose-gc", "--conditions=@throughline/source", fileURLToPath(import.meta.url), "--child", child];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8", maxBuffer: 2 ** 20 })) as Figures;
}

function comparePair(store: string, count: number, root: string): void {
  const [own, other] = ["own", "other"].map((name) => join(root, `${store}-${count}-${name}`)) as [string, string];
  for (const folder of [own, other]) mkdirSync(folder);
  const sides = [
    [repositoryRoot, own],
    [values.beside, other],
  ] as const;
  // A store on a disk is filled by a process of its own.
  if (store !== "memory") for (const [checkout, folder] of sides) inProcess(checkout, store, folder, count);
  const rounds = Array.from({ length: Number(values.rounds) }, () =>
    sides.map(([checkout, folder]) => inProcess(checkout, store, folder, count)),
  );
  const names = (["first list", "list", "resume", "append", "memory"] as const).filter(
    (name) => name !== "first list" || store !== "memory",
  );
  for (const name of names) {
    const [now = 0, then = 0] = [0, 1].map((side) => median(rounds.map((round) => round[side]?.[name] ?? 0)));
    const unit = name === "memory" ? "MB" : "ms";
    console.log(
      `${store}, ${count} sessions, ${name}: ${now.toFixed(3)} ${unit}, beside ${then.toFixed(3)}, ratio ${(now / then).toFixed(2)}`,
    );
  }
  for (const folder of [own, other]) rmSync(folder, { recursive: true });
}

if (values.child === "") {
  const root = mkdtempSync(join(tmpdir(), "store-pairs-"));
  try {
    for (const store of values.stores.split(","))
      for (const count of values.sessions.split(",")) comparePair(store, Number(count), root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
} else {
  const [checkout, store, folder, count] = JSON.parse(values.child) as [string, string, string, number];
  process.stdout.write(JSON.stringify(await measure(checkout, store, folder, count)));
}
