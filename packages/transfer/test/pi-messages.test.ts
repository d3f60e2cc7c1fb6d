import { createMemoryStore } from "@throughline/store-memory";
import type { ExportFormat } from "../src/export-types.ts";
import { exportSession } from "@throughline/transfer";
import type { ImportSource } from "../src/import-types.ts";
import { describe, expect, it } from "vitest";
import { exported, fixtureFolder, header, importAll, jsonLines, refOf } from "./fixture-folder.ts";

type Fields = Readonly<Record<string, unknown>>;

const chat = JSON.stringify({
  model: "gpt-5",
  messages: [
    { role: "user", content: "Read it." },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "read", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "c1", content: "hello" },
    { role: "assistant", content: "It says hello." },
  ],
});

describe.each<ExportFormat>(["pi", "openclaw"])("a message that %s did not write", (to) => {
  it("has the usage and the lists that its reader fails without, and that is reported", async () => {
    using folder = fixtureFolder();
    await using store = createMemoryStore();
    const [source] = (await importAll(store, folder.write("chat.json", chat))) as [ImportSource];
    await store.append(refOf(source), [
      { type: "message", message: { role: "user", content: "And?" } },
      { type: "message", message: { role: "assistant", content: "Nothing." } },
    ]);
    const remarks: string[] = [];
    const parts = await Array.fromAsync(
      exportSession(store, refOf(source), {
        to,
        onRemark: ({ what, reason }) => void remarks.push(`${what} ${reason}`),
      }),
    );
    const lines = Buffer.concat(parts).toString().trimEnd().split("\n");
    const messages = lines.flatMap((line): readonly Fields[] => {
      const { message } = JSON.parse(line) as { readonly message?: Fields };
      return message === undefined ? [] : [message];
    });
    expect(messages.filter(({ role }) => role !== "user").every(({ content }) => Array.isArray(content))).toBe(true);
    const replies = messages.filter(({ role }) => role === "assistant");
    expect(replies.map(({ usage }) => (usage as Fields)["totalTokens"])).toEqual([0, 0, 0]);
    expect(messages.find(({ role }) => role === "toolResult")?.["content"]).toEqual([{ type: "text", text: "hello" }]);
    expect(remarks.filter((remark) => remark === "added usage of a reply")).toHaveLength(3);
  });

  it("is left as it is where it came in so", async () => {
    using folder = fixtureFolder();
    await using store = createMemoryStore();
    const line = {
      type: "message",
      id: "a1",
      parentId: null,
      timestamp: "2026-02-01T16:10:51.000Z",
      message: { role: "assistant", content: "Hi" },
    };
    const text = jsonLines(header, line);
    const [source] = (await importAll(store, folder.write("s.jsonl", text))) as [ImportSource];
    expect(await exported(store, refOf(source), to)).toBe(text);
  });
});
