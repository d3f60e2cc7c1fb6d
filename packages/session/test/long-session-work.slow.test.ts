import { describe, expect, it } from "vitest";
import { createCompactor } from "@throughline/compaction";
import { openSession, sessionRef, type RecordDraft, type SessionStore } from "@throughline/core";
import { sliceSteps, systemRandom } from "@throughline/core/internal";
import { createSessions } from "@throughline/session";
import { createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { createExtractiveSummarizer } from "@throughline/summarizer-providers";
import { createTokenEstimator, emptyCalibration, type TokenEstimator } from "@throughline/tokens";
import { testSize } from "../../../tools/test-size.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { key } from "./whole-turn-fixture.ts";

const sizes = testSize({ short: [2000, 4000, 8000], long: [10_000, 20_000, 40_000] });
const ref = sessionRef({ key });
const model = { provider: "anthropic", modelId: "claude-sonnet-4-5" };

interface Long {
  readonly store: SessionStore;
  readonly characters: number;
  /** Counts the characters that it is given. */
  readonly estimator: TokenEstimator;
}

/** A session that was never compacted. */
async function longSession(records: number): Promise<Long> {
  const store = createMemoryStore();
  await openSession(store, ref, { random: systemRandom });
  let characters = 0;
  const drafts = Array.from({ length: records }, (_, index): RecordDraft => {
    const text = `We decided on number ${index} of part-${index % 100}.ts. And what comes next there?`;
    characters += text.length;
    return {
      type: "message",
      message:
        index % 2 === 0 ? { role: "user", content: text } : { role: "assistant", content: [{ type: "text", text }] },
    };
  });
  for (let from = 0; from < records; from += 1000) await store.append(ref, drafts.slice(from, from + 1000));
  const estimator = createTokenEstimator({ loadVocabulary: async () => (slice) => slice.length / 4 });
  return { store, characters, estimator };
}

/** How often others came to their turn while this ran. */
async function turnsOfOthers(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  const other = setInterval(() => (turns += 1), 0);
  try {
    await work;
    return turns;
  } finally {
    clearInterval(other);
  }
}

describe.each(sizes)("a session of %i records", (records) => {
  it("is compacted by rules with each record counted once, and others come to their turn", async () => {
    const { store, characters, estimator } = await longSession(records);
    let summarized = 0;
    const countText = (text: string): number => {
      summarized += text.length;
      return Math.ceil(text.length / 4);
    };
    const compactor = createCompactor({ store, extractive: createExtractiveSummarizer({ countText }) });
    const counter = await estimator.counterFor(model);
    const request = { counter, calibration: emptyCalibration, windowTokens: 200_000, way: "asked" } as const;
    const compaction = compactor.compact(ref, request);
    const turns = await turnsOfOthers(compaction);
    // A small session may be done within one slice.
    if (records === sizes.at(-1)) expect(turns).toBeGreaterThan(2);
    expect(await compaction).toMatchObject({ kind: "compacted", source: "extractive" });
    expect(estimator.work.characters).toBeLessThan(characters * 1.5 + 100_000);
    expect(summarized).toBeLessThan(characters * 4 + 500_000);
    await store.close();
  });

  it("has a first turn that counts each record a fixed number of times", async () => {
    const { store, characters, estimator } = await longSession(records);
    const sessions = createAgentSessions({
      store,
      estimator,
      model: { chat: createScriptedModel(), modelId: model.modelId, windowTokens: 200_000 },
      summarizers: [],
      extractive: createExtractiveSummarizer(),
      retry: { intervalSeconds: 0 },
    });
    const session = await sessions.open(key);
    await session.runTurn("hi");
    expect(estimator.work.characters).toBeLessThan(characters * 5 + 500_000);
    await sessions.close();
    await store.close();
  });

  it("has a first prompt that is counted once, a bounded number of messages between two turns of others", async () => {
    const { store, characters } = await longSession(records);
    let [sinceTurn, most] = [0, 0];
    const estimator = createTokenEstimator({
      loadVocabulary: async () => (slice) => {
        sinceTurn += 1;
        most = Math.max(most, sinceTurn);
        return slice.length / 4;
      },
    });
    const others = setInterval(() => (sinceTurn = 0), 0);
    const sessions = createSessions({
      store,
      estimator,
      model: { chat: createScriptedModel(), modelId: model.modelId, windowTokens: 100_000_000 },
      system: () => "Made for each call, and counted with all messages each time.",
    });
    const session = await sessions.open({ key });
    await session.runTurn("hi");
    clearInterval(others);
    // Each message is one slice of text for the tokenizer.
    expect(most).toBeLessThanOrEqual(sliceSteps);
    expect(estimator.work.characters).toBeLessThan(characters + 10_000);
    await sessions.close();
    await store.close();
  });
});
