import { buildContext } from "@throughline/history";
import { historyTargets, type NeutralMessage } from "@throughline/history/internal";
import type { SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import type { ExportFormat } from "../src/export-types.ts";
import { exportSession } from "@throughline/transfer";
import type { ImportSource } from "../src/import-types.ts";
import { describe, expect, it } from "vitest";
import { fixtureFolder, importAll, jsonLines, recordsOf, refOf, type FixtureFolder } from "./fixture-folder.ts";

const id = "5e551011-0000-4000-8000-000000000001";
const uuid = (digit: number): string => `00000000-0000-4000-8000-00000000000${digit}`;
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

function line(digit: number, fields: object): object {
  const parentUuid = digit === 1 ? null : uuid(digit - 1);
  const place = { parentUuid, isSidechain: false, sessionId: id, cwd: "/home/u/project", version: "2.1.132" };
  return {
    ...place,
    ...fields,
    uuid: uuid(digit),
    timestamp: new Date(Date.UTC(2026, 4, 7, 18, 0, digit)).toISOString(),
  };
}

function reply(digit: number, messageId: string, block: object): object {
  const usage = { input_tokens: 3, cache_read_input_tokens: 7, output_tokens: 20 };
  const message = {
    id: messageId,
    type: "message",
    role: "assistant",
    model: "claude-opus-4-7",
    content: [block],
    usage,
  };
  return line(digit, { type: "assistant", message: { ...message, stop_reason: null } });
}

/** A question with an image, thinking, two calls of which one failed, an answer, and another question. */
const conversation = jsonLines(
  line(1, {
    type: "user",
    message: {
      role: "user",
      content: [
        { type: "text", text: "What is in a.txt?" },
        { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
      ],
    },
  }),
  reply(2, "msg_1", { type: "thinking", thinking: "Look at both.", signature: "c2lnbmF0dXJl" }),
  reply(3, "msg_1", { type: "text", text: "I look." }),
  reply(4, "msg_1", { type: "tool_use", id: "toolu_1", name: "Read", input: { file_path: "a.txt" } }),
  line(5, {
    type: "user",
    message: { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "hello" }] },
  }),
  reply(6, "msg_2", { type: "tool_use", id: "toolu_2", name: "Read", input: { file_path: "b.txt" } }),
  line(7, {
    type: "user",
    message: {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "toolu_2", content: "No such file.", is_error: true }],
    },
  }),
  reply(8, "msg_3", { type: "text", text: "It says hello." }),
  line(9, { type: "user", message: { role: "user", content: "Thanks \u2028 \u{1F30A}" } }),
);

interface Hop {
  readonly text: string;
  /** What is in the context, a message each; parts of a reply are one. */
  readonly left: readonly string[];
  readonly losses: readonly string[];
}

function shown(messages: readonly NeutralMessage[]): readonly string[] {
  const found: { readonly role: string; readonly words: string[] }[] = [];
  for (const message of messages) {
    const words = message.content.map((block) => {
      if (block.type === "text") return block.text;
      if (block.type === "toolCall") return `?${JSON.stringify(block.arguments)}`;
      return `[${block.type}]`;
    });
    const last = found.at(-1);
    if (message.role === "assistant" && last?.role === "assistant") last.words.push(...words);
    else found.push({ role: message.role, words });
  }
  return found.map(({ role, words }) => `${role}: ${words.join(" ")}`);
}

/** Imports a text, and exports it in the form of the next program. */
async function hop(folder: FixtureFolder, name: string, text: string, to: ExportFormat): Promise<Hop> {
  await using store: SessionStore = createMemoryStore();
  const [source] = (await importAll(store, folder.write(name, text))) as [ImportSource];
  expect(source).toMatchObject({ state: "imported", lost: [], repaired: 0, error: null });
  const state = await store.load(refOf(source));
  const context = buildContext(await recordsOf(store, refOf(source)), { headId: state?.head.headId ?? null });
  for (const { render, validate } of historyTargets.values())
    expect(validate(render(context).messages, context.model?.modelId)).toEqual([]);
  const losses: string[] = [];
  const onRemark = ({
    what,
    kind,
    reason,
  }: {
    readonly what: string;
    readonly kind?: string;
    readonly reason: string;
  }): void => {
    if (kind !== undefined || what === "left-out") losses.push(`${what} ${kind ?? reason}`);
  };
  const parts = await Array.fromAsync(exportSession(store, refOf(source), { to, onRemark }));
  return { text: Buffer.concat(parts).toString(), left: shown(context.messages), losses: [...new Set(losses)] };
}

const whole = [
  "user: What is in a.txt? [image]",
  'assistant: [thinking] I look. ?{"file_path":"a.txt"}',
  "toolResult: hello",
  'assistant: ?{"file_path":"b.txt"}',
  "toolResult: No such file.",
  "assistant: It says hello.",
  "user: Thanks \u2028 \u{1F30A}",
];
const withoutThinking = whole.map((message) => message.replace("[thinking] ", ""));

describe("a conversation that is carried from program to program", () => {
  it("keeps its words, calls, results and images at each hop, and what it loses is reported", async () => {
    using folder = fixtureFolder();
    const hops: readonly (readonly [ExportFormat, readonly string[], readonly string[]])[] = [
      // Codex keeps no thinking that its own service did not encrypt, and has no mark for a failed result.
      ["codex", whole, ["left-out thinking", "changed failed result as text"]],
      ["pi", withoutThinking, []],
      ["openclaw", withoutThinking, []],
      ["ai-sdk", withoutThinking, []],
      ["openai-agents", withoutThinking, ["changed messages without time and usage"]],
      ["anthropic", withoutThinking, ["changed messages without time and usage"]],
      // A list of messages does not say which model wrote them.
      ["claude-code", withoutThinking, ["added model of a reply"]],
    ];
    let [text, name] = [conversation, `${id}.jsonl`];
    const found: [ExportFormat, readonly string[], readonly string[]][] = [];
    for (const [to] of hops) {
      const carried = await hop(folder, name, text, to);
      found.push([to, carried.left, carried.losses]);
      ({ text } = carried);
      name = `to-${to}.${text.startsWith('{"messages') || text.startsWith("[") ? "json" : "jsonl"}`;
    }
    expect(found).toEqual(hops);
    expect((await hop(folder, name, text, "jsonl")).left).toEqual(withoutThinking);
  });
});
