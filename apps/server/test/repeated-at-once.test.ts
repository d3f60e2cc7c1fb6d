import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { quickFolder } from "../../../packages/store-sqlite/test/test-folder.ts";
import { createSqliteStore } from "@throughline/store-sqlite";
import { serve, type Answered, type Serving } from "./serving.ts";

let serving: Serving | null = null;
let folder = "";
afterEach(async () => {
  await serving?.close();
  serving = null;
  rmSync(folder, { recursive: true, force: true });
});

const stores: readonly (readonly [name: string, open: () => SessionStore | Promise<SessionStore>])[] = [
  ["memory", () => createMemoryStore()],
  ["sqlite", () => createSqliteStore({ path: join(folder, "sessions.db") })],
  ["jsonl", () => createJsonlStore({ root: folder, create: true })],
];

describe.each(stores)("one request sent twenty times at once, over %s", (_name, open) => {
  const twenty = async (method: string, path: string, body: object): Promise<readonly number[]> => {
    const ask = (): Promise<Answered> => (serving as Serving).ask(method, path, { body });
    const answers = await Promise.all(Array.from({ length: 20 }, ask));
    const ids = new Set(answers.map((answer) => answer.body["sessionId"]));
    expect([...ids], JSON.stringify(answers.map((answer) => answer.body["code"]))).toHaveLength(1);
    return answers.map(({ status }) => status);
  };

  it("succeeds each time: create, fork, reset, restore", async () => {
    folder = mkdtempSync(join(quickFolder(), "throughline-repeated-"));
    serving = await serve({ openStore: open });
    const drafts = Array.from({ length: 50 }, (_, index) => ({ type: "note", text: `${index}` }));
    const isDone = (status: number): boolean => status === 200 || status === 201;
    expect((await twenty("PUT", "/sessions/notes", { sessionId: "first" })).every(isDone)).toBe(true);
    await serving.ask("POST", "/sessions/notes/records", { body: { drafts } });
    const fork = { key: "notes-fork", sessionId: "forked" };
    const forked = await twenty("POST", "/sessions/notes/fork", fork);
    expect([forked.every(isDone), forked.filter((status) => status === 201).length]).toEqual([true, 1]);
    // Another fork under the key is none of these.
    const other = await serving.ask("POST", "/sessions/notes/fork", { body: { ...fork, sessionId: "other" } });
    expect(other.status).toBe(409);
    expect((await serving.ask("GET", "/sessions/notes-fork")).body["recordCount"]).toBe(50);
    expect((await twenty("POST", "/sessions/notes/reset", { sessionId: "second" })).every(isDone)).toBe(true);
    expect((await serving.ask("GET", "/sessions/notes")).body["sessionId"]).toBe("second");
  });
});
