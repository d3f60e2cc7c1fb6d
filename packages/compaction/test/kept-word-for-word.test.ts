import { describe, expect, it } from "vitest";
import type { SessionStore } from "@throughline/core";
import { createCompactor, type CompactionResult, type CompactorOptions } from "@throughline/compaction";
import type { CompactionWay } from "../src/compaction-work.ts";
import { createMemoryStore } from "@throughline/store-memory";
import {
  allRecords,
  begin,
  contextOf,
  counter,
  failing,
  ports,
  ref,
  request,
  summarizer,
  turns,
} from "./compaction-fixture.ts";

const summary = "They read the files one by one and found nothing wrong so far.";
const windowTokens = 200_000;

interface Kept {
  readonly result: CompactionResult;
  readonly messages: number;
  readonly tokens: number;
}

/** Compacts 640 messages of some 70,000 tokens, all of which a checkpoint covers. */
async function keptAfter(
  options: Partial<CompactorOptions>,
  way: CompactionWay,
  tokensAtCheckpoint = 70_000,
): Promise<Kept> {
  const store: SessionStore = createMemoryStore();
  await begin(store, turns(160));
  const coversToId = (await allRecords(store)).at(-1)?.id;
  const content = { summary, tokensAtCheckpoint, messageCountAtCheckpoint: 640, coversToId };
  await store.append(ref, [{ type: "checkpoint", checkpoint: content }]);
  const result = await createCompactor({ store, ...ports, ...options }).compact(ref, request(windowTokens, { way }));
  const { messages } = await contextOf(store);
  const kept = messages.filter(({ role }) => role !== "compactionSummary");
  // Without the overhead of messages, a seventh of the tokens here.
  const { bareTokens } = counter.countMessages(kept);
  await store.close();
  return { result, messages: kept.length, tokens: bareTokens * counter.profile.factor };
}

const model = summarizer(summary);

describe("what stays word for word", () => {
  it.each([
    ["a checkpoint", "checkpoint", {}, "due", 70_000],
    ["a checkpoint by hand", "checkpoint", {}, "asked", 70_000],
    ["a checkpoint that is named", "checkpoint", {}, { checkpointId: null }, 70_000],
    ["a model", "model", { summarizers: [model], preferCheckpoint: false }, "due", 70_000],
    ["a model by hand", "model", { summarizers: [model], preferCheckpoint: false }, "asked", 70_000],
    ["an older checkpoint", "older-checkpoint", { summarizers: [failing] }, "due", 100],
    ["an older checkpoint by hand", "older-checkpoint", { summarizers: [failing] }, "asked", 100],
  ] as const)("behind the summary of %s is what the settings say", async (_, source, options, way, covered) => {
    for (const [settings, leastMessages, leastTokens] of [
      [{}, 64, 17_000],
      [{ keepPercent: 50, keepRecentTokens: 0 }, 320, 0],
      [{ keepPercent: 1, minMessages: 120, keepRecentTokens: 0 }, 120, 0],
      [{ keepPercent: 1, minMessages: 1, keepRecentTokens: 10_000 }, 1, 8500],
    ] as const) {
      const { result, messages, tokens } = await keptAfter({ ...options, settings }, way, covered);
      expect(result).toMatchObject({ kind: "compacted", source });
      expect(messages).toBeGreaterThanOrEqual(leastMessages);
      expect(messages).toBeLessThan(640);
      expect(tokens).toBeGreaterThanOrEqual(leastTokens);
    }
  });

  it("behind the summary of rules is as much, and more of the messages", async () => {
    for (const way of ["due", "asked"] as const) {
      const store = createMemoryStore();
      await begin(store, turns(100));
      const settings = { keepRecentTokens: 0, minMessages: 0 };
      const result = await createCompactor({ store, ...ports, extractive: model, settings }).compact(
        ref,
        request(windowTokens, { way }),
      );
      expect(result).toMatchObject({ kind: "compacted", source: "extractive" });
      const kept = (await contextOf(store)).messages.length - 1;
      expect(kept).toBeGreaterThanOrEqual(80);
      expect(kept).toBeLessThan(100);
      await store.close();
    }
  });

  it("is the last exchange where a short session is compacted by hand with a checkpoint", async () => {
    const store = createMemoryStore();
    await begin(store, turns(2));
    const coversToId = (await allRecords(store)).at(-1)?.id;
    const content = { summary, tokensAtCheckpoint: 600, messageCountAtCheckpoint: 8, coversToId };
    await store.append(ref, [{ type: "checkpoint", checkpoint: content }]);
    const result = await createCompactor({ store, ...ports }).compact(
      ref,
      request(windowTokens, { way: { checkpointId: null } }),
    );
    expect(result).toMatchObject({ kind: "compacted", source: "checkpoint" });
    await store.close();
  });
});

describe("a checkpoint of more than half", () => {
  it("is taken where the messages are counted larger than the request was measured", async () => {
    const store = createMemoryStore();
    await begin(store, turns(100));
    const records = await allRecords(store);
    const content = {
      summary,
      tokensAtCheckpoint: 11_740,
      messageCountAtCheckpoint: 240,
      coversToId: records[239]?.id,
    };
    await store.append(ref, [{ type: "checkpoint", checkpoint: content }]);
    const result = await createCompactor({ store, ...ports, summarizers: [model] }).compact(
      ref,
      request(24_000, { totalTokens: 20_000 }),
    );
    expect(result).toMatchObject({ kind: "compacted", source: "checkpoint", tokensBefore: 20_000 });
    await store.close();
  });
});
