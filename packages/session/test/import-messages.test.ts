import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { customRecord, sessionRef, userMessage, type SessionStore } from "@throughline/core";
import { createHistory } from "@throughline/history";
import * as anthropic from "@throughline/history/anthropic";
import * as openai from "@throughline/history/openai";
import { importMessages, openTurn } from "@throughline/session";
import { createMemoryStore } from "@throughline/store-memory";
import { openStore } from "./process-store.ts";
import { allRecords, createFixture, key } from "./session-fixture.ts";

const ref = sessionRef({ key });
const messages = [
  { role: "user", content: "What is in a.txt?" },
  { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "read", input: { path: "a.txt" } }] },
  { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "hello" }] }] },
  { role: "assistant", content: [{ type: "text", text: "It says hello." }] },
] as const;
const drafts = anthropic.recordsFromMessages(messages, { model: "claude-sonnet-4-5" });

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "imports-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe.each(["memory", "jsonl", "sqlite"])("messages that a program has kept, in %s", (kind) => {
  const open = (): SessionStore => (kind === "memory" ? createMemoryStore() : openStore(kind, folder));

  it("start a session, and the next turn continues it", async () => {
    await using store = open();
    const known = await importMessages(store, key, drafts);
    expect(known.map(({ record }) => record)).toEqual((await allRecords(store)).map(({ record }) => record));
    await using turn = await openTurn(store, key, { drafts: [userMessage("Thanks")] });
    const history = createHistory("anthropic");
    history.append(turn.records);
    expect(history.render().messages).toEqual([
      { role: "user", content: [{ type: "text", text: "What is in a.txt?" }] },
      ...messages.slice(1),
      { role: "user", content: [{ type: "text", text: "Thanks" }] },
    ]);
  });

  it("are refused by a session that holds messages, and appended when that is asked for", async () => {
    await using store = open();
    await importMessages(store, key, drafts);
    await expect(importMessages(store, key, drafts)).rejects.toMatchObject({
      code: "SESSION_EXISTS",
      outcome: "not-applied",
      message: `Session "${key}" already holds 4 messages.`,
      details: { key, messageCount: 4 },
    });
    expect(await allRecords(store)).toHaveLength(4);
    const more = await importMessages(store, key, [userMessage("And then?")], { whenNotEmpty: "append" });
    expect(more.map(({ seq, parentId }) => ({ seq, parentId }))).toEqual([
      { seq: 5, parentId: (await allRecords(store))[3]?.id },
    ]);
  });

  it("leave no session behind when one of them is refused", async () => {
    await using store = open();
    const bad = { type: "message", message: { role: "user", contnt: "x" } } as never;
    await expect(importMessages(store, key, [...drafts, bad])).rejects.toMatchObject({ code: "INPUT_INVALID" });
    const many = Array.from({ length: store.capabilities.limits.batchRecords + 1 }, () => userMessage("x"));
    await expect(importMessages(store, key, many)).rejects.toMatchObject({ code: "BATCH_TOO_LARGE" });
    expect(await store.load(ref)).toBeNull();
  });
});

describe("an import beside others", () => {
  it("is refused while a turn is open, and takes a session without messages for an empty one", async () => {
    await using store = createMemoryStore();
    const turn = await openTurn(store, key);
    await expect(importMessages(store, key, drafts)).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await turn.close();
    await store.append(ref, [customRecord("acme.ticket", { id: 7 })], {});
    await importMessages(store, key, drafts);
    expect((await store.load(ref))?.messageCount).toBe(4);
  });

  it("wins or loses as a whole against another one", async () => {
    await using store = createMemoryStore();
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => importMessages(store, key, drafts)));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const result of results)
      if (result.status === "rejected") expect(["SESSION_EXISTS", "APPEND_CONFLICT"]).toContain(result.reason.code);
    expect(await allRecords(store)).toHaveLength(4);
  });

  it("is found by its label", async () => {
    await using store = createMemoryStore();
    await importMessages(store, "home", drafts);
    await using turn = await openTurn(store, "home");
    expect(turn.records.filter(({ type }) => type === "message")).toHaveLength(4);
    expect(turn.entry.label).toBe("home");
    expect((await store.list()).sessions).toHaveLength(1);
  });

  it("is a conversation of the facade", async () => {
    const { store, sessions, model } = createFixture();
    const chat = openai.recordsFromMessages([
      { role: "user", content: "My name is Ada." },
      { role: "assistant", content: "Hello Ada." },
    ]);
    await importMessages(store, key, chat);
    await using session = await sessions.open(key);
    expect(session.restored).toMatchObject({ messages: 2 });
    await session.runTurn("What is my name?");
    expect(JSON.stringify(model.requests.at(-1))).toContain("My name is Ada.");
    await sessions.close();
  });
});

describe("an import that is no import", () => {
  it.each<readonly [string, unknown, object, string]>([
    ["one message", drafts[0], {}, "`drafts` must be an array"],
    ["messages of the SDK", messages, {}, "not a valid record"],
    ["an unknown option", drafts, { whenNotEmtpy: "append" }, "did you mean `whenNotEmpty`?"],
    ["an unknown way", drafts, { whenNotEmpty: "merge" }, "`whenNotEmpty` must be one of"],
  ])("%s is refused", async (_name, given, options, message) => {
    await using store = createMemoryStore();
    await expect(importMessages(store, key, given as never, options as never)).rejects.toThrow(message);
    expect(await store.load(ref)).toBeNull();
  });

  it("an empty list makes an empty session, and an archived one is refused", async () => {
    await using store = createMemoryStore();
    expect(await importMessages(store, key, [])).toEqual([]);
    await expect(importMessages(store, { key, archiveId: "1" }, drafts)).rejects.toMatchObject({
      code: "SESSION_ARCHIVED",
    });
  });
});
