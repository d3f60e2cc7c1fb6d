import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sessionRef, type RecordDraft, type SearchHit, type SessionStore } from "@throughline/core";
import { searchHits } from "@throughline/core/internal/node";
import { createMemoryStore } from "@throughline/store-memory";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterAll, describe, expect, it } from "vitest";
import { findHits, isExactSearch } from "../../src/search/find-hits.ts";
import { rankHits } from "../../src/search/rank-hits.ts";

const folder = mkdtempSync(join(tmpdir(), "find-hits-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let stores = 0;
const kinds = [
  ["memory", (): SessionStore => createMemoryStore()],
  ["SQLite", (): SessionStore => createSqliteStore({ path: join(folder, `${stores++}.db`) })],
  ["JSON Lines", (): SessionStore => createJsonlStore({ root: join(folder, `${stores++}`) })],
] as const;

type Said = readonly ["user" | "assistant" | "toolResult", string];

async function write(store: SessionStore, name: string, said: readonly Said[], agentId = "main"): Promise<void> {
  const ref = sessionRef({ key: `agent:${agentId}:${name}` });
  await store.save(ref, { sessionId: name }, { ifRevision: null });
  const drafts = said.map(([role, text], index): RecordDraft => {
    const answer = role === "toolResult" ? { toolCallId: `c${index}`, toolName: "bash", isError: false } : {};
    return { type: "message", message: { role, content: [{ type: "text", text }], ...answer } } as RecordDraft;
  });
  await store.append(ref, drafts);
}

const usual = { namespace: "", agentId: "main", state: "active", session: null, isScan: false, limit: 1000 } as const;

async function found(
  store: SessionStore,
  text: string,
  filters: Readonly<Record<string, unknown>> = {},
): Promise<readonly string[]> {
  const { hits } = findHits(store, { ...usual, text, signal: new AbortController().signal, ...filters });
  return (await Array.fromAsync(hits)).map(({ sessionId, seq }) => `${sessionId} ${seq}`);
}

describe.each(kinds)("the ranking over a %s store", (_name, open) => {
  it("answers a question of which no record has all words, with the best exchange first", async () => {
    await using store = open();
    await write(store, "weather", [
      ["user", "How was the weather at the harbor?"],
      ["assistant", "It rained."],
    ]);
    await write(store, "pump", [
      ["user", "The pump of the greenhouse stops at night."],
      ["assistant", "The relay overheats, so the pumps stop. Put it into the cellar."],
    ]);
    const [first] = await found(store, "Why did the greenhouse pumps stop working at night?");
    expect(first).toMatch(/^pump /);
    expect(await found(store, "Welche Farbe hat der Kran?")).toEqual([]);
  });

  it("puts output of tools behind all words of people that match as much, and before words that match less", async () => {
    await using store = open();
    await write(store, "log", [["toolResult", `${"ECONNRESET socket ".repeat(30)}reset by peer`]]);
    await write(store, "talk", [["user", "we saw ECONNRESET"]]);
    await write(store, "other", [
      ["user", "the socket, and nothing else in this long text of other words about a lamp"],
    ]);
    expect(await found(store, "ECONNRESET")).toEqual(["talk 1", "log 1"]);
    expect((await found(store, "ECONNRESET socket peer"))[0]).toBe("log 1");
  });

  it("finds records with all words for quotes, beginnings and a whole scan", async () => {
    await using store = open();
    await write(store, "one", [
      ["user", "login bug"],
      ["user", "a bug"],
      ["user", "bug at the login"],
    ]);
    expect((await found(store, "login bugs")).toSorted()).toEqual(["one 1", "one 2", "one 3"]);
    expect(await found(store, '"login bug"')).toEqual(["one 1"]);
    expect((await found(store, "log* bug")).toSorted()).toEqual(["one 1", "one 3"]);
    expect((await found(store, "login bug", { isScan: true })).toSorted()).toEqual(["one 1", "one 3"]);
  });

  it("obeys the filters, and reads no other agent's session", async () => {
    await using store = open();
    await write(store, "mine", [
      ["user", "the ferry leaves"],
      ["assistant", "The ferry left."],
    ]);
    await write(store, "theirs", [["user", "the ferry of others"]], "work");
    expect((await found(store, "When did the ferries leave?")).toSorted()).toEqual(["mine 1", "mine 2"]);
    expect(await found(store, "ferries", { role: "assistant" })).toEqual(["mine 2"]);
    expect(await found(store, "ferries", { isWanted: () => false })).toEqual([]);
    expect(await found(store, "ferries", { limit: 1 })).toHaveLength(1);
  });

  it("stops when it is aborted", async () => {
    await using store = open();
    await write(store, "one", [["user", "ferry"]]);
    await expect(found(store, "ferry", { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "ABORTED" });
  });
});

it("ranks the hits of a session last that was removed after the index answered", async () => {
  await using store = createMemoryStore();
  await write(store, "here", [["user", "one ferry"]]);
  await write(store, "gone", [["user", "a ferry"]]);
  const { signal } = new AbortController();
  const asked = { ...usual, text: "ferry", signal };
  const candidates = async function* (): AsyncGenerator<SearchHit, void, void> {
    yield* searchHits(store, asked).hits;
    await store.remove(sessionRef({ key: "agent:main:gone" }), { purge: true });
  };
  const ranked = rankHits({ question: "ferry", candidates: candidates(), storeOf: () => store, signal: () => signal });
  const hits = await Array.fromAsync(ranked);
  expect(hits.map(({ sessionId, score }) => [sessionId, score > 0])).toEqual([
    ["here", true],
    ["gone", false],
  ]);
});

it("shows what is near in meaning and has no word of the question, behind its filter", async () => {
  await using store = createMemoryStore();
  await write(store, "words", [["user", "the teeth of the gear are worn"]]);
  await write(store, "near", [
    ["user", "The dentist called"],
    ["assistant", "He has time on Monday, so I wrote it down."],
  ]);
  const { signal } = new AbortController();
  const ref = sessionRef({ key: "agent:main:near" });
  const near = [{ ref, sessionId: "near", firstSeq: 1, lastSeq: 2, part: 0, score: 0.9 }];
  const ranked = async (mayShow?: () => boolean): Promise<readonly string[]> => {
    const { hits } = searchHits(store, { ...usual, text: "teeth", signal });
    const asked = { question: "teeth", candidates: hits, near: Promise.resolve(near), mayShow };
    const found = await Array.fromAsync(rankHits({ ...asked, storeOf: () => store, signal: () => signal }));
    return found.map(({ sessionId, seq, snippet }) => `${sessionId} ${seq} ${snippet}`);
  };
  expect(await ranked()).toEqual([
    "words 1 the teeth of the gear are worn",
    "near 2 He has time on Monday, so I wrote it down.",
  ]);
  expect(await ranked(() => false)).toEqual(["words 1 the teeth of the gear are worn"]);
});

it.each([
  ["why did it stop", false],
  ['"it stops"', true],
  ["stop*", true],
  ["2 * 3", true],
  ["a*b", false],
  ["🙂", true],
])("whether %j asks for exact words: %s", (text, expected) => {
  expect(isExactSearch(text)).toBe(expected);
});
