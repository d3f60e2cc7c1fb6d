import { describe, expect, it } from "vitest";
import type { Summarizer, AgentTool } from "@throughline/core";
import { createProviderSimulator, type SimulatedReply } from "@throughline/testing";
import type { Session } from "@throughline/session";
import { createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import type { WholeTurnEvent } from "../src/whole-turn/whole-turn-event.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { providerCases, type ProviderCase } from "./provider-cases.ts";
import { key } from "./session-fixture.ts";

const line = "a line of a long log\n";
const readTool: AgentTool = {
  definition: { name: "read", description: "Reads a log.", inputSchema: { type: "object" } },
  run: () => line.repeat(1620),
};
/** Four results of 34 kB each, for which the stated windows have space many times over. */
const readLogs: SimulatedReply = {
  kind: "answer",
  content: [1, 2, 3, 4].map(() => ({ type: "tool-call", name: "read", input: {} })),
};
const refusal: SimulatedReply = { kind: "error", status: 400, message: "The input exceeds the context window." };

interface Run {
  readonly text: string | null;
  /** What was done to the request of each attempt. */
  readonly remedies: readonly (readonly string[])[];
  /** Sizes of the requests, in bytes, and the last one. */
  readonly sizes: readonly number[];
  readonly last: string;
  readonly summaries: number;
}

async function run(
  provider: ProviderCase,
  windowTokens: number | null,
  replies: readonly SimulatedReply[],
  before: (session: Session) => Promise<void> = () => Promise.resolve(),
): Promise<Run> {
  await using simulator = createProviderSimulator({ replies, fallback: () => "Fine." });
  await simulator.start();
  const events: WholeTurnEvent[] = [];
  let summaries = 0;
  const summarizer: Summarizer = {
    summarize: () => {
      summaries += 1;
      return Promise.resolve({ summary: "Topics: logs were read.", source: "s", usage: null });
    },
  };
  await using sessions = createAgentSessions({
    store: createMemoryStore(),
    model: { chat: provider.create(simulator), modelId: provider.modelId, windowTokens, maxOutputTokens: 1000 },
    tools: [readTool],
    summarizers: [summarizer],
    checkpoint: { enabled: false },
    memoryFlush: { enabled: false },
    retry: { intervalSeconds: 0 },
    onEvent: (event) => events.push(event),
  });
  await using session = await sessions.open(key);
  await before(session);
  events.length = 0;
  const turn = await session.runTurn("Read the logs");
  const asked = simulator.requests.filter(({ path }) => !/count_tokens|input_tokens|api\/show|api\/ps/.test(path));
  return {
    text: turn.text,
    remedies: events.filter((event) => event.name === "guard.attempt").map(({ remedies }) => remedies),
    sizes: asked.map(({ bytes }) => bytes.length),
    last: JSON.stringify(asked.at(-1)?.body),
    summaries,
  };
}

describe.each(providerCases)("a refusal of $name that states no sizes", (provider) => {
  it.each([200_000, 1_000_000, null])(
    "has tool results shortened and no summary made, with a stated window of %s tokens",
    async (windowTokens) => {
      const { text, remedies, sizes, summaries } = await run(provider, windowTokens, [readLogs, refusal, "Read."]);
      expect(text).toBe("Read.");
      expect(remedies).toEqual([[], [], ["truncate"]]);
      expect(sizes[2]).toBeLessThan(Number(sizes[1]) * 0.7);
      expect(summaries).toBe(0);
    },
  );

  it("has a summary made only after shortened results were refused too", async () => {
    const answers = Array.from({ length: 12 }, (_, at) => `Answer ${at}.`);
    const { text, remedies, last, summaries } = await run(
      provider,
      200_000,
      [...answers, readLogs, refusal, refusal, "Read."],
      async (session) => {
        for (let at = 0; at < 12; at++) await session.runTurn(`Question ${at}: ${line.repeat(200)}`);
      },
    );
    expect(text).toBe("Read.");
    expect(remedies.slice(0, 3)).toEqual([[], [], ["truncate"]]);
    expect(remedies.at(-1)?.slice(0, 2)).toEqual(["truncate", "compact"]);
    expect(remedies).toHaveLength(4);
    expect(summaries).toBe(1);
    expect(last).toContain("logs were read");
  });
});
