import { buildContext } from "@throughline/history";
import { createMemoryStore } from "@throughline/store-memory";
import type { ImportFormat, ImportSource } from "../src/import-types.ts";
import { describe, expect, it } from "vitest";
import { exported, fixtureFolder, importAll, jsonLines, recordsOf, refOf } from "./fixture-folder.ts";

const call = { id: "c1", type: "function", function: { name: "ls", arguments: "{}" } };
const openai = jsonLines(
  { role: "user", content: "Hi" },
  { role: "assistant", content: null, tool_calls: [call] },
  { role: "tool", tool_call_id: "c1", content: "a.txt" },
);
const anthropic = jsonLines(
  { role: "user", content: "Hi" },
  { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "ls", input: {} }] },
  { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "a.txt" }] },
);
const printed = (id: string, type: string, message: object): object => ({
  type,
  message,
  session_id: "s1",
  uuid: id,
  parent_tool_use_id: null,
});
const stream = jsonLines(
  { type: "system", subtype: "init", session_id: "s1", uuid: "u0" },
  printed("u1", "assistant", { id: "m1", role: "assistant", content: [{ type: "text", text: "I look." }] }),
  printed("u2", "assistant", {
    id: "m1",
    role: "assistant",
    content: [{ type: "tool_use", id: "c1", name: "ls", input: {} }],
  }),
  { ...printed("u9", "user", { role: "user", content: "Search." }), parent_tool_use_id: "c1" },
  printed("u3", "user", { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "a.txt" }] }),
  { type: "result", subtype: "success", session_id: "s1", uuid: "u4" },
);

async function rolesOf(text: string, from: ImportFormat | "auto"): Promise<readonly unknown[]> {
  using folder = fixtureFolder({ "x.jsonl": text });
  await using store = createMemoryStore();
  const [source] = (await importAll(store, folder.at("x.jsonl"), { from })) as [ImportSource];
  if (source.error !== null) return [source.error.code, source.error.remedy];
  const headId = (await store.load(refOf(source)))?.head.headId ?? null;
  const { messages } = buildContext(await recordsOf(store, refOf(source)), { headId });
  if (source.format === "openai" || source.format === "anthropic")
    expect(await exported(store, refOf(source), source.format)).toBe(text);
  return [source.format, ...messages.map(({ role, content }) => `${role} ${content.map(({ type }) => type).join()}`)];
}

describe("a file of lines", () => {
  it.each([
    ["openai", openai],
    ["anthropic", anthropic],
  ] as const)("with a message each keeps calls and results: %s", async (format, text) => {
    const expected = [format, "user text", "assistant toolCall", "toolResult text"];
    expect(await rolesOf(text, "auto")).toEqual(expected);
    expect(await rolesOf(text, format)).toEqual(expected);
  });

  it("that Claude Code printed as it ran is one conversation, without that of its sub-agent", async () => {
    const expected = ["claude-code", "assistant text", "assistant toolCall", "toolResult text"];
    expect(await rolesOf(stream, "auto")).toEqual(expected);
  });

  it("is read as the format that is named where it can be, and refused with a remedy where it cannot", async () => {
    const texts = JSON.stringify({ messages: [{ role: "user", content: [{ type: "text", text: "Hi" }] }] });
    expect(await rolesOf(texts, "auto")).toEqual(["openai", "user text"]);
    expect(await rolesOf(texts, "anthropic")).toEqual(["anthropic", "user text"]);
    const [code, remedy] = await rolesOf(openai, "codex");
    expect([code, String(remedy).includes("--from openai")]).toEqual(["FORMAT_UNKNOWN", true]);
    const [unknown, help] = await rolesOf("nothing\n", "codex");
    expect([unknown, String(help).includes("Name the format")]).toEqual(["FORMAT_UNKNOWN", false]);
  });
});
