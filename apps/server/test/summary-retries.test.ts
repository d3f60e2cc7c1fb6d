import { ThroughlineError, type Summarizer } from "@throughline/core";
import { afterEach, describe, expect, it } from "vitest";
import { serve, type Serving } from "./serving.ts";

const message = (role: string, text: string) => ({ type: "message", message: { role, content: text } });
const talk = Array.from({ length: 30 }, (_, at) => [
  message("user", `Look after quay ${at}. `.repeat(20)),
  message("assistant", `Quay ${at} is looked after. `.repeat(20)),
]).flat();
const good = "Topics:\n- They look after quays, one after the other.";

let serving: Serving;
afterEach(() => serving.close());

const compact = async (): Promise<Readonly<Record<string, unknown>>> =>
  (await serving.ask("POST", "/sessions/long/compact", { body: { window: 8000 } })).body;

describe("summaries of a server", () => {
  it("are made again with the next turn when no model wrote them", { tags: ["slow"] }, async () => {
    let isDown = true;
    let retried = (): void => {};
    const asked = new Promise<void>((resolve) => (retried = resolve));
    const summarizer: Summarizer = {
      async summarize() {
        if (isDown) throw new ThroughlineError("MODEL_FAILED", "The model is down.");
        retried();
        return { summary: good, source: "test", usage: null };
      },
    };
    serving = await serve({ summaries: { summarizers: [summarizer] } });
    await serving.begin("long", talk);
    expect(await compact()).toMatchObject({ state: "compacted", source: "extractive", needsRetry: true });
    isDown = false;
    const turn = await serving.ask("POST", "/sessions/long/turns", { body: { owner: "test" } });
    expect(turn.status).toBe(201);
    await asked;
    const shown = async (): Promise<string> => (await serving.ask("GET", "/sessions/long/context")).text;
    await expect.poll(shown).toContain("They look after quays, one after the other.");
  });

  it("take a checkpoint only where they are set to, and wait no longer than their deadline", async () => {
    const hanging: Summarizer = { summarize: () => new Promise(() => {}) };
    const writer = { name: "mine", write: async () => JSON.stringify({ summary: "They look after quays." }) };
    for (const [preferCheckpoint, source] of [
      [true, "checkpoint"],
      [false, "older-checkpoint"],
    ] as const) {
      serving = await serve({
        summaries: { summarizers: [hanging], writers: [writer], compaction: { preferCheckpoint, deadlineMs: 20 } },
      });
      await serving.begin("long", talk);
      expect((await serving.ask("POST", "/sessions/long/checkpoint", { body: {} })).status).toBe(200);
      expect(await compact()).toMatchObject({ state: "compacted", source });
      if (preferCheckpoint) await serving.close();
    }
  });
});
