import { buildContext } from "@throughline/history";
import { createMemoryStore } from "@throughline/store-memory";
import type { ImportSource } from "../src/import-types.ts";
import { describe, expect, it } from "vitest";
import { exported, fixtureFolder, header, importAll, jsonLines, message, recordsOf, refOf } from "./fixture-folder.ts";

const at = { timestamp: "2026-02-01T16:10:51.000Z" };
const call = {
  ...message("b", "a"),
  message: { role: "assistant", content: [{ type: "toolCall", id: "toolu_open", name: "bash", arguments: {} }] },
};
const answer = { role: "toolResult", toolCallId: "toolu_open", toolName: "bash", content: "built", isError: false };
const compaction = (parentId: string): object => ({
  type: "compaction",
  id: "c",
  parentId,
  ...at,
  summary: "In short.",
  firstKeptEntryId: "b",
  tokensBefore: 9,
});

const logs: readonly (readonly [string, readonly unknown[]])[] = [
  ["open when they are compacted", [message("a", null), call, compaction("b"), message("d", "c", "And?")]],
  [
    "open when the conversation continues",
    [message("a", null), call, message("x", "b"), compaction("x"), message("d", "c")],
  ],
  [
    "answered behind the compaction",
    [message("a", null), call, compaction("b"), { ...message("d", "c"), message: answer }, message("e", "d")],
  ],
  ["open at the end", [message("a", null), call, compaction("b")]],
];

const cases = logs.flatMap(([title, lines]) =>
  (["claude-code", "codex", "gemini"] as const).map((to) => [title, to, lines] as const),
);

describe("an export of calls that a compaction keeps", () => {
  it.each(cases)("has one result for each that is %s: %s", async (_, to, lines) => {
    using folder = fixtureFolder({ "x.jsonl": jsonLines(header, ...lines) });
    await using store = createMemoryStore();
    const [source] = (await importAll(store, folder.at("x.jsonl"))) as [ImportSource];
    const text = await exported(store, refOf(source), to);
    // The others write what is kept a second time, behind the compaction.
    if (to === "claude-code") expect(text.match(/"tool_use_id":"toolu_open"/g)).toHaveLength(1);
    const [again] = (await importAll(store, folder.write("y.jsonl", Buffer.from(text, "latin1")))) as [ImportSource];
    const headId = (await store.load(refOf(again)))?.head.headId ?? null;
    const { messages } = buildContext(await recordsOf(store, refOf(again)), { headId });
    const results = messages.filter(({ role }) => role === "toolResult");
    const isBuilt = JSON.stringify(results).includes("built");
    expect([results.length, isBuilt]).toEqual([1, JSON.stringify(lines).includes("built")]);
  });
});
