import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { openSession, sessionRef, type RecordDraft, type SessionStore, type StoredRecord } from "@throughline/core";
import { sliceSteps, systemRandom } from "@throughline/core/internal";
import { writableFormatNames } from "@throughline/foreign-formats/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { quickFolder } from "../../../packages/store-sqlite/test/test-folder.ts";
import { testSize } from "../../../tools/test-size.ts";
import { serve, type Serving } from "./serving.ts";

const folder = mkdtempSync(join(quickFolder(), "throughline-sliced-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let serving: Serving | null = null;
let isWatching = false;
afterEach(async () => {
  isWatching = false;
  await serving?.close();
  serving = null;
});

const origin = { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5" };

function draftAt(index: number): RecordDraft {
  const turn = Math.floor(index / 4);
  const text = `Message ${index} with some words.`;
  const call = { type: "toolCall", id: `toolu_${turn}`, name: "read", arguments: { path: `/file-${turn}.ts` } };
  const messages = [
    { role: "user", content: text },
    { role: "assistant", content: [call], ...origin, stopReason: "toolUse" },
    { role: "toolResult", toolCallId: call.id, toolName: "read", content: [{ type: "text", text }], isError: false },
    { role: "assistant", content: [{ type: "text", text }], ...origin, stopReason: "stop" },
  ];
  return { type: "message", message: messages[index % 4] } as RecordDraft;
}

/** What was handled between two turns of the loop. */
class Handled {
  /** The most records that were given, and the most whose messages were looked at. */
  most = { given: 0, looked: 0 };
  #given = 0;
  readonly #looked = new Set<number>();

  begin(): void {
    this.newTurn();
    this.most = { given: 0, looked: 0 };
  }

  newTurn(): void {
    this.#given = 0;
    this.#looked.clear();
  }

  give(records: number): void {
    this.#given += records;
    this.most.given = Math.max(this.most.given, this.#given);
  }

  look(seq: number): void {
    this.#looked.add(seq);
    this.most.looked = Math.max(this.most.looked, this.#looked.size);
  }
}

/** A store whose records say when their messages are looked at. */
function counted(inner: SessionStore, handled: Handled): SessionStore {
  const watch = async (): Promise<void> => {
    isWatching = true;
    for (; isWatching; handled.newTurn()) await nextTurn();
  };
  void watch();
  const looked = <Item extends { readonly seq: number }>(item: Item): Item => {
    const { record } = item as unknown as StoredRecord;
    const message = record?.["message"];
    if (message === undefined) return item;
    const look = { enumerable: true, get: () => (handled.look(item.seq), message) };
    return { ...item, record: Object.defineProperty({ ...record }, "message", look) };
  };
  return new Proxy(inner, {
    get(target, name: string) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      const call = (...args: readonly unknown[]): unknown => Reflect.apply(member, target, args) as unknown;
      if (name !== "read") return call;
      return async function* (...args: readonly unknown[]) {
        for await (const page of call(...args) as AsyncIterable<{ readonly records: readonly StoredRecord[] }>) {
          handled.give(page.records.length);
          yield { ...page, records: page.records.map(looked) };
        }
      };
    },
  });
}

const reads = [
  "window",
  "outline",
  "context",
  "context?provider=anthropic",
  "findings",
  "calls",
  "checkpoints",
  "records?limit=500",
  "records?role=system&limit=10",
  "export?to=openclaw",
].map((path) => ["GET", path] as const);
const exportsTo = (names: readonly string[]): typeof reads =>
  names.map((name) => ["GET", `export?to=${name}`] as const);
const writes = [
  ["POST", "checkpoint"],
  ["POST", "compact"],
] as const;

describe.each([
  [
    "memory",
    () => createMemoryStore(),
    testSize({ short: 8000, long: 60_000 }),
    [...reads, ...exportsTo(["claw0", "codex", "openai"]), ...writes],
  ],
  [
    "sqlite",
    () => createSqliteStore({ path: join(folder, "sessions.db") }),
    testSize({ short: 2000, long: 4000 }),
    [...reads, ...exportsTo(["jsonl", "pi", ...writableFormatNames])],
  ],
] as const)("a route that reads a long session, over %s", (_name, open, records, routes) => {
  it(
    "handles a bounded number of records between two turns of the loop",
    { tags: ["slow"], timeout: 600_000 },
    async () => {
      const store = open();
      const { pageRecords } = store.capabilities.limits;
      const handled = new Handled();
      const ref = sessionRef({ namespace: "", agentId: "main", key: "long" });
      await openSession(store, ref, { random: systemRandom });
      for (let from = 0; from < records; from += 500)
        await store.append(
          ref,
          Array.from({ length: 500 }, (_, at) => draftAt(from + at)),
        );
      serving = await serve({ openStore: () => counted(store, handled) });
      for (const [method, path] of routes) {
        handled.begin();
        const answer = await fetch(`${serving.url}/api/v1/sessions/long/${path}`, {
          method,
          headers: { authorization: `Bearer ${serving.token}` },
        });
        await answer.arrayBuffer();
        const { given, looked } = handled.most;
        expect([path, answer.status, given > 0]).toEqual([path, 200, true]);
        // An export looks at a first page up to twice to see whose lines these are.
        expect([path, given <= 3 * pageRecords, looked <= sliceSteps + pageRecords]).toEqual([path, true, true]);
      }
    },
  );
});
