import fc from "fast-check";
import { createProviderSimulator } from "@throughline/testing";
import type { ProviderSimulator } from "@throughline/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildContext } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import { validateAnthropic } from "@throughline/history/anthropic";
import type { Violation } from "../src/violation.ts";
import { validateOpenAiResponses } from "@throughline/history/openai";
import { randomLog } from "./random-logs.ts";
import { refusedRequests } from "./refusals.ts";
import type { RefusedRequest } from "./refused-request.ts";
import { accepted, anthropicBody, thirdReading } from "./third-reading.ts";
import { runs } from "./test-runs.ts";

/** Our own reading of a request. */
function read({ target, model }: RefusedRequest, messages: readonly unknown[]): readonly Violation[] {
  if (target !== "anthropic") return historyTargets.get(target)?.validate(messages, model ?? null) ?? [];
  return validateAnthropic(messages, model === "thinking" ? { thinking: true } : { model: model ?? "claude-opus-4-5" });
}

let simulator: ProviderSimulator;

beforeAll(async () => {
  simulator = createProviderSimulator({ fallback: () => "Yes.", models: { "*": { windowTokens: 10_000_000 } } });
  await simulator.start();
});

afterAll(() => simulator.close());

describe("a refused request and its correction", () => {
  it.each(refusedRequests.map((request) => [`${request.target}, ${request.rule}: ${request.title}`, request] as const))(
    "%s",
    async (_title, request) => {
      const { target, model, bad, good, rule, says } = request;
      expect(read(request, bad).find((violation) => violation.rule === rule)?.text).toContain(says);
      expect(read(request, good)).toEqual([]);
      // The simulator reads the same rules on its own: a disagreement is a mistake of one of the two.
      expect(await thirdReading(simulator, target, bad, model)).toContain(says);
      expect(await thirdReading(simulator, target, good, model)).toBeNull();
    },
  );

  it("has at least two requests for each rule of which the provider's words are known", () => {
    const counts = new Map<string, number>();
    for (const { target, rule } of refusedRequests) {
      const key = `${target} ${rule}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const single = [...counts].filter(([, count]) => count < 2).map(([key]) => key);
    expect(single).toEqual([]);
  });
});

describe("what only the provider can have signed", () => {
  it("thinking of the latest reply comes back as it was", async () => {
    simulator.enqueue({
      kind: "answer",
      content: [
        { type: "thinking", thinking: "First." },
        { type: "thinking", thinking: "Second." },
        { type: "tool-call", name: "look", input: {}, id: "a" },
      ],
    });
    const hi = { role: "user", content: "Hi" };
    const first = await accepted(simulator, "/v1/messages", anthropicBody([hi], "thinking"));
    const reply = first["content"] as readonly Readonly<Record<string, unknown>>[];
    const [one = {}, two = {}, call = {}] = reply;
    const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "found" }] };
    const follow = (content: readonly unknown[]): readonly unknown[] => [hi, { role: "assistant", content }, result];
    const bad = [
      [{ ...one, thinking: "Else." }, two, call],
      [two, call],
      [one, call],
    ];
    for (const content of bad) {
      const [found] = validateAnthropic(follow(content), { thinking: true, latestReply: reply });
      expect(found?.text).toContain("blocks in the latest assistant message cannot be modified");
      expect(await thirdReading(simulator, "anthropic", follow(content), "thinking")).toContain(
        "blocks in the latest assistant message cannot be modified. These blocks must remain as they were",
      );
    }
    expect(validateAnthropic(follow(reply), { thinking: true, latestReply: reply })).toEqual([]);
    expect(await thirdReading(simulator, "anthropic", follow(reply), "thinking")).toBeNull();
  });

  it("reasoning is followed by what it led to", async () => {
    simulator.enqueue({
      kind: "answer",
      content: [
        { type: "thinking", thinking: "Well." },
        { type: "text", text: "Yes." },
      ],
    });
    const hi = { role: "user", content: "Hi" };
    const body = { model: "gpt-5", input: [hi], store: false, include: ["reasoning.encrypted_content"] };
    const answer = await accepted(simulator, "/v1/responses", body);
    const [reasoning, message] = answer["output"] as readonly unknown[];
    for (const items of [
      [hi, reasoning],
      [hi, reasoning, hi],
    ]) {
      const [found] = validateOpenAiResponses(items);
      expect(found?.text).toMatch(
        /^Item 'rs_\S+' of type 'reasoning' was provided without its required following item/,
      );
      expect(await thirdReading(simulator, "openai-responses", items, undefined)).toBe(found?.text);
    }
    const good = [hi, reasoning, message, hi];
    expect(validateOpenAiResponses(good)).toEqual([]);
    expect(await thirdReading(simulator, "openai-responses", good, undefined)).toBeNull();
  });
});

describe("a rendered history", () => {
  it.each([...historyTargets.keys()])(
    "is taken by the third reading for %s too",
    async (name) => {
      const target = historyTargets.get(name);
      await fc.assert(
        fc.asyncProperty(randomLog, async (records) => {
          // Without a model of its own no thinking is sent: the simulator knows none that it has not signed.
          const asked = { target: null, trailingAssistant: "continue" } as const;
          const messages = target?.render(buildContext(records), asked).messages ?? [];
          if (messages.length > 0) expect(await thirdReading(simulator, name, messages, undefined)).toBeNull();
        }),
        runs(75),
      );
    },
    60_000,
  );
});
