import { readFileSync } from "node:fs";
import { protocol } from "@openai/agents-core";
import { foreignFormats } from "@throughline/foreign-formats";
import { describe, expect, it } from "vitest";
import { corpusFiles } from "../corpus-files.ts";
import { readUnits, refusals, talk } from "../read-units.ts";
import { writtenDocument } from "../written-session.ts";

const path = "/p/items.json";

const camel = [
  { type: "message", role: "user", content: "Weather?" },
  {
    type: "reasoning",
    id: "rs_1",
    content: [{ type: "input_text", text: "Look it up." }],
    providerData: { encrypted_content: "ZW5j" },
  },
  {
    type: "function_call",
    id: "fc_1",
    callId: "c1",
    name: "weather",
    arguments: '{"city":"Oslo"}',
    status: "completed",
  },
  { type: "function_call", callId: "c2", name: "weather", arguments: "{broken", status: "completed" },
  {
    type: "function_call_result",
    name: "weather",
    callId: "c1",
    status: "completed",
    output: { type: "text", text: "-3" },
  },
  {
    type: "function_call_result",
    name: "weather",
    callId: "c2",
    status: "completed",
    output: [{ type: "input_text", text: "No." }],
  },
  { type: "hosted_tool_call", name: "web_search", id: "ws_1", status: "completed" },
  {
    type: "message",
    id: "msg_1",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: "Cold." }],
  },
];
const snake = [
  { role: "user", content: "Weather?" },
  { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Look it up." }] },
  { type: "function_call", id: "fc_1", call_id: "c1", name: "weather", arguments: '{"city":"Oslo"}' },
  { type: "function_call", call_id: "c2", name: "weather", arguments: "{broken" },
  { type: "function_call_output", call_id: "c1", output: "-3" },
  { type: "function_call_output", call_id: "c2", output: [{ type: "input_text", text: "No." }] },
  { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "Cold." }] },
];
const said = [
  "user: Weather?",
  "assistant: (thinking)",
  "assistant: ?c1",
  "assistant: ?c2",
  "=c1 toolResult: -3",
  "=c2 toolResult: No.",
  "assistant: Cold.",
];

describe("a session of the OpenAI Agents SDK", () => {
  it.each([
    ["JavaScript", camel],
    ["Python", snake],
  ])("is read from the items of its %s version", (_, items) => {
    const text = JSON.stringify(items, null, 2);
    const sample = { path, head: Buffer.from(text), isWhole: true };
    expect(foreignFormats.get("openai-agents")?.detect(sample)).toBe("certain");
    const session = readUnits("openai-agents", text, path);
    expect(talk(session).filter((line) => !line.includes("hosted"))).toEqual(said);
    expect(session.context.messages.find(({ role }) => role === "toolResult")).toMatchObject({ toolName: "weather" });
    expect(session.findings).toEqual([]);
    expect(refusals(session)).toEqual([]);
  });

  it("is read from rows, and the SDK skips those that are broken", () => {
    const rows = [...snake.map((item) => JSON.stringify(item)), '{"role":"user","content":"torn', "5"];
    const reader = foreignFormats.get("openai-agents")?.createReader({ path });
    const types = rows.map((data, index) => {
      const unit = JSON.stringify({ row: index + 1, created_at: "2026-11-23T10:00:00Z", message_data: data });
      return reader?.push(unit, { line: index + 1, byteOffset: 0 }).records[0].type;
    });
    expect(types).toEqual([...snake.map(() => "message"), "custom", "custom"]);
    expect(reader?.finish().map(({ code, line }) => [code, line])).toEqual([
      ["RECORD_INVALID", 8],
      ["RECORD_INVALID", 9],
    ]);
  });

  it("is written as items that the SDK takes, and means the same", () => {
    const read = readUnits("openai-agents", JSON.stringify(snake), path);
    const { text, losses } = writtenDocument("openai-agents", read);
    const items = JSON.parse(text) as readonly object[];
    for (const item of items) expect(protocol.ModelItem.safeParse(item).error).toBeUndefined();
    const again = readUnits("openai-agents", text, path);
    expect(talk(again).filter((line) => !line.includes("(thinking)"))).toEqual(
      said.filter((line) => !line.includes("(thinking)")),
    );
    // Nothing says which model thought.
    expect(losses).toEqual([
      "left-out thinking",
      "left-out arguments that are no JSON",
      "changed messages without time and usage",
    ]);
  });

  it.skipIf(corpusFiles("openai-agents", ".json").length === 0)(
    "of the corpus is taken by the SDK as it is read",
    () => {
      for (const file of corpusFiles("openai-agents", ".json")) {
        const content = readFileSync(file, "utf8");
        for (const item of JSON.parse(content) as readonly object[])
          expect(protocol.ModelItem.safeParse(item).success).toBe(true);
        const session = readUnits("openai-agents", content, file);
        expect(talk(session).at(-1)).toBe("assistant: It is -3 in Oslo.");
        expect(refusals(session)).toEqual([]);
      }
    },
  );
});
