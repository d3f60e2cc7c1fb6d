import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ThroughlineError, type SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { importPaths } from "@throughline/transfer";
import type { ImportSource } from "../src/import-types.ts";
import { aroundCalls, replaceMembers } from "@throughline/test-kit";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "lanes-"));
});

afterEach(() => {
  rmSync(root, { recursive: true });
});

/** An agent's folder: a file for each id, and an index of the keys. */
function writeFolder(
  agent: string,
  sessions: readonly { readonly id: string; readonly key: string; readonly text?: string }[],
): void {
  const folder = join(root, "agents", agent, "sessions");
  mkdirSync(folder, { recursive: true });
  const index = Object.fromEntries(sessions.map(({ id, key }) => [key, { sessionId: id, updatedAt: 1 }]));
  writeFileSync(join(folder, "sessions.json"), JSON.stringify(index));
  for (const { id, text = "hello" } of sessions) {
    const header = { type: "session", version: 3, id, timestamp: "2026-01-01T00:00:00.000Z", cwd: "/" };
    const record = {
      type: "message",
      id: "a1",
      parentId: null,
      timestamp: "2026-01-01T00:00:01.000Z",
      message: { role: "user", content: text },
    };
    writeFileSync(join(folder, `${id}.jsonl`), `${JSON.stringify(header)}\n${JSON.stringify(record)}\n`);
  }
}

async function importAll(store: SessionStore): Promise<readonly ImportSource[]> {
  return Array.fromAsync(importPaths(store, [root]));
}

/** Says how many appends run at once, and lets each take a while. */
function slow(store: SessionStore, onAppend: (running: number) => void = () => undefined): SessionStore {
  let running = 0;
  return replaceMembers(store, {
    async append(...given) {
      running += 1;
      onAppend(running);
      await new Promise((done) => setTimeout(done, 2));
      try {
        return await store.append(...given);
      } finally {
        running -= 1;
      }
    },
  });
}

const ids = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, at) => `s${String(at).padStart(3, "0")}`);

describe("many sources", () => {
  it("are written several at a time, no more than sixteen, and told in their order", async () => {
    writeFolder(
      "main",
      ids(60).map((id) => ({ id, key: `agent:main:telegram:direct:${id}` })),
    );
    let most = 0;
    const sources = await importAll(slow(createMemoryStore(), (running) => (most = Math.max(most, running))));
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(16);
    expect(sources.map(({ sessionId, state }) => [sessionId, state])).toEqual(ids(60).map((id) => [id, "imported"]));
  });

  it("that are large are fewer at a time: together no more than two megabytes", async () => {
    const text = "x".repeat(900_000);
    writeFolder(
      "main",
      ids(7).map((id) => ({ id, key: `agent:main:telegram:direct:${id}`, text })),
    );
    // A session is being read from when its key is looked for to when its records are there.
    let [running, most] = [0, 0];
    const store = createMemoryStore();
    const watched = replaceMembers(store, {
      async load(...given) {
        most = Math.max(most, ++running);
        await new Promise((done) => setImmediate(done));
        return store.load(...given);
      },
      async append(...given) {
        await new Promise((done) => setImmediate(done));
        const result = await store.append(...given);
        running -= 1;
        return result;
      },
    });
    const sources = await importAll(watched);
    expect(sources.map(({ state }) => state)).toEqual(Array.from({ length: 7 }, () => "imported"));
    expect([most, running]).toEqual([2, 0]);
  });

  it("that want one key get it in their order, however long the first takes", async () => {
    for (const agent of ["one", "two"]) {
      writeFolder(
        agent,
        ids(8).map((id) => ({ id: `${agent}-${id}`, key: "agent:one:telegram:direct:same" })),
      );
    }
    const run = async (store: SessionStore) => (await importAll(store)).map(({ key, sessionId }) => [key, sessionId]);
    expect(await run(slow(createMemoryStore()))).toEqual(await run(createMemoryStore()));
  });

  it("with one id in two agents are both kept, and found again", async () => {
    for (const agent of ["one", "two"])
      writeFolder(agent, [{ id: "same", key: `agent:${agent}:telegram:direct:a`, text: agent }]);
    const store = slow(createMemoryStore());
    const first = await importAll(store);
    expect(first.map(({ state, agentId, records }) => [state, agentId, records])).toEqual([
      ["imported", "one", 2],
      ["imported", "two", 2],
    ]);
    expect((await importAll(store)).map(({ state, records }) => [state, records])).toEqual([
      ["unchanged", 0],
      ["unchanged", 0],
    ]);
  });

  it("end together when the store fails: what was begun is settled, and the next run takes the rest", async () => {
    writeFolder(
      "main",
      ids(40).map((id) => ({ id, key: `agent:main:telegram:direct:${id}` })),
    );
    const store = createMemoryStore();
    let left = 25;
    let isRunning = 0;
    const failing = aroundCalls(store, async ({ name, run }) => {
      isRunning += 1;
      try {
        if (name === "append" && --left < 0) {
          throw new ThroughlineError("STORE_FULL", "The disk is full.", { outcome: "not-applied" });
        }
        return await run();
      } finally {
        isRunning -= 1;
      }
    });
    await expect(importAll(failing)).rejects.toMatchObject({ code: "STORE_FULL" });
    expect(isRunning).toBe(0);
    const rest = await importAll(store);
    expect(rest.every(({ state }) => ["imported", "grown", "unchanged"].includes(state))).toBe(true);
    expect((await importAll(store)).map(({ state }) => state)).toEqual(ids(40).map(() => "unchanged"));
  });

  it("end when nobody wants more of them", async () => {
    writeFolder(
      "main",
      ids(40).map((id) => ({ id, key: `agent:main:telegram:direct:${id}` })),
    );
    let running = 0;
    const store = slow(createMemoryStore(), (now) => (running = now));
    for await (const { state } of importPaths(store, [root])) {
      expect(state).toBe("imported");
      break;
    }
    expect(running).toBeGreaterThan(0);
    await store.close();
  });
});
