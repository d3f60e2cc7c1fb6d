import { afterEach, describe, expect, it } from "vitest";
import { createProviderSimulator } from "../src/provider-simulator.ts";
import type { ProviderSimulator, ProviderSimulatorOptions } from "../src/simulator-options.ts";
import type { SimulatedReply } from "../src/simulated-reply.ts";
import { ask, assistant, result, text, user } from "./anthropic-cases.ts";
import { errorText, post } from "./refusal-case.ts";
import type { Body } from "./refusal-case.ts";

let simulator: ProviderSimulator;

async function start(options: ProviderSimulatorOptions): Promise<void> {
  simulator = createProviderSimulator(options);
  await simulator.start();
}

interface Answer {
  readonly content: readonly Body[];
  readonly usage: Readonly<Record<string, number>>;
}

async function answer(body: Body, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const response = await post(simulator.url, "anthropic", body, headers);
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
}

async function refusal(body: Body): Promise<string> {
  const response = await post(simulator.url, "anthropic", body);
  expect(response.status).toBe(400);
  return errorText(response);
}

const thinks: SimulatedReply = {
  kind: "answer",
  content: [
    { type: "thinking", thinking: "First." },
    { type: "thinking", thinking: "Second." },
    { type: "tool-call", name: "look", input: {}, id: "t1" },
  ],
};
const untouched = /`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified/;
const hi = user("Hi");
const settings: Body = { max_tokens: 2000, thinking: { type: "enabled", budget_tokens: 1024 } };

describe("signed thinking", () => {
  afterEach(() => simulator.close());

  it("comes back unchanged or not at all while it is the latest", async () => {
    await start({ replies: [thinks], fallback: () => "Yes." });
    const { content } = await answer(ask([hi], settings));
    const [first = {}, second = {}, call = {}] = content;
    const next = (...blocks: readonly Body[]): Body => ask([hi, assistant(blocks), user([result("t1")])], settings);
    await answer(next(first, second, call));
    expect(await refusal(next({ ...first, thinking: "Else." }, second, call))).toMatch(untouched);
    expect(await refusal(next(first, call))).toMatch(untouched);
    expect(await refusal(next(second, call))).toMatch(untouched);
    expect(await refusal(next(second, first, call))).toMatch(untouched);
    expect(await refusal(next({ ...first, signature: "abc" }, second, call))).toBe(
      "messages.1.content.0: Invalid `signature` in `thinking` block",
    );
    expect(await refusal(next(call))).toMatch(
      /^messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`/,
    );
    await answer({ ...next(call), thinking: { type: "disabled" } });
  });

  it("may be left out of earlier turns, but not changed there", async () => {
    await start({ replies: [thinks], fallback: () => "Yes." });
    const { content } = await answer(ask([hi], settings));
    const [first = {}, second = {}, call = {}] = content;
    const later = (...blocks: readonly Body[]): Body =>
      ask([hi, assistant(blocks), user([result("t1")]), assistant("Yes."), hi], settings);
    await answer(later(first, second, call));
    await answer(later(first, call));
    await answer(later(call));
    expect(await refusal(later({ ...first, thinking: "Else." }, second, call))).toBe(
      "messages.1.content.0: Invalid `signature` in `thinking` block",
    );
  });

  it("is recognized by a second simulator with the same key, and by no other", async () => {
    await start({ replies: [thinks], signingKey: "one" });
    const { content } = await answer(ask([hi], settings));
    const next = ask([hi, assistant(content), user([result("t1")])], settings);
    await simulator.close();
    await start({ fallback: () => "Yes.", signingKey: "one" });
    await answer(next);
    await simulator.close();
    await start({ fallback: () => "Yes.", signingKey: "two" });
    expect(await refusal(next)).toBe("messages.1.content.0: Invalid `signature` in `thinking` block");
  });

  it("is bound to the messages before it on models that bind", async () => {
    await start({ fallback: () => "Yes." });
    const bound = /The block is bound to a different conversation/;
    for (const [model, binds] of [
      ["claude-opus-5-5", true],
      ["claude-sonnet-4-5", false],
    ] as const) {
      simulator.enqueue(thinks);
      const start = [user("Hi"), assistant("Hello."), user("Look there.")];
      const { content } = await answer(ask(start, { model, max_tokens: 2000 }));
      const next = (...before: readonly Body[]): Body =>
        ask([...before, assistant(content), user([result("t1")])], { model, max_tokens: 2000 });
      await answer(next(...start));
      // A moved cache marker and a string written as its block are no edits.
      const marked = { ...text("Look there."), cache_control: { type: "ephemeral" } };
      await answer(next(user("Hi"), assistant("Hello."), user([marked])));
      for (const edited of [
        [user("A summary."), user("Look there.")],
        [user("Hi!"), assistant("Hello."), user("Look there.")],
      ]) {
        if (binds) expect(await refusal(next(...edited))).toMatch(bound);
        else await answer(next(...edited));
      }
    }
  });

  it("is left out instead when the request says so", async () => {
    await start({ replies: [thinks], fallback: () => "Yes." });
    const model: Body = { model: "claude-opus-5-5", max_tokens: 2000 };
    const { content } = await answer(ask([hi], model));
    const drops = { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } };
    const edited = ask([user("Hello"), assistant(content), user([result("t1")])], { ...model, thinking: drops });
    await answer(edited, { "anthropic-beta": "thinking-binding-controls-2026-08-01" });
    expect(simulator.refusals).toEqual([]);
  });
});

describe("the prompt cache", () => {
  afterEach(() => simulator.close());

  const marked = (value: string): Body => ({ ...text(value), cache_control: { type: "ephemeral" } });
  const used = ({ usage }: Answer): readonly (number | undefined)[] => [
    usage["input_tokens"],
    usage["cache_creation_input_tokens"],
    usage["cache_read_input_tokens"],
  ];

  it("writes a marked prefix once and reads it afterwards, wherever the marker has moved to", async () => {
    await start({ fallback: () => "Yes.", minimumCacheTokens: 10 });
    const system = [{ ...text("s".repeat(40)), cache_control: { type: "ephemeral" } }];
    expect(used(await answer(ask([user([text("a".repeat(40))])], { system })))).toEqual([14, 10, 0]);
    expect(used(await answer(ask([user([marked("a".repeat(40))])], { system })))).toEqual([0, 14, 10]);
    const longer = [user([text("a".repeat(40))]), assistant("Yes."), user([marked("b".repeat(40))])];
    expect(used(await answer(ask(longer, { system })))).toEqual([0, 19, 24]);
    expect(used(await answer(ask([user([marked("c".repeat(40))])], { system: "t".repeat(40) })))).toEqual([0, 24, 0]);
  });

  it("keeps nothing below its least length", async () => {
    await start({ fallback: () => "Yes." });
    const body = ask([user([marked("a".repeat(40))])]);
    expect(used(await answer(body))).toEqual([14, 0, 0]);
    expect(used(await answer(body))).toEqual([14, 0, 0]);
  });
});
