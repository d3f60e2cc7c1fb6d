import fc from "fast-check";
import { buildContext, type HistoryTarget } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import type { RenderOptions } from "../src/render-options.ts";
import type { TargetName } from "../src/provider-mappings.ts";
import * as anthropic from "@throughline/history/anthropic";
import * as bedrock from "@throughline/history/bedrock";
import * as gemini from "@throughline/history/gemini";
import * as mistral from "@throughline/history/mistral";
import * as ollama from "@throughline/history/ollama";
import * as openai from "@throughline/history/openai";
import { describe, expect, it } from "vitest";
import { randomLog, validLog } from "./random-logs.ts";
import { richLogs, type RichLogWriter } from "./rich-logs.ts";
import { storedRecords } from "./stored-records.ts";
import { runs } from "./test-runs.ts";

type Entry = Pick<typeof anthropic, "recordsFromMessages" | "recordFromReply">;

const entries: readonly (readonly [TargetName, Entry])[] = [
  ["anthropic", anthropic],
  ["openai", openai],
  ["openai-responses", openai],
  ["ollama", ollama],
  ["gemini", gemini],
  ["mistral", mistral],
  ["bedrock", bedrock],
];

/** Whose thinking goes back; nothing is made up at the end, and instructions stay what they are. */
const options: RenderOptions = { target: { provider: "acme", modelId: "gemini-2" }, trailingAssistant: "keep" };

/** What stands in one message of a provider may be several records, which become one message again. */
const reshaping: ReadonlySet<string> = new Set(["user-merged"]);

const signatures: Readonly<Record<TargetName, RichLogWriter["signature"]>> = {
  anthropic: (place) => `sig${place}`,
  openai: () => "reasoning_content",
  "openai-responses": (place) =>
    JSON.stringify({ type: "reasoning", id: `rs_${place}`, summary: [], encrypted_content: "e" }),
  ollama: () => null,
  gemini: () => "c2ln",
  mistral: () => null,
  bedrock: (place) => `sig${place}`,
};

const kindsOfBlocks: Readonly<Record<string, RegExp>> = {
  calls: /"(?:tool_use|tool_calls|function_call|functionCall|toolUse)"/,
  failures: /"is_error":true|"\[error\]|"error":|"status":"error"/,
  thinking: /"thinking"|"reasoning|"thought"/,
  images: /"image|"inlineData"|"input_image"/,
  instructions: /"role":"system"|<system>/,
};

describe.each(entries)("messages of %s", (name, { recordsFromMessages }) => {
  const target = historyTargets.get(name) as HistoryTarget;
  const inline = !["gemini", "bedrock"].includes(name);
  const rendering: RenderOptions = { ...options, ...(inline ? { systemMessages: "inline" } : {}) };

  const writer: RichLogWriter = {
    api: [...target.mapping.rules.apis][0] ?? "",
    provider: "acme",
    model: "gemini-2",
    signature: signatures[name],
  };

  /** The rendering of what the messages become, and by which rules it differs. */
  function again(messages: readonly unknown[]): { messages: readonly unknown[]; rules: readonly string[] } {
    const drafts = recordsFromMessages(messages, { model: "gemini-2", provider: "acme" });
    const { messages: rendered, repairs } = target.render(buildContext(storedRecords(drafts)), rendering);
    return { messages: rendered, rules: repairs.map(({ rule }) => rule) };
  }

  /** Everything a log holds, as messages: every text, call, result, image and document that the provider takes. */
  function messagesOf(records: Parameters<typeof buildContext>[0]): readonly unknown[] {
    const written = records.map((stored) => {
      const message = stored.record["message"] as Readonly<Record<string, unknown>> | null | undefined;
      if (message?.["role"] !== "assistant") return stored;
      const own = { ...message, provider: "acme", model: "gemini-2", api: [...target.mapping.rules.apis][0] };
      return { ...stored, record: { ...stored.record, message: own } };
    });
    return target.render(buildContext(written), rendering).messages;
  }

  it("become records whose rendering is the same messages", { tags: ["slow"] }, () => {
    const seen = new Map<string, string>();
    const kinds = new Map<string, number>();
    fc.assert(
      fc.property(fc.oneof(randomLog, validLog, richLogs(writer), richLogs(writer)), (records) => {
        const messages = messagesOf(records);
        const json = JSON.stringify(messages);
        for (const [kind, pattern] of Object.entries(kindsOfBlocks))
          if (pattern.test(json)) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
        const { messages: rendered, rules } = again(messages);
        for (const rule of rules) seen.set(rule, json.slice(0, 700));
        expect(rendered).toEqual(messages);
      }),
      runs(400),
    );
    expect([...seen].filter(([rule]) => !reshaping.has(rule))).toEqual([]);
    // What never occurs is not tried.
    for (const kind of Object.keys(kindsOfBlocks)) expect(kinds.get(kind) ?? 0, kind).toBeGreaterThan(5);
  });
});

describe("messages that cannot be read", () => {
  const refused = (entry: Entry, messages: unknown, message: string): void =>
    expect(() => entry.recordsFromMessages(messages as unknown[])).toThrow(
      expect.objectContaining({ code: "INPUT_INVALID", message: expect.stringContaining(message) as string }),
    );

  it.each(entries)("of %s are refused by their place", (name, entry) => {
    refused(entry, null, "recordsFromMessages(): `messages` must be an array; received null.");
    refused(entry, { role: "user" }, "`messages` must be an array; received an object.");
    refused(entry, [null], "`messages[0]` must be an object; received null.");
    const said = name === "ollama" ? "a" : [{ text: "a", type: "text" }];
    const hello = name === "gemini" ? { parts: [{ text: "a" }] } : { content: said };
    refused(
      entry,
      [
        { role: "user", ...hello },
        { role: "narrator", ...hello },
      ],
      "`messages[1].role` must be one of",
    );
    expect(() => (entry.recordsFromMessages as (...args: unknown[]) => unknown)([], { modle: "x" })).toThrow(
      "recordsFromMessages(): `modle` is not an option; did you mean `model`?",
    );
    expect(() => entry.recordFromReply(null)).toThrow("recordFromReply(): `reply` must be an object; received null.");
    expect(() => entry.recordFromReply({})).toThrow(/recordFromReply\(\): `reply\.[a-z.]+` must be/);
  });

  it.each<readonly [Entry, unknown, string]>([
    [anthropic, { role: "user", content: 5 }, "`messages[0].content` must be an array; received 5."],
    [anthropic, { role: "user", content: [{ type: "text" }] }, "`messages[0].content[0].text` must be a text"],
    [anthropic, { role: "user", content: [{ text: "a" }] }, "`messages[0].content[0].type` must be a text"],
    [anthropic, { role: "user", content: [{ type: "tool_result" }] }, "`messages[0].content[0].tool_use_id`"],
    [anthropic, { role: "assistant", content: [{ type: "tool_use", id: "a" }] }, "`messages[0].content[0].name`"],
    [anthropic, { role: "assistant", content: [{ type: "thinking" }] }, "`messages[0].content[0].thinking`"],
    [openai, { role: "tool", content: "a" }, "`messages[0].tool_call_id` must be a text; received undefined."],
    [openai, { role: "user" }, "`messages[0].content` must be an array; received undefined."],
    [
      openai,
      { role: "assistant", tool_calls: [{ id: "a" }] },
      "`messages[0].tool_calls[0].function` must be an object",
    ],
    [openai, { role: "user", content: [{ type: "image_url", image_url: "a" }] }, "`messages[0].content[0].image_url`"],
    [openai, { type: "function_call", name: "a" }, "`messages[0].call_id` must be a text"],
    [openai, { type: "function_call_output", call_id: "a" }, "`messages[0].output` must be an array"],
    [openai, { type: "message", role: "tool", content: "a" }, "`messages[0].role` must be one of"],
    [ollama, { role: "assistant", tool_calls: {} }, "`messages[0].tool_calls` must be an array"],
    [ollama, { role: "user", content: "a", images: [5] }, "`messages[0].images[0]` must be a text; received 5."],
    [gemini, { role: "model" }, "`messages[0].parts` must be an array; received undefined."],
    [gemini, { role: "user", parts: [{ functionResponse: {} }] }, "`messages[0].parts[0].functionResponse.name`"],
    [mistral, { role: "user", content: [{ type: "image_url" }] }, "`messages[0].content[0].image_url` must be a text"],
    [bedrock, { role: "user", content: "a" }, '`messages[0].content` must be an array; received "a".'],
    [bedrock, { role: "user", content: [{ toolResult: {} }] }, "`messages[0].content[0].toolResult.toolUseId`"],
    [
      bedrock,
      { role: "assistant", content: [{ toolUse: { toolUseId: "a" } }] },
      "`messages[0].content[0].toolUse.name`",
    ],
  ])("are refused by their field: case %#", (entry, message, expected) => refused(entry, [message], expected));
});
