import { appendFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readWindow, type SessionRef } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { fixtureFolder, header, importAll, jsonLines, message, sessionId } from "./fixture-folder.ts";

const ref: SessionRef = { namespace: "", agentId: "main", key: `agent:main:import:direct:${sessionId}` };

function reply(id: string, parentId: string | null): object {
  const content = [{ type: "text", text: "yes" }];
  return { ...message(id, parentId), message: { role: "assistant", content, provider: "p", model: "m" } };
}

function compaction(id: string, parentId: string | null, firstKeptEntryId: string): object {
  const fields = { timestamp: "2026-01-02T03:04:05.000Z", summary: "before", firstKeptEntryId, tokensBefore: 9 };
  return { type: "compaction", id, parentId, ...fields };
}

const compacted = [
  header,
  message("a", null),
  reply("b", "a"),
  compaction("c1", "b", "b"),
  message("d", "c1"),
  reply("e", "d"),
  compaction("c2", "e", "d"),
  message("f", "c2"),
];

describe("the window of what another program compacted", () => {
  it("begins at what its newest compaction keeps", async () => {
    using folder = fixtureFolder({ "x.jsonl": jsonLines(...compacted) });
    const store = createMemoryStore();
    await importAll(store, folder.at("x.jsonl"));
    const { state, records } = await readWindow(store, ref);
    expect(state.head).toMatchObject({ windowSeq: 5, headId: "f" });
    expect(records.map(({ id }) => id)).toEqual(["d", "e", "c2", "f"]);
    // What follows stays behind it, until there is another compaction.
    appendFileSync(folder.at("x.jsonl"), jsonLines(reply("g", "f")));
    await importAll(store, folder.at("x.jsonl"));
    expect((await store.load(ref))?.head).toMatchObject({ windowSeq: 5, headId: "g" });
    appendFileSync(folder.at("x.jsonl"), jsonLines(compaction("c3", "g", "g")));
    await importAll(store, folder.at("x.jsonl"));
    expect((await store.load(ref))?.head).toMatchObject({ windowSeq: 9, headId: "c3" });
  });

  it.each([
    ["from a record before it", [message("x", "a")], "x", 1],
    ["from a record before it, and is compacted there", [message("x", "b"), compaction("y", "x", "b")], "y", 3],
    ["by a leaf row", [{ type: "leaf", id: "x", parentId: "f", targetId: "a" }], "a", 1],
  ])("is left when the source goes on %s", async (_, lines, headId, windowSeq) => {
    for (const isAtOnce of [false, true]) {
      using folder = fixtureFolder({ "x.jsonl": jsonLines(...compacted, ...(isAtOnce ? lines : [])) });
      const store = createMemoryStore();
      await importAll(store, folder.at("x.jsonl"));
      if (!isAtOnce) appendFileSync(folder.at("x.jsonl"), jsonLines(...lines));
      await importAll(store, folder.at("x.jsonl"));
      const { head } = (await store.load(ref)) ?? {};
      expect([head?.headId, head?.windowSeq ?? 1]).toEqual([headId, windowSeq]);
    }
  });

  it.each([
    ["what is kept is not before the compaction", [reply("b", null), message("x", "b"), compaction("c", "b", "x")]],
    ["nothing in it names the model", [reply("b", null), message("x", "b"), compaction("c", "x", "x")]],
  ])("is the whole session when %s", async (_, lines) => {
    using folder = fixtureFolder({ "x.jsonl": jsonLines(header, ...lines) });
    const store = createMemoryStore();
    await importAll(store, folder.at("x.jsonl"));
    expect((await store.load(ref))?.head.windowSeq ?? null).toBeNull();
  });

  it("is stated by no dry run", async () => {
    using folder = fixtureFolder({ "x.jsonl": jsonLines(...compacted) });
    const store = createMemoryStore();
    await importAll(store, folder.at("x.jsonl"), { dryRun: true });
    expect(await store.load(ref)).toBeNull();
  });
});
