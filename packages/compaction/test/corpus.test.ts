import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { describe, expect, it } from "vitest";
import { openSession, readWindow, type RecordDraft, type SessionRecord, type SessionStore } from "@throughline/core";
import { systemRandom } from "@throughline/core/internal";
import { buildContext, type Context } from "@throughline/history";
import { renderAnthropic, validateAnthropic } from "@throughline/history/anthropic";
import { createCompactor } from "@throughline/compaction";
import { readCompactionDetails } from "../src/compaction-details.ts";
import { tokenMeasure } from "../src/compactor.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { emptyCalibration } from "@throughline/tokens";
import {
  allRecords,
  counter,
  failing,
  ports,
  ref,
  request,
  summarizer,
  type ScriptedSummarizer,
} from "./compaction-fixture.ts";

const corpus = process.env["THROUGHLINE_CORPUS"];
const measure = tokenMeasure(counter, emptyCalibration);

/** The messages of a real conversation, as drafts that follow each other. */
function conversation(name: string): readonly RecordDraft[] {
  const lines = readFileSync(join(corpus ?? "", "golden", `${name}.v3.jsonl`), "utf8")
    .trimEnd()
    .split("\n");
  const records = lines.map((line) => JSON.parse(line) as SessionRecord).filter(({ type }) => type === "message");
  return records.map(({ type, id, message }) => ({ type, id, message }));
}

interface Driven {
  readonly compactions: number;
  readonly nothing: number;
  readonly mostTokens: number;
}

/** Appends message by message and compacts whenever it is due, as the turns of a session would. */
async function drive(
  store: SessionStore,
  drafts: readonly RecordDraft[],
  windowTokens: number,
  model: ScriptedSummarizer,
): Promise<Driven> {
  await openSession(store, ref, { random: systemRandom });
  const compactor = createCompactor({ store, ...ports, summarizers: [model] });
  const driven = { compactions: 0, nothing: 0, mostTokens: 0 };
  const counted = new Map<string, number>();
  const sizeOf = ({ messages }: Context): number =>
    messages.reduce((sum, message) => {
      const tokens = counted.get(message.recordId) ?? measure.countMessage(message);
      counted.set(message.recordId, tokens);
      return sum + tokens;
    }, 0);
  for (let at = 0; at < drafts.length; at += 4) {
    await store.append(ref, drafts.slice(at, at + 4));
    const { records, state } = await readWindow(store, ref);
    const context = buildContext(records, { headId: state.head.headId });
    const tokens = sizeOf(context);
    if (!compactor.need({ tokens, windowTokens, messages: context.messages.length }).due) continue;
    const result = await compactor.compact(ref, request(windowTokens));
    driven[result.kind === "compacted" ? "compactions" : "nothing"]++;
    if (result.kind !== "compacted") continue;
    expect(result.tokensAfter).toBeLessThan(result.tokensBefore);
    const after = await readWindow(store, ref);
    const compacted = buildContext(after.records, { headId: after.state.head.headId });
    driven.mostTokens = Math.max(driven.mostTokens, sizeOf(compacted));
    expect(validateAnthropic(renderAnthropic(compacted).messages)).toEqual([]);
  }
  return driven;
}

/** Every message is shown, or lies in the range of exactly one summary. */
async function accountForAll(store: SessionStore, drafts: readonly RecordDraft[]): Promise<void> {
  const records = await allRecords(store);
  const context = buildContext(records);
  const shown = new Set(context.messages.map(({ recordId }) => recordId));
  const ranges = records.flatMap(({ record }) => readCompactionDetails(record["details"]) ?? []);
  const seqs = new Map(records.map(({ id, seq }) => [id, seq]));
  for (const { id } of drafts) {
    const seq = seqs.get(id ?? "") ?? 0;
    const summaries = ranges.filter((range) => seq >= range.summarizedFromSeq && seq <= range.summarizedToSeq).length;
    expect([summaries, shown.has(id ?? "")]).toEqual(shown.has(id ?? "") ? [0, true] : [1, false]);
  }
}

const sentence = "They went on with the work in the repository as the user had asked them to.";

describe.skipIf(corpus === undefined).each(["before-compaction", "large-session"])(
  "the real conversation %s",
  (name) => {
    it.each([8000, 32_000, 200_000])(
      "goes on in a window of %i tokens, and every message is kept or summarized once",
      async (windowTokens) => {
        const drafts = conversation(name);
        const store = createMemoryStore();
        const model = summarizer(sentence);
        const driven = await drive(store, drafts, windowTokens, model);
        // A single turn can be larger than a small window: that is the guard's to shorten.
        if (windowTokens === 200_000) expect(driven.nothing).toBe(0);
        if (windowTokens === 200_000) expect(driven.mostTokens).toBeLessThan(windowTokens * 0.5);
        expect(model.requests).toHaveLength(driven.compactions);
        expect(driven.compactions).toBeGreaterThan(0);
        await accountForAll(store, drafts);
        // What is needed again at once would be a loop.
        expect(driven.compactions + driven.nothing).toBeLessThan(drafts.length / 4);
      },
      120_000,
    );

    it("goes on without any summarizer, in eight thousand tokens", async () => {
      const drafts = conversation(name).slice(0, 400);
      const store = createMemoryStore();
      const driven = await drive(store, drafts, 8000, failing);
      expect(driven.compactions).toBeGreaterThan(10);
      await accountForAll(store, drafts);
    }, 120_000);
  },
);
