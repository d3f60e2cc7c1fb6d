import { describe, expect, it } from "vitest";
import { limitsOf } from "../src/learned-limits.ts";
import { counter, run, turns } from "./guarded-run.ts";
import { stages } from "./guard-fixture.ts";

describe("a guarded call, and the calls after it", () => {
  describe("for a model that binds thinking", () => {
    const binding = { provider: "anthropic", modelId: "claude-opus-5-5" };
    const thought = (name: string): object => ({
      role: "assistant",
      content: [
        { type: "thinking", thinking: `so ${name}`, signature: `signature ${name}` },
        { type: "text", text: `Yes, ${name}.` },
      ],
    });
    const goOn = { role: "user", content: "Go on." };
    const signatures = (messages: readonly unknown[]): readonly string[] =>
      [...JSON.stringify(messages).matchAll(/signature (\w+)/g)].map(([, name = ""]) => name);

    it("keeps out in later calls what was bound to results that were shortened, and nothing thought since", async () => {
      const messages = [thought("zero"), ...turns(1, "word ".repeat(30_000)), thought("one"), goOn];
      const options = { model: binding, windowTokens: 20_000, compact: null };
      const first = await run({ request: { messages }, ...options }).result;
      expect(signatures(first.request.messages)).toEqual(["zero"]);
      const keptChanges = JSON.parse(JSON.stringify(first.changes)) as typeof first.changes;
      const later = [...messages, thought("two"), goOn];
      const second = await run({ request: { messages: later }, ...options, keptChanges }).result;
      expect(signatures(second.request.messages)).toEqual(["zero", "two"]);
      expect(JSON.stringify(second.request.messages.slice(0, messages.length))).toBe(
        JSON.stringify(first.request.messages),
      );
      // Also where the history is rendered from a later place on.
      const moved = await run({ request: { messages: later.slice(1) }, ...options, keptChanges }).result;
      expect(signatures(moved.request.messages)).toEqual(["two"]);
    });

    it("keeps out what was thought about a history that stood in for the real one in a single call", async () => {
      const talk = (number: number): object => ({
        role: number % 2 ? "assistant" : "user",
        content: "a word ".repeat(200),
      });
      const talks = Array.from({ length: 21 }, (_, number) => talk(number));
      const messages = [{ role: "user", content: "The goal." }, thought("one"), ...talks];
      const options = { model: binding, windowTokens: 4000, compact: null };
      const first = await run({ request: { messages, maxOutputTokens: 500 }, ...options }).result;
      expect(first.changes.map(({ what }) => what)).toContain("history");
      const later = [...messages, thought("two"), goOn, thought("three"), goOn];
      const keptChanges = JSON.parse(JSON.stringify(first.changes)) as typeof first.changes;
      const second = await run({ request: { messages: later }, model: binding, windowTokens: 90_000, keptChanges })
        .result;
      expect(signatures(second.request.messages)).toEqual(["three"]);
      // A history that was really replaced is what later thinking is bound to.
      const replaced = [{ role: "user", content: "[Previous conversation summary]\nThe goal." }, thought("four"), goOn];
      const third = await run({ request: { messages: replaced }, model: binding, windowTokens: 90_000, keptChanges })
        .result;
      expect(signatures(third.request.messages)).toEqual(["four"]);
    });
  });

  it("tries a remedy again once a refusal has said what the estimate did not know", async () => {
    // The estimate is low by a fifth: before the call nothing seems to be worth leaving out.
    const words = "some words of talk ".repeat(119);
    const messages = Array.from({ length: 20 }, (_, number) => ({
      role: number % 2 ? "assistant" : "user",
      content: words,
    }));
    const asked = [...messages, { role: "user", content: "And now?" }];
    for (const said of ["input", "io", "nothing"]) {
      const real = (list: readonly unknown[]): number =>
        Math.ceil(counter.countMessages(list as never).bareTokens * 1.3);
      const texts: Readonly<Record<string, (tokens: number) => string>> = {
        input: (tokens) =>
          `maximum context length is 12000 tokens. However, your messages resulted in ${tokens} tokens.`,
        io: (tokens) =>
          `maximum context length is 12000 tokens. However, you requested ${tokens + 2000} tokens (${tokens} in the messages, 2000 in the completion).`,
        nothing: () => "context_length_exceeded",
      };
      const one = run({
        request: { messages: asked, maxOutputTokens: 2000 },
        model: { provider: "openai", modelId: "gpt-5" },
        windowTokens: 12_000,
        compact: null,
        call: async ({ messages: sent, maxOutputTokens }) => {
          const tokens = real(sent);
          if (tokens + (maxOutputTokens ?? 0) <= 12_000) return { choices: [{ finish_reason: "stop" }] };
          throw Object.assign(new Error(texts[said]?.(tokens)), { status: 400 });
        },
      });
      expect((await one.result).outcome).toBe("answered");
      expect(one.sent.length).toBeLessThanOrEqual(3);
      expect(stages(one.events)).toContain("drop");
      // The window is what was stated, and not the smaller figure beside it.
      expect(limitsOf((await one.result).limits, { provider: "openai", modelId: "gpt-5" }).windowTokens ?? 12_000).toBe(
        12_000,
      );
    }
  });
});
