import { expect, it } from "vitest";
import type { StoredRecord } from "@throughline/core";
import { runSteps } from "@throughline/core/internal";
import { type SessionUsage, SessionUsageSum } from "@throughline/usage/internal";

type Draft = readonly [record: object, isPrompt?: boolean];

function usageOf(drafts: readonly Draft[], sharedSeq = 0): SessionUsage {
  const sum = new SessionUsageSum();
  for (const [index, [record, isPrompt = false]] of drafts.entries()) {
    const seq = index + 1;
    const stored = { seq, id: `r${seq}`, side: false, tsMs: seq * 1000, storedAtMs: null, bytes: 100_000, record };
    sum.take({ ...stored, record: { id: `r${seq}`, ...record } } as unknown as StoredRecord, isPrompt);
  }
  return runSteps(sum.usage({}, sharedSeq));
}

const prompt: Draft = [{ type: "message", message: { role: "user", content: "x" } }, true];
const reply = (input: number, output: number, more: object = {}): Draft => {
  const usage = { input, output, cacheRead: 0, cacheWrite: 0, totalTokens: input + output };
  const model = { provider: "anthropic", model: "claude-sonnet-4-5" };
  return [{ type: "message", message: { role: "assistant", content: "y", ...model, usage, ...more } }];
};

it("adds calls up from prompt to prompt", () => {
  const { turns, total, hasUsage } = usageOf([reply(1, 1), prompt, reply(10, 2), reply(20, 3), prompt]);
  const shown = turns.map(({ seq, calls, input, output, fillTokens, model }) => [
    seq,
    calls,
    input,
    output,
    fillTokens,
    model,
  ]);
  expect(shown).toEqual([
    [null, 1, 1, 1, 2, "anthropic/claude-sonnet-4-5"],
    [2, 2, 30, 5, 23, "anthropic/claude-sonnet-4-5"],
    [5, 0, 0, 0, null, null],
  ]);
  expect(total).toMatchObject({ calls: 3, input: 31, output: 6, unpricedCalls: 0 });
  expect(total.costUsd).toBeCloseTo((31 * 3 + 6 * 15) / 1e6, 9);
  expect(hasUsage).toBe(true);
});

it("counts a repeated reply once, and what a fork shares not at all", () => {
  const same = { responseId: "msg_0123456789abcdef" };
  const drafts = [prompt, reply(10, 2, same), prompt, reply(10, 2, same), reply(7, 1)];
  expect(usageOf(drafts).total).toMatchObject({ calls: 2, input: 17 });
  const fork = usageOf(drafts, 2);
  expect(fork.turns.map(({ isShared, input }) => [isShared, input])).toEqual([
    [true, 10],
    [false, 7],
  ]);
  expect(fork.total).toMatchObject({ calls: 1, input: 7 });
});

it("knows the first byte of calls through a gateway, and nothing of sessions without counts", () => {
  const exchange = (data: object): Draft => [{ type: "custom", customType: "throughline.exchange", data }];
  const { turns } = usageOf([prompt, exchange({ startedMs: 100, firstByteMs: 350, endedMs: 900 }), reply(1, 1)]);
  expect(turns[0]?.firstByteMs).toBe(250);
  for (const odd of [{ startedMs: 5, firstByteMs: 1 }, { startedMs: "1", firstByteMs: 2 }, {}])
    expect(usageOf([prompt, exchange(odd)]).turns[0]?.firstByteMs).toBe(null);
  const empty = usageOf([prompt, [{ type: "message", message: { role: "assistant", content: "y" } }]]);
  expect([empty.hasUsage, empty.total.costUsd, empty.turns.length]).toEqual([false, 0, 1]);
});
