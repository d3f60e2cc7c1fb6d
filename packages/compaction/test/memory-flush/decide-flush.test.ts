import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openSession, type SessionEntry, sessionRef } from "@throughline/core";
import { isFlushMessage, systemRandom } from "@throughline/core/internal";
import { decideFlush, type FlushDecision, type FlushInput } from "../../src/memory-flush/decide-flush.ts";
import { endFlush } from "../../src/memory-flush/observe-flush.ts";
import { readFlushState } from "../../src/memory-flush/flush-state.ts";
import type { MemoryFlushSettings } from "../../src/memory-flush/flush-settings.ts";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { firstColumn, specTables } from "@throughline/test-kit";
import { flushSteps } from "../../src/memory-flush/flush-steps.ts";

const spec = join(import.meta.dirname, "../../src/memory-flush/SPEC.md");
const nowMs = Date.parse("2026-03-01T23:30:00Z");
const utc: MemoryFlushSettings = { timeZone: "UTC" };

function decide(
  entry: SessionEntry,
  tokens: number | null,
  more: Partial<FlushInput> = {},
  settings = utc,
): FlushDecision {
  const sizes = { windowTokens: 200_000, compactAtTokens: 196_000, isCompactionNext: false, nowMs };
  return decideFlush({ entry, tokens, ...sizes, ...more }, settings);
}
const textOf = ({ message }: FlushDecision): unknown =>
  (message?.["message"] as { content?: unknown } | undefined)?.content;
const entry: SessionEntry = { sessionId: "s" };
/** Sizes one after another, each on what the one before left in the entry. */
function run(sizes: readonly (number | null)[], more: Partial<FlushInput> = {}, settings = utc): FlushDecision[] {
  let at = entry;
  return sizes.map((tokens) => {
    const decision = decide(at, tokens, more, settings);
    at = { ...at, ...decision.patch };
    return decision;
  });
}
const firedPercents = (decisions: readonly FlushDecision[]): (number | null)[] =>
  decisions.map(({ fired }) => fired?.askedPercent ?? null);

describe("the phases of SPEC.md", () => {
  it("step as the table says, in every phase under every step", () => {
    const [[, ...steps] = [], ...rows] = specTables(spec, "Table")[0] ?? [];
    const specified = Object.fromEntries(
      rows.map(([phase = "", ...cells]) => [
        phase,
        Object.fromEntries(
          cells.map((cell, index) => [steps[index], { to: cell.replace("!", ""), sends: cell.endsWith("!") }]),
        ),
      ]),
    );
    expect(specified).toEqual(flushSteps);
    expect(firstColumn(specTables(spec, "Phases")[0] ?? [])).toEqual(Object.keys(flushSteps));
    expect(firstColumn(specTables(spec, "Steps")[0] ?? [])).toEqual(Object.keys(flushSteps.quiet));
  });
});

describe("a flush", () => {
  it("says at 50 and 75 % in the system text what the document says, in every turn, with the true figure", () => {
    const texts = run([90_000, 100_000, 105_000, 150_000, 157_000, 90_000]).map(({ systemText }) => systemText);
    expect(texts).toEqual([
      null,
      "Context at 50%. Consider noting key decisions to memory.",
      "Context at 52%. Consider noting key decisions to memory.",
      "Context at 75%. Write important context to memory/2026-03-01.md now.",
      "Context at 78%. Write important context to memory/2026-03-01.md now.",
      null,
    ]);
  });

  it("asks at 90 % by a message of four lines, marked as nobody's [FLU-04, FLU-10, FLU-20, C30, C31]", () => {
    const decision = decide(entry, 180_000);
    expect(textOf(decision)).toBe(
      [
        "[SYSTEM: pre-compaction memory flush]",
        "Context at 90%. Compaction imminent.",
        "Store durable memories now (use memory/2026-03-01.md; create memory/ if needed).",
        "If nothing to store, reply with NO_REPLY.",
      ].join("\n"),
    );
    expect(isFlushMessage(decision.message ?? {})).toBe(true);
    expect(decision.roomTokens).toBe(20_000);
  });

  it("takes the date of the place", () => {
    const at = (timeZone: string): unknown => textOf(decide(entry, 180_000, {}, { timeZone }));
    expect(at("Asia/Tokyo")).toContain("memory/2026-03-02.md");
    expect(at("America/New_York")).toContain("memory/2026-03-01.md");
  });

  it("is marked by default, once, and by `marked` [FLU-11, FLU-12, C30]", () => {
    const by = (prompt: string, injectAs?: "user" | "marked"): unknown => {
      const threshold = injectAs === undefined ? { percent: 60, prompt } : { percent: 60, prompt, injectAs };
      return textOf(decide(entry, 130_000, {}, { ...utc, thresholds: [threshold] }));
    };
    expect(by("Store it.")).toBe("[SYSTEM: memory flush]\nStore it.");
    expect(by("Store it.", "marked")).toBe("[SYSTEM: memory flush]\nStore it.");
    expect(by("Store it.", "user")).toBe("Store it.");
    expect(by("[SYSTEM: mine]\nStore it.", "marked")).toBe("[SYSTEM: mine]\nStore it.");
  });

  it("fires each threshold once a cycle, and never the lower ones after a higher", () => {
    expect(firedPercents(run([100_000, 110_000, 150_000, 180_000, 190_000, 120_000, 181_000]))).toEqual([
      50,
      null,
      75,
      90,
      null,
      null,
      null,
    ]);
    const jump = run([185_000, 150_000, 110_000]);
    expect(firedPercents(jump)).toEqual([90, null, null]);
    expect(jump[0]?.passedPercents).toEqual([75, 50]);
  });

  it("begins a new cycle with a compaction, also after a restart", async () => {
    const data = createMemoryData();
    const ref = sessionRef({ key: "agent:main:cli:direct:home" });
    let store = createMemoryStore({ data });
    await openSession(store, ref, { random: systemRandom });
    const first = decide(entry, 180_000);
    await store.append(ref, first.message === null ? [] : [first.message], { entry: first.patch });
    await store.close();
    store = createMemoryStore({ data });
    const kept = (await store.load(ref))?.entry ?? entry;
    expect(kept).toMatchObject({ memoryFlushAt: nowMs, memoryFlushCompactionCount: 0 });
    expect(readFlushState(kept)).toMatchObject({ phase: "asked", cycle: 0, askedPercent: 90 });
    expect(decide(kept, 185_000).fired).toBeNull();
    expect(decide({ ...kept, compactionCount: 1 }, 185_000).fired?.askedPercent).toBe(90);
    expect(readFlushState({ ...kept, compactionCount: 1 })).toMatchObject({ phase: "quiet", cycle: 1 });
    await store.close();
  });

  it("comes before its compaction: when one is due, on an overflow, and when one turn crosses everything [FLU-19, C24]", () => {
    const due = { compactAtTokens: 170_000, isCompactionNext: true };
    const big = decide(entry, 195_000, due);
    expect([big.fired?.askedPercent, big.why]).toEqual([90, "crossed"]);
    const overflow = decide(entry, 100_000, due);
    expect([overflow.fired?.askedPercent, overflow.why]).toEqual([90, "before-compaction"]);
    expect(textOf(overflow)).toContain("Context at 50%.");
    const blind = decide(entry, null, { ...due, compactAtTokens: null });
    expect(blind.fired?.askedPercent).toBe(90);
    const after = { ...entry, ...big.patch };
    expect(decide(after, 196_000, due).message).toBeNull();
    expect(decide({ ...entry, ...overflow.patch }, 150_000, {}).fired).toBeNull();
  });

  it("does not fire again because another model's window moves the threshold", () => {
    const asked = { ...entry, ...decide(entry, 168_000, { compactAtTokens: 170_000 }).patch };
    const smaller = { windowTokens: 180_000, compactAtTokens: 150_000 };
    expect(decide(asked, 146_000, smaller).fired).toBeNull();
  });

  it("is nothing when it is off, and shows nothing when the system text is off", () => {
    expect(decide(entry, 190_000, { isCompactionNext: true }, { enabled: false })).toMatchObject({
      message: null,
      systemText: null,
    });
    expect(decide(entry, 150_000, {}, { ...utc, showInSystemPrompt: false }).systemText).toBeNull();
    expect(decide(entry, 190_000, { windowTokens: null })).toMatchObject({
      message: null,
      systemText: null,
      fired: null,
    });
  });

  it("is asked again when the call failed before the agent could answer", () => {
    const asked = { ...entry, ...decide(entry, 180_000).patch };
    const failed = { ...asked, ...endFlush(asked, { calls: [], failed: true })?.patch };
    expect(readFlushState(failed).phase).toBe("quiet");
    expect(decide(failed, 181_000).fired?.askedPercent).toBe(90);
    expect(endFlush(entry, { calls: [], failed: false })).toBeNull();
  });

  it("keeps what the agent did, and forces nothing [FLU-07, FLU-08, C32]", () => {
    const asked = { ...entry, ...decide(entry, 180_000).patch };
    const calls = [{ name: "edit", arguments: { path: "src/a.ts" } }];
    const ended = endFlush(asked, { calls, failed: false });
    expect(ended?.observation).toEqual({ flushActioned: false, flushWrote: true });
    const after = { ...asked, ...ended?.patch };
    expect(readFlushState(after)).toMatchObject({ phase: "answered", flushActioned: false, flushWrote: true });
    expect(decide(after, 195_000, { isCompactionNext: true }).message).toBeNull();
    expect(readFlushState({ ...after, compactionCount: 3 })).toMatchObject({ flushActioned: false, phase: "quiet" });
  });

  it(
    "fires a message threshold at most once a cycle whatever the sizes, and always before a compaction",
    { tags: ["slow"] },
    () => {
      const step = fc.record({
        tokens: fc.option(fc.integer({ min: 0, max: 230_000 })),
        isCompactionNext: fc.boolean(),
      });
      fc.assert(
        fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
          let at: SessionEntry = { ...entry, compactionCount: 0 };
          let asked = 0;
          for (const { tokens, isCompactionNext } of steps) {
            const decision = decide(at, tokens, { compactAtTokens: 170_000, isCompactionNext });
            at = { ...at, ...decision.patch };
            if (decision.message !== null) asked++;
            expect(asked).toBeLessThanOrEqual(1);
            if (!isCompactionNext) continue;
            expect(asked).toBe(1);
            at = { ...at, compactionCount: (at.compactionCount ?? 0) + 1 };
            asked = 0;
          }
        }),
      );
    },
  );
});
