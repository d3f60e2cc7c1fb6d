import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { calibratedFactor, observe, readCalibration } from "../src/calibration.ts";
import { createTokenEstimator, emptyCalibration } from "@throughline/tokens";
import type { Calibration } from "../src/calibration.ts";
import type { TokenCount, TokenCounter } from "../src/token-counter.ts";

const estimator = createTokenEstimator({ loadVocabulary: async () => (slice) => slice.length });
const counterOf = (modelId: string): Promise<TokenCounter> => estimator.counterFor({ provider: null, modelId });
const opus = await counterOf("claude-opus-4-5");
const prior = 1.1;

const counted = (bareTokens: number, fixedTokens = 0): TokenCount => ({ bareTokens, fixedTokens, messages: 1 });

function learn(
  ratios: readonly number[],
  from: Calibration = emptyCalibration,
  counter: TokenCounter = opus,
): Calibration {
  return ratios.reduce(
    (calibration, ratio) =>
      observe(calibration, { counter, counted: counted(1000), observedTokens: 1000 * ratio + 15 }),
    from,
  );
}

describe("calibration", () => {
  it("begins with the prior and room above it of at least a fifth [C33]", () => {
    const { factor, low, high, observations } = calibratedFactor(emptyCalibration, opus);
    expect([factor, observations]).toEqual([prior, 0]);
    expect(high).toBeGreaterThanOrEqual(factor * 1.2);
    expect(low).toBeLessThan(factor);
  });

  it("goes from the prior to what is observed, slowly at first [C33]", () => {
    const factors = [1, 4, 16, 64].map((count) => calibratedFactor(learn(Array<number>(count).fill(0.9)), opus).factor);
    expect(factors).toEqual(factors.toSorted((a, b) => b - a));
    expect(factors[0]).toBeGreaterThan(1.05);
    expect(factors[3]).toBeLessThan(0.93);
    expect(factors[3]).toBeGreaterThan(0.9);
  });

  it("narrows the band to what was seen", () => {
    const { factor, low, high } = calibratedFactor(
      learn(Array.from({ length: 64 }, (_, index) => 1 + (index % 8) / 100)),
      opus,
    );
    expect(low).toBeGreaterThan(0.98);
    expect(high).toBeLessThan(1.1);
    expect(low).toBeLessThan(factor);
    expect(high).toBeGreaterThan(factor);
  });

  it.each<[string, TokenCount, number]>([
    ["a small step that came with something else", counted(250), 380],
    ["much observed of little counted: a system prompt changed", counted(15), 886],
    ["little observed of much counted: something was left out", counted(5000), 200],
    ["a step that no tokenizer explains", counted(1000), 5000],
    ["less than nothing", counted(1000), -400],
    ["mostly images", counted(1000, 3200), 4300],
  ])("learns nothing from %s", (_, count, observedTokens) => {
    expect(observe(emptyCalibration, { counter: opus, counted: count, observedTokens })).toBe(emptyCalibration);
  });

  it("learns from small steps what a message costs beside its text, and widens the band by what it saw", () => {
    const small = (state: Calibration, overhead: number): Calibration =>
      observe(state, { counter: opus, counted: counted(100), observedTokens: 110 + overhead });
    const first = calibratedFactor(emptyCalibration, opus).overhead;
    expect([first.tokens, first.low < 8, first.high > 22]).toEqual([15, true, true]);
    const state = Array.from({ length: 32 }, (_, index) => 3 + (index % 4)).reduce(small, emptyCalibration);
    const { tokens, low, high } = calibratedFactor(state, opus).overhead;
    expect([tokens > 4 && tokens < 8, low < tokens, high > tokens]).toEqual([true, true, true]);
    expect(high - low).toBeLessThan(first.high - first.low);
    expect(state.overheads?.["claude-opus-4-5 " + opus.version]).toHaveLength(32);
    expect(readCalibration(JSON.parse(JSON.stringify(state)))).toEqual(state);
    expect(readCalibration({ ...state, overheads: { a: ["1"] } })).toBeNull();
    // What large steps tell is another thing.
    expect(calibratedFactor(state, opus).observations).toBe(0);
  });

  it("is not thrown off by a step that something else explains", () => {
    const usual = Array<number>(20).fill(1.08);
    const before = calibratedFactor(learn(usual), opus).factor;
    const after = calibratedFactor(learn([1.9, ...usual, 2], emptyCalibration), opus).factor;
    expect(Math.abs(after - before)).toBeLessThan(0.005);
  });

  it("follows a tokenizer that changes under its name", () => {
    const state = learn(Array<number>(64).fill(1.4), learn(Array<number>(64).fill(1)));
    expect(calibratedFactor(state, opus).factor).toBeGreaterThan(1.35);
  });

  it("keeps models and tokenizers apart, and spellings of a model together", async () => {
    const state = learn([0.9, 0.9]);
    expect(calibratedFactor(state, await counterOf("claude-sonnet-4-5")).observations).toBe(0);
    expect(calibratedFactor(state, await counterOf("anthropic/claude-opus-4.5")).observations).toBe(2);
    const heuristic = await estimator.counterFor(opus.model, { method: "heuristic" });
    expect(calibratedFactor(state, heuristic).observations).toBe(0);
  });

  it("stays small, whatever it learns", async () => {
    let state = emptyCalibration;
    for (let index = 0; index < 100; index++) state = learn([1], state, await counterOf(`model-${index}-x`));
    state = learn(Array<number>(200).fill(1), state);
    expect(Object.keys(state.ratios)).toHaveLength(64);
    expect(calibratedFactor(state, opus).observations).toBe(64);
    expect(JSON.stringify(state).length).toBeLessThan(16_384);
  });

  it("is the same after a restart, and refuses what is none", () => {
    const state = learn([0.9, 1, 1.2]);
    expect(readCalibration(JSON.parse(JSON.stringify(state)))).toEqual(state);
    for (const value of [
      null,
      1,
      {},
      { v: 2, ratios: {} },
      { v: 1, ratios: [] },
      { v: 1, ratios: { a: [0] } },
      { v: 1, ratios: { a: ["1"] } },
    ]) {
      expect(readCalibration(value)).toBeNull();
    }
  });

  it("keeps the factor between prior and observations, inside its band", () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0.6, max: 2, noNaN: true }), { minLength: 1, maxLength: 80 }), (ratios) => {
        const { factor, low, high, observations } = calibratedFactor(learn(ratios), opus);
        expect(observations).toBe(Math.min(64, ratios.length));
        const known = [prior, ...ratios.slice(-64)];
        expect(factor).toBeGreaterThanOrEqual(Math.min(...known) - 1e-3);
        expect(factor).toBeLessThanOrEqual(Math.max(...known) + 1e-3);
        expect(low).toBeLessThanOrEqual(factor);
        expect(high).toBeGreaterThanOrEqual(factor);
      }),
    );
  });
});
