import { appendFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readWindow, type SessionRef } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { buildContext } from "@throughline/history";
import type { ImportSource } from "../src/import-types.ts";
import { fixtureFolder, header, importAll, jsonLines, message, recordsOf, refOf, sessionId } from "./fixture-folder.ts";

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
    ["is the whole session when what it keeps is not before the compaction", "b", "x", null],
    ["begins with the last reply when nothing in it names the model", "x", "x", 3],
  ])("%s", async (_, parentId, keptId, windowSeq) => {
    const lines = [message("a", null), reply("b", "a"), message("x", "b"), compaction("c", parentId, keptId)];
    using folder = fixtureFolder({ "x.jsonl": jsonLines(header, ...lines) });
    const store = createMemoryStore();
    await importAll(store, folder.at("x.jsonl"));
    expect((await store.load(ref))?.head.windowSeq ?? null).toBe(windowSeq);
  });

  const at = { timestamp: "2026-01-02T03:04:05.000Z" };
  const codex = (type: string, payload: object): object => ({ ...at, type, payload });
  const said = (role: string, text: string): object =>
    codex("response_item", { type: "message", role, content: [{ type: "input_text", text }] });
  const settings: readonly (readonly [string, readonly unknown[], readonly [string | undefined, string]])[] = [
    [
      "pi",
      [
        header,
        { type: "thinking_level_change", id: "t", parentId: null, thinkingLevel: "high", ...at },
        { type: "model_change", id: "m", parentId: "t", provider: "p", modelId: "m1", ...at },
        message("a", "m"),
        message("b", "a"),
        compaction("c", "b", "b"),
        message("d", "c"),
      ],
      ["m1", "high"],
    ],
    [
      "Codex",
      [
        codex("session_meta", { id: "019e03b2-11a2-7320-9098-5d831813e66c" }),
        codex("turn_context", { model: "gpt-5", effort: "high" }),
        said("user", "Old"),
        codex("compacted", { message: "Short.", replacement_history: [] }),
        said("user", "New"),
      ],
      ["gpt-5", "high"],
    ],
  ];
  it.each(settings)("has the model and the thinking level that were set before it: %s", async (_, lines, expected) => {
    using folder = fixtureFolder({ "x.jsonl": jsonLines(...lines) });
    const store = createMemoryStore();
    const [source] = await importAll(store, folder.at("x.jsonl"));
    const whole = refOf(source as ImportSource);
    const { state, records } = await readWindow(store, whole);
    const { model, thinkingLevel } = buildContext(records, { headId: state.head.headId });
    expect([model?.modelId, thinkingLevel]).toEqual(expected);
    // The same where nobody stated a window.
    const copy = createMemoryStore();
    await copy.save(whole, { sessionId: "copy" }, { ifRevision: null });
    await copy.append(
      whole,
      (await recordsOf(store, whole)).map(({ record }) => record),
    );
    const unstated = await readWindow(copy, whole);
    expect(unstated.state.head.windowSeq).toBeNull();
    expect(buildContext(unstated.records).thinkingLevel).toBe(thinkingLevel);
    expect(buildContext(unstated.records).model).toEqual(model);
  });

  it("is stated by no dry run", async () => {
    using folder = fixtureFolder({ "x.jsonl": jsonLines(...compacted) });
    const store = createMemoryStore();
    await importAll(store, folder.at("x.jsonl"), { dryRun: true });
    expect(await store.load(ref)).toBeNull();
  });
});
