import type { AssistantMessage, ChatDelta, ToolCallBlock } from "@throughline/core";
import type { AnswerReply } from "@throughline/testing/internal";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { afterEach, describe, expect, it } from "vitest";
import { adapters, type AdapterCase } from "./adapters.ts";
import { converse, type Conversation } from "./conversation.ts";

let simulator: ProviderSimulator;
afterEach(() => simulator.close());

const thought = "Two places, so two looks. Größe 😀.";
const looks = (text: string): AnswerReply => ({
  kind: "answer",
  content: [
    { type: "thinking", thinking: thought },
    { type: "redacted-thinking" },
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    { type: "tool-call", name: "look", input: { place: "München 🏔", depth: { floors: [1, 2.5, null] } } },
    { type: "tool-call", name: "look", input: {} },
  ],
});

/** More than one per provider: what it asks of thinking differs between its models. */
const cases: readonly AdapterCase[] = adapters.flatMap((adapter) =>
  adapter.target === "anthropic"
    ? [adapter, { ...adapter, name: "Anthropic, thinking by budget", model: "claude-opus-4-1" }]
    : [adapter],
);

function callsOf({ content }: AssistantMessage): readonly ToolCallBlock[] {
  return typeof content === "string"
    ? []
    : content.filter((block): block is ToolCallBlock => block.type === "toolCall");
}

function answerCalls(conversation: Conversation, message: AssistantMessage): void {
  for (const call of callsOf(message)) {
    const { id: toolCallId, name: toolName } = call;
    conversation.add({ role: "toolResult", toolCallId, toolName, content: [{ type: "text", text: "found" }] });
  }
}

describe.each(cases)("$name: a reply becomes a record, the record the next request", (adapter) => {
  for (const streamed of [false, true]) {
    it(`and the provider takes back what it issued, ${streamed ? "streamed" : "whole"}`, async () => {
      const replies = [looks("I look in both."), looks(""), "Both are there.", looks("Again."), "Done."];
      simulator = createProviderSimulator({ replies });
      await simulator.start();
      const conversation = converse(adapter.create(simulator), adapter.model);
      const how = {
        thinkingLevel: "medium",
        ...(streamed ? { onDelta: (_delta: ChatDelta): void => undefined } : {}),
      };
      for (const text of ["Look in both places.", "And again."]) {
        conversation.add({ role: "user", content: text });
        let reply = await conversation.ask(how);
        while (reply.message.stopReason === "toolUse") {
          expect(callsOf(reply.message)).toHaveLength(2);
          answerCalls(conversation, reply.message);
          reply = await conversation.ask(how);
        }
      }
      expect(simulator.refusals).toEqual([]);
      expect(simulator.requests).toHaveLength(5);
      const last = JSON.stringify(conversation.messages());
      expect(last).toContain("found");
      expect(last.split("München 🏔").length - 1).toBe(3);
      if (!adapter.thinks) return;
      // The thinking went back as it was issued: signed, or encrypted.
      const sent = JSON.stringify(simulator.requests.at(-1)?.body);
      for (const signature of signatures(conversation)) expect(sent).toContain(signature);
      if (adapter.target === "ollama") expect(sent).toContain('"thinking":"Two places');
      else expect(signatures(conversation)).toHaveLength(adapter.target === "anthropic" ? 6 : 3);
    });
  }

  it("sends what it sent before, and something more", async () => {
    simulator = createProviderSimulator({ replies: [looks("One."), "Two.", "Three."] });
    await simulator.start();
    const conversation = converse(adapter.create(simulator), adapter.model);
    conversation.add({ role: "user", content: "First." });
    answerCalls(conversation, (await conversation.ask()).message);
    await conversation.ask();
    conversation.add({ role: "user", content: "Second." });
    await conversation.ask();
    const lists = simulator.requests.map(({ body }) => {
      const { messages, input } = body as { messages?: readonly unknown[]; input?: readonly unknown[] };
      return (messages ?? input ?? []).map((message) => JSON.stringify(message));
    });
    expect(lists).toHaveLength(3);
    for (const [index, list] of lists.slice(1).entries()) {
      const before = lists[index] ?? [];
      expect(list.slice(0, before.length)).toEqual(before);
      expect(list.length).toBeGreaterThan(before.length);
    }
  });
});

/** What has to come back unchanged: signatures of thinking, and what is encrypted. */
function signatures({ records }: Conversation): readonly string[] {
  return records.flatMap(({ record }) => {
    const { content } = record["message"] as AssistantMessage;
    if (typeof content === "string") return [];
    return content.flatMap((block) => {
      const signature = (block as { readonly thinkingSignature?: unknown }).thinkingSignature;
      if (typeof signature !== "string") return [];
      return signature.startsWith("{")
        ? [(JSON.parse(signature) as { readonly encrypted_content: string }).encrypted_content]
        : [signature];
    });
  });
}
