import { afterEach, describe, expect, it } from "vitest";
import { createProviderSimulator } from "../src/provider-simulator.ts";
import type { ProviderSimulator } from "../src/simulator-options.ts";
import type { ReplyPart, SimulatedReply } from "../src/simulated-reply.ts";
import { ask, assistant, result, user } from "./anthropic-cases.ts";
import { answer, chat } from "./openai-cases.ts";
import { post } from "./refusal-case.ts";
import type { Body } from "./refusal-case.ts";

let simulator: ProviderSimulator | undefined;

/** Small, repeatable pseudo-random numbers below `limit`. */
function createDice(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

function throwReply(dice: (limit: number) => number): SimulatedReply {
  const thinking: ReplyPart[] = Array.from({ length: dice(3) }, (_, index) => ({
    type: "thinking",
    thinking: `Thought ${index}.`,
  }));
  const calls: ReplyPart[] = Array.from({ length: dice(4) }, () => ({
    type: "tool-call",
    name: "look",
    input: { n: dice(9) },
  }));
  const text: ReplyPart[] = dice(2) === 0 && calls.length > 0 ? [] : [{ type: "text", text: "Some text." }];
  return { kind: "answer", content: [...thinking, ...text, ...calls] };
}

const turns = 60;

describe("a conversation that sends back what it got", () => {
  afterEach(() => simulator?.close());

  it.each([1, 2, 3])(
    "is never refused by Anthropic's rules, across restarts and on a binding model (seed %i)",
    { tags: ["slow"] },
    async (seed) => {
      const dice = createDice(seed);
      const messages: Body[] = [user("Go.")];
      for (let turn = 0; turn < turns; turn += 1) {
        // A new simulator every few turns: signatures and ids hold beyond one process.
        if (turn % 10 === 0) {
          await simulator?.close();
          simulator = createProviderSimulator({ fallback: () => throwReply(dice), idPrefix: `s${turn}` });
          await simulator.start();
        }
        const response = await post(simulator?.url ?? "", "anthropic", ask(messages, { model: "claude-opus-5-5" }));
        const { content } = (await response.json()) as { content: readonly Body[] };
        expect(simulator?.refusals).toEqual([]);
        const calls = content.filter((block) => block["type"] === "tool_use");
        messages.push(assistant(content));
        messages.push(user(calls.length > 0 ? calls.map((call) => result(String(call["id"]))) : "Go on."));
      }
      expect(messages).toHaveLength(2 * turns + 1);
    },
  );

  it.each([1, 2])("is never refused by OpenAI's chat rules (seed %i)", { tags: ["slow"] }, async (seed) => {
    const dice = createDice(seed);
    simulator = createProviderSimulator({ fallback: () => throwReply(dice) });
    await simulator.start();
    const messages: Body[] = [{ role: "user", content: "Go." }];
    for (let turn = 0; turn < turns; turn += 1) {
      const response = await post(simulator.url, "openai-chat", chat(messages));
      const { choices } = (await response.json()) as { choices: readonly { message: Body }[] };
      const message = choices[0]?.message ?? {};
      const calls = (message["tool_calls"] ?? []) as readonly Body[];
      messages.push(message, ...calls.map((call) => answer(String(call["id"]))));
      if (calls.length === 0) messages.push({ role: "user", content: "Go on." });
    }
    expect(simulator.refusals).toEqual([]);
    expect(simulator.requests).toHaveLength(turns);
  });
});
