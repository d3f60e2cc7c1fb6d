import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type SessionStore, sessionRef } from "../packages/core/src/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { createRandom } from "../tools/seeded-random.ts";
import { Holds } from "./measure.ts";

// How long searches, reads and checks of a SQLite store hold the event loop, beside a control that does nothing.
// node --conditions=@throughline/source benchmarks/sqlite-event-loop.ts [--records 60000] [--rounds 5] [--text 400]

const frequent = ["the", "agent", "session", "file", "error", "build", "test", "line", "value", "call"];
const rare = Array.from({ length: 3000 }, (_, index) => `word${index}`);

/** Records with ten frequent words, each in a third of the records, and rare words of which each is in a few. */
async function fill(path: string, records: number, characters: number): Promise<void> {
  await using store = createSqliteStore({ path, defaultDurability: "process" });
  const random = createRandom(7);
  const textOf = (): string => {
    const words: string[] = [];
    for (let length = 0; length < characters;) {
      const among = random() < 0.1 ? frequent : rare;
      const word = among[Math.floor(random() * among.length)] ?? "";
      words.push(word);
      length += word.length + 1;
    }
    return words.join(" ");
  };
  const perSession = 5000;
  for (let session = 0; session * perSession < records; session++) {
    const ref = sessionRef({ key: `agent:main:s${session}` });
    await store.save(ref, { sessionId: `s${session}` }, { ifRevision: null });
    for (let from = 0; from < perSession && session * perSession + from < records; from += 500)
      await store.append(
        ref,
        Array.from({ length: 500 }, () => ({ type: "message", message: { role: "user", content: textOf() } })),
      );
  }
  for await (const left of store.search?.fill?.() ?? []) if (left === 0) break;
}

async function search(store: SessionStore, text: string): Promise<number> {
  let hits = 0;
  for await (const _ of store.search?.search({ text, limit: 50 }) ?? []) hits += 1;
  return hits;
}

async function readAll(store: SessionStore): Promise<number> {
  let records = 0;
  const { sessions } = await store.list({ limit: 1000 });
  for (const { ref } of sessions) for await (const page of store.read(ref)) records += page.records.length;
  return records;
}

const operations: Readonly<Record<string, (store: SessionStore) => Promise<unknown>>> = {
  "nothing, for a second": () => wait(1000),
  "search of one frequent word": (store) => search(store, "agent"),
  "search of a rare word": (store) => search(store, "word17"),
  "search of ten frequent words, all in a record": (store) => search(store, frequent.join(" ")),
  "search of each of ten frequent words": async (store) => {
    for (const word of frequent) await search(store, word);
  },
  "search of a phrase of two frequent words": (store) => search(store, `"${frequent.slice(0, 2).join(" ")}"`),
  "search of a frequent prefix": (store) => search(store, "word*"),
  "read of all records": readAll,
  "list of all sessions": (store) => store.list({ limit: 1000 }),
  "verify, quick": async (store) => Array.fromAsync(store.maintenance?.verify() ?? []),
};

async function measured(store: SessionStore, run: (store: SessionStore) => Promise<unknown>, rounds: number) {
  const longest: number[] = [];
  const held: number[] = [];
  const took: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    await wait(20);
    delay.reset();
    const holds = new Holds();
    const started = performance.now();
    await run(store);
    took.push(performance.now() - started);
    // The delay of the last step is counted by the next tick of the monitor.
    await wait(30);
    delay.disable();
    holds.end();
    held.push(holds.longestMs);
    longest.push(delay.max / 1e6);
  }
  const middle = (values: readonly number[]): string => (values.toSorted((a, b) => a - b)[rounds >> 1] ?? 0).toFixed(1);
  return { held: middle(held), most: Math.max(...held).toFixed(1), longest: middle(longest), took: middle(took) };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      records: { type: "string", default: "60000" },
      rounds: { type: "string", default: "5" },
      text: { type: "string", default: "400" },
    },
  });
  const folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "event-loop-"));
  const path = join(folder, "store.db");
  try {
    await fill(path, Number(values.records), Number(values.text));
    process.stdout.write(`${values.records} records of ${values.text} characters, median of ${values.rounds} rounds\n`);
    process.stdout.write(
      "| operation | CPU between two turns, ms | the most of all rounds | delay of the loop, ms | took, ms |\n| --- | --: | --: | --: | --: |\n",
    );
    await using store = createSqliteStore({ path, create: false });
    await store.list();
    for (const [operation, run] of Object.entries(operations)) {
      const { held, most, longest, took } = await measured(store, run, Number(values.rounds));
      process.stdout.write(`| ${operation} | ${held} | ${most} | ${longest} | ${took} |\n`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await main();
