import { mkdirSync, writeFileSync } from "node:fs";
import { sessionRef, type SessionRef, type SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { userDraft } from "./session-fixture.ts";
import { filesBelow, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const parent = "agent:main:telegram:group:42";

function transcript(sessionId: string, text: string): string {
  const at = { timestamp: "2026-01-02T03:04:05.006Z" };
  const lines = [
    { type: "session", version: 3, id: sessionId, cwd: "/w", ...at },
    { type: "message", id: `m-${text}`, parentId: null, ...at, message: { role: "user", content: text } },
  ];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

async function textsOf(store: SessionStore, ref: SessionRef): Promise<readonly unknown[]> {
  const pages = await Array.fromAsync(store.read(ref));
  return pages
    .flatMap(({ records }) => records)
    .filter(({ type }) => type === "message")
    .map(({ record }) => (record["message"] as { readonly content: unknown }).content);
}

/** A folder as OpenClaw leaves it: the entries, and transcripts by their names. */
function openClawFolder(entries: object, transcripts: Readonly<Record<string, string>>): string {
  const root = newFolder();
  const sessions = `${root}/agents/main/sessions`;
  mkdirSync(sessions, { recursive: true });
  writeFileSync(`${sessions}/sessions.json`, JSON.stringify(entries));
  for (const [name, text] of Object.entries(transcripts)) writeFileSync(`${sessions}/${name}`, text);
  return root;
}

describe("a topic's transcript of OpenClaw", () => {
  it.each([
    ["topic", "7", "abc-topic-7.jsonl"],
    ["thread", "7", "abc-topic-7.jsonl"],
    ["topic", "a b", "abc-topic-a%20b.jsonl"],
  ])("is found by the key of its entry, beside that of its conversation: %s %s", async (kind, id, fileName) => {
    const key = `${parent}:${kind}:${id}`;
    for (const entries of [
      { [parent]: { sessionId: "abc", updatedAt: 5 }, [key]: { sessionId: "abc", updatedAt: 6, label: "topic" } },
      { [key]: { sessionId: "abc", updatedAt: 6, label: "topic" }, [parent]: { sessionId: "abc", updatedAt: 5 } },
    ]) {
      const root = openClawFolder(entries, {
        "abc.jsonl": transcript("abc", "in the group"),
        [fileName]: transcript("abc", "in the topic"),
      });
      const refs = [sessionRef({ key: parent }), sessionRef({ key })] as const;
      await using store = createJsonlStore({ root });
      expect([await textsOf(store, refs[0]), await textsOf(store, refs[1])]).toEqual([
        ["in the group"],
        ["in the topic"],
      ]);
      expect((await store.load(refs[0]))?.sessionId).toBe("abc");
      expect((await store.load(refs[1]))?.entry.label).toBe("topic");
      expect((await store.list({ state: "any" })).sessions).toHaveLength(2);
      await store.append(refs[1], [userDraft("more")]);
      await store.close();
      await using again = createJsonlStore({ root });
      expect([await textsOf(again, refs[0]), await textsOf(again, refs[1])]).toEqual([
        ["in the group"],
        ["in the topic", "more"],
      ]);
      expect(filesBelow(root).filter((path) => path.endsWith(".jsonl"))).toHaveLength(2);
    }
  });

  it("is found where its conversation has no transcript, and several topics are kept apart", async () => {
    const keys = ["7", "8"].map((id) => `${parent}:topic:${id}`);
    const root = openClawFolder(Object.fromEntries(keys.map((key) => [key, { sessionId: "abc", updatedAt: 5 }])), {
      "abc-topic-7.jsonl": transcript("abc", "seven"),
      "abc-topic-8.jsonl": transcript("abc", "eight"),
    });
    await using store = createJsonlStore({ root });
    const texts = await Promise.all(keys.map((key) => textsOf(store, sessionRef({ key }))));
    expect(texts).toEqual([["seven"], ["eight"]]);
  });

  it("that the entry names counts before the key", async () => {
    const key = `${parent}:topic:7`;
    const root = openClawFolder(
      { [key]: { sessionId: "abc", sessionFile: "/other/abc-topic-9.jsonl", updatedAt: 5 } },
      { "abc-topic-7.jsonl": transcript("abc", "seven"), "abc-topic-9.jsonl": transcript("abc", "nine") },
    );
    await using store = createJsonlStore({ root });
    expect(await textsOf(store, sessionRef({ key }))).toEqual(["nine"]);
  });

  it("is the one without a topic in its name where the folder has no other", async () => {
    const key = `${parent}:topic:7`;
    const root = openClawFolder(
      { [key]: { sessionId: "abc", updatedAt: 5 } },
      { "abc.jsonl": transcript("abc", "plain") },
    );
    await using store = createJsonlStore({ root });
    expect(await textsOf(store, sessionRef({ key }))).toEqual(["plain"]);
  });

  it("leaves its conversation's to the conversation, whichever entry comes first", async () => {
    const key = `${parent}:topic:7`;
    const entries = { [key]: { sessionId: "abc", updatedAt: 6 }, [parent]: { sessionId: "abc", updatedAt: 5 } };
    const root = openClawFolder(entries, { "abc.jsonl": transcript("abc", "in the group") });
    await using store = createJsonlStore({ root });
    expect(await textsOf(store, sessionRef({ key: parent }))).toEqual(["in the group"]);
    expect((await store.load(sessionRef({ key: parent })))?.sessionId).toBe("abc");
    expect(await store.load(sessionRef({ key }))).toBeNull();
  });

  it("does not hide its conversation where neither has a transcript yet", async () => {
    const key = `${parent}:topic:7`;
    const entries = { [key]: { sessionId: "abc", updatedAt: 6 }, [parent]: { sessionId: "abc", updatedAt: 5 } };
    await using store = createJsonlStore({ root: openClawFolder(entries, {}) });
    expect((await store.load(sessionRef({ key: parent })))?.sessionId).toBe("abc");
  });

  it("gets its name where the entry is there and no transcript yet", async () => {
    const key = `${parent}:topic:7`;
    const root = openClawFolder({ [key]: { sessionId: "abc", updatedAt: 5, label: "topic" } }, {});
    await using store = createJsonlStore({ root });
    expect((await store.load(sessionRef({ key })))?.entry.label).toBe("topic");
    await store.append(sessionRef({ key }), [userDraft("first")]);
    expect(filesBelow(root).filter((path) => path.endsWith(".jsonl"))).toEqual([
      "agents/main/sessions/abc-topic-7.jsonl",
    ]);
  });
});
