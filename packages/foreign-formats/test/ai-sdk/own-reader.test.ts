import { readFileSync } from "node:fs";
import { foreignFormats } from "@throughline/foreign-formats";
import type { FormatLoss } from "../../src/format-writer.ts";
import { describe, expect, it } from "vitest";
import { corpusFiles } from "../corpus-files.ts";
import { jsonLines, readUnits, refusals, type ReadSession } from "../read-units.ts";
import { byPackage, byUs, type Part } from "./package-reader.ts";

const text = (words_: string): Part => ({ type: "text", text: words_ });
const step: Part = { type: "step-start" };
const user = (id: string, ...parts: readonly Part[]): object => ({ id, role: "user", parts });
const reply = (id: string, ...parts: readonly Part[]): object => ({ id, role: "assistant", parts });
const tool = (toolCallId: string, fields: Part): Part => ({
  type: "tool-read",
  toolCallId,
  input: { a: 1 },
  ...fields,
});

const chats: Readonly<Record<string, readonly object[]>> = {
  "steps with tools": [
    { id: "s1", role: "system", parts: [text("Be brief.")] },
    user("u1", text("Read.")),
    reply(
      "a1",
      step,
      { type: "reasoning", text: "Hm.", providerMetadata: { anthropic: { signature: "c2ln" } } },
      text("I read."),
      tool("c1", { state: "output-available", output: "A" }),
      tool("c2", { state: "output-available", output: { b: [1] } }),
      step,
      text("Both."),
      { type: "source-url", sourceId: "x", url: "https://x.example" },
      { type: "data-note", data: { n: 1 } },
    ),
    user("u2", text("And?")),
  ],
  "a tool that failed, and one of which nobody knows the type": [
    user("u1", text("Go.")),
    reply(
      "a1",
      step,
      tool("c1", { state: "output-error", errorText: "It broke." }),
      { type: "dynamic-tool", toolName: "run", toolCallId: "c2", state: "output-available", input: {}, output: "ok" },
      step,
      text("Done."),
    ),
  ],
  "an image": [
    user("u1", text("See"), { type: "file", mediaType: "image/png", url: "data:image/png;base64,iVBORw0KGgo=" }),
    user("u2", { type: "file", mediaType: "image/png", url: "https://x.example/a.png" }),
    reply("a1", text("Yes.")),
  ],
};

describe("messages of the AI SDK", () => {
  it.each(Object.keys(chats))("mean what the package would send: %s", async (name) => {
    const messages = chats[name] ?? [];
    const session = readUnits("ai-sdk", JSON.stringify(messages, null, 2), "/p/chat.json");
    expect(byUs(session)).toEqual(await byPackage(messages));
    expect(refusals(session)).toEqual([]);
    expect(session.findings).toEqual([]);
  });

  it.skipIf(corpusFiles("ai-sdk", ".json").length === 0)("of the corpus mean what the package would send", async () => {
    for (const file of corpusFiles("ai-sdk", ".json")) {
      const content = readFileSync(file, "utf8");
      expect(byUs(readUnits("ai-sdk", content, file))).toEqual(await byPackage(JSON.parse(content) as object[]));
    }
  });

  it.each(Object.keys(chats))("are written so that the package takes them, and mean the same: %s", async (name) => {
    const read = readUnits("ai-sdk", JSON.stringify(chats[name]), "/p/chat.json");
    const { written, losses } = writtenOf(read);
    expect(await byPackage(written)).toEqual(await byPackage(chats[name] ?? []));
    expect(losses).toEqual([]);
    const again = readUnits("ai-sdk", JSON.stringify(written), "/p/chat.json");
    expect(byUs(again)).toEqual(byUs(read));
  });

  it("of another program are written with thinking, models and times", async () => {
    const lines = [
      { sessionId: "s", projectHash: "h", startTime: "2026-05-07T18:00:00.000Z" },
      { id: "u1", timestamp: "2026-05-07T18:00:01.000Z", type: "user", content: "Hi" },
      {
        id: "g1",
        timestamp: "2026-05-07T18:00:02.000Z",
        type: "gemini",
        content: "Hello.",
        model: "gemini-3-pro",
        thoughts: [{ subject: "", description: "Hm." }],
      },
    ];
    const { written, losses } = writtenOf(readUnits("gemini", jsonLines(...lines), "/p/session-a.jsonl"));
    expect(await byPackage(written)).toEqual(["user: Hi", "assistant: (Hm.) Hello."]);
    expect(written[1]).toMatchObject({
      metadata: { createdAt: "2026-05-07T18:00:02.000Z", model: "gemini-3-pro", provider: "google" },
    });
    expect(losses).toEqual([]);
    const again = readUnits("ai-sdk", JSON.stringify(written), "/p/chat.json");
    expect(again.context.messages[1]).toMatchObject({ model: "gemini-3-pro", provider: "google" });
    expect(again.records.map(({ tsMs }) => tsMs)).toContain(Date.UTC(2026, 4, 7, 18, 0, 2));
  });

  it("of version 4 are read by their fields", () => {
    const old = [
      { id: "1", role: "user", content: "Weather?", createdAt: "2025-01-02T03:04:05.000Z" },
      {
        id: "2",
        role: "assistant",
        content: "Cold.",
        reasoning: "Hm.",
        toolInvocations: [
          { state: "result", toolCallId: "c1", toolName: "weather", args: { a: 1 }, result: { c: -3 } },
        ],
      },
    ];
    const bytes = JSON.stringify(old);
    const sample = { path: "/p/chat.json", head: Buffer.from(bytes), isWhole: true };
    expect(foreignFormats.get("ai-sdk")?.detect(sample)).toBe("certain");
    const session = readUnits("ai-sdk", bytes, "/p/chat.json");
    expect(byUs(session)).toEqual(["user: Weather?", "assistant: (Hm.) Cold. ?c1", 'tool: =c1 {"c":-3}']);
    expect(session.records.every(({ tsMs }) => tsMs === 0 || tsMs === Date.UTC(2025, 0, 2, 3, 4, 5))).toBe(true);
  });

  it("that are odd are kept, and the others are read", () => {
    const odd = [
      { id: "__proto__", role: "user", parts: [text("Hi"), null, 7, { type: 5 }, { type: "file" }] },
      { id: "a1", role: "assistant", parts: [tool("", {}), tool("c1", { state: "input-streaming" }), text("Yo")] },
      { id: "a1", role: "assistant", parts: "none" },
      { id: "x", role: "nobody", parts: [] },
      { id: 5, role: "user", content: 5 },
    ];
    const session = readUnits("ai-sdk", JSON.stringify(odd), "/p/chat.json");
    expect(byUs(session).slice(0, 2)).toEqual(["user: Hi", "assistant: Yo"]);
    expect(session.findings.map(({ code, line }) => [code, line])).toEqual([["RECORD_INVALID", 5]]);
    expect(refusals(session)).toEqual([]);
  });
});

function writtenOf({ records, headId }: ReadSession): {
  readonly written: readonly object[];
  readonly losses: readonly FormatLoss[];
} {
  const session = { records, headId, sessionId: "s", cwd: "", label: null, title: null, createdAtMs: 0 };
  const losses: FormatLoss[] = [];
  const { writer } = foreignFormats.get("ai-sdk") ?? {};
  const pieces = [...(writer?.write(session, { onLoss: (loss) => losses.push(loss) }) ?? [])];
  const texts = pieces.filter((text) => text !== undefined);
  return { written: texts.map((one) => JSON.parse(one) as object), losses };
}
