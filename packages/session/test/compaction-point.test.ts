import { describe, expect, it } from "vitest";
import type { ChatModel, Summarizer } from "@throughline/core";
import { createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import type { WholeTurnEvent } from "../src/whole-turn/whole-turn-event.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { createTokenEstimator } from "@throughline/tokens";

/** The profiles of real models, with a vocabulary that is quick enough for a million tokens. */
const estimator = createTokenEstimator({ loadVocabulary: async () => (slice) => slice.length / 4 });

const models = [
  { provider: "ollama", modelId: "qwen2.5:7b" },
  { provider: "anthropic", modelId: "claude-sonnet-4-5" },
  { provider: "openai", modelId: "gpt-4o" },
] as const;

/** The documented point: what is left of the window without the reserve of 30,000 tokens or a quarter of it. */
const points = [
  [4096, 75],
  [8192, 75],
  [16_384, 75],
  [32_768, 75],
  [65_536, 75],
  [131_072, 77.1],
  [200_000, 85],
  [1_000_000, 97],
] as const;

const summarizer: Summarizer = {
  summarize: async () => ({ summary: "They talked about words, and it goes on.", source: "test", usage: null }),
};

/** The default tier takes each window at one provider, and each provider at one window. */
function tagsOf(provider: string, window: number): string[] {
  return provider === "anthropic" || window === 8192 ? [] : ["slow"];
}

describe.each(models)("a conversation with $provider/$modelId", ({ provider, modelId }) => {
  for (const [window, percent] of points) {
    const name = `in a window of ${window} tokens is compacted at ${percent} %, and nothing is left out before`;
    it(name, { tags: tagsOf(provider, window) }, async () => {
      const chat: ChatModel = {
        provider,
        api: provider,
        async chat({ modelId: model }) {
          const message = {
            role: "assistant" as const,
            content: [{ type: "text" as const, text: "Yes." }],
            model,
            provider,
          };
          return { message: { ...message, api: provider, stopReason: "stop" }, stopReason: "stop", usage: null };
        },
      };
      const events: WholeTurnEvent[] = [];
      const store = createMemoryStore();
      await using sessions = createAgentSessions({
        store,
        estimator,
        model: { chat, modelId, windowTokens: window },
        summarizers: [summarizer],
        compaction: { background: false },
        checkpoint: { enabled: false },
        retry: { intervalSeconds: 0 },
        onEvent: (event) => void events.push(event),
      });
      const session = await sessions.open("home");
      const words = "a word, ".repeat(Math.ceil((window * 0.08 * 4) / 8));
      const isCompacted = (): boolean => events.some(({ name }) => name === "compaction.applied");
      for (let turn = 0; turn < 20 && !isCompacted(); turn++) await session.runTurn(words);
      const planned = events.find((event) => event.name === "compaction.planned");
      const share = ((planned?.tokensBefore ?? 0) * 100) / window;
      expect(share).toBeGreaterThanOrEqual(percent - 0.1);
      expect(share).toBeLessThan(percent + 12);
      const stages = events.flatMap((event) => (event.name === "guard.shrunk" ? [event.remedy] : []));
      expect(stages.filter((stage) => stage !== "output-budget")).toEqual([]);
      await store.close();
    });
  }
});
