import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ThroughlineError, type Summarizer, type SummaryRequest } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { breakerSteps } from "../src/breaker-steps.ts";
import { createSummarizerBreakers } from "../src/summarizer-breakers.ts";
import type { BreakerSnapshot } from "../src/summarizer-breakers.ts";
import { createTestClock } from "./test-clock.ts";

const request: SummaryRequest = { text: "[User]: Hi", previousSummary: null, maxOutputTokens: 100 };
const minuteMs = 60_000;

/** A summarizer that does what it is told next, and counts. */
function scripted(...steps: readonly ("works" | "fails")[]): Summarizer & { calls(): number } {
  let calls = 0;
  return {
    calls: () => calls,
    async summarize() {
      const step = steps[calls++] ?? steps.at(-1);
      if (step === "fails") throw new Error("the model does not answer");
      return { summary: "A summary.", source: "test", usage: null };
    },
  };
}

const code = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "done",
    (error: unknown) => (ThroughlineError.isInstance(error) ? error.code : "failed"),
  );

describe("the breaker", () => {
  it("has the table of its specification", () => {
    const text = readFileSync(join(import.meta.dirname, "..", "SPEC.md"), "utf8");
    const table = /## Table[\s\S]*?(\| state[\s\S]*?)\n\n/.exec(text)?.[1] ?? "";
    const [head = "", , ...rows] = table.split("\n").map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
    const steps = [...head].slice(1);
    const written = Object.fromEntries(
      rows.map(([state = "", ...cells]) => [
        state.replaceAll("`", ""),
        Object.fromEntries(cells.map((cell, index) => [steps[index], cell === "-" ? null : cell])),
      ]),
    );
    expect(written).toEqual(breakerSteps);
  });

  it("skips a summarizer after three failures in a row, not after two", async () => {
    const breakers = createSummarizerBreakers({ clock: createTestClock() });
    const model = scripted("fails");
    const guarded = breakers.guard("ollama", model);
    for (const expected of ["failed", "failed", "failed", "SUMMARIZER_PAUSED", "SUMMARIZER_PAUSED"])
      expect(await code(guarded.summarize(request))).toBe(expected);
    expect(model.calls()).toBe(3);
  });

  it("counts anew after a success", async () => {
    const breakers = createSummarizerBreakers({ clock: createTestClock() });
    const model = scripted("fails", "fails", "works", "fails", "fails", "works");
    const guarded = breakers.guard("ollama", model);
    for (const expected of ["failed", "failed", "done", "failed", "failed", "done"])
      expect(await code(guarded.summarize(request))).toBe(expected);
    expect(breakers.status()).toMatchObject([{ state: "closed", failures: 0, lastError: null }]);
  });

  it("tries again after 30 minutes, with one probe alone", async () => {
    const clock = createTestClock();
    const breakers = createSummarizerBreakers({ clock });
    const { promise: held, resolve: answer } = Promise.withResolvers<void>();
    let calls = 0;
    const guarded = breakers.guard("ollama", {
      async summarize() {
        calls += 1;
        if (calls <= 3) throw new Error("no");
        await held;
        return { summary: "A summary.", source: "test", usage: null };
      },
    });
    for (let time = 0; time < 3; time++) await code(guarded.summarize(request));
    clock.advance(30 * minuteMs - 1);
    expect(await code(guarded.summarize(request))).toBe("SUMMARIZER_PAUSED");
    clock.advance(1);
    const probe = code(guarded.summarize(request));
    expect(breakers.status()).toMatchObject([{ state: "half-open" }]);
    expect(await code(guarded.summarize(request))).toBe("SUMMARIZER_PAUSED");
    expect(calls).toBe(4);
    answer();
    expect(await probe).toBe("done");
    expect(await code(guarded.summarize(request))).toBe("done");
  });

  it("begins the pause anew when the probe fails, after one failure and not three", async () => {
    const clock = createTestClock();
    const model = scripted("fails", "fails", "fails", "fails", "works");
    const guarded = createSummarizerBreakers({ clock }).guard("ollama", model);
    for (let time = 0; time < 3; time++) await code(guarded.summarize(request));
    clock.advance(30 * minuteMs);
    expect(await code(guarded.summarize(request))).toBe("failed");
    clock.advance(29 * minuteMs);
    expect(await code(guarded.summarize(request))).toBe("SUMMARIZER_PAUSED");
    clock.advance(minuteMs);
    expect(await code(guarded.summarize(request))).toBe("done");
  });

  it("counts no more failures than the threshold, in a probe, in a snapshot, and in what it says", async () => {
    const clock = createTestClock();
    const breakers = createSummarizerBreakers({ clock });
    const guarded = breakers.guard("ollama", scripted("fails", "fails", "fails", "fails", "fails"));
    for (let time = 0; time < 3; time++) await code(guarded.summarize(request));
    for (let probe = 0; probe < 2; probe++) {
      clock.advance(30 * minuteMs);
      expect(await code(guarded.summarize(request))).toBe("failed");
      expect(breakers.status()).toMatchObject([{ failures: 3, threshold: 3, state: "open" }]);
    }
    const message = /ollama failed 3 times in a row/;
    await expect(guarded.summarize(request)).rejects.toMatchObject({ message: expect.stringMatching(message) });
    const after = createSummarizerBreakers({ clock, snapshot: breakers.snapshot(), threshold: 2 });
    expect(after.status()).toMatchObject([{ failures: 2, threshold: 2 }]);
  });

  it("stays out after a failed probe, also when the threshold was raised meanwhile", async () => {
    const clock = createTestClock();
    const entry = { failures: 3, openedAtMs: clock.nowMs() - 30 * minuteMs, lastError: null };
    const snapshot = { v: 1, summarizers: { a: entry } };
    const breakers = createSummarizerBreakers({ clock, snapshot, threshold: 10 });
    const guarded = breakers.guard("a", scripted("fails"));
    expect(await code(guarded.summarize(request))).toBe("failed");
    expect(await code(guarded.summarize(request))).toBe("SUMMARIZER_PAUSED");
  });

  it("counts nothing when the caller ends the call, and lets the next one be the probe", async () => {
    const clock = createTestClock();
    const breakers = createSummarizerBreakers({ clock, threshold: 1 });
    const waiting: Summarizer = {
      summarize: ({ signal }) =>
        new Promise((_resolve, reject) =>
          signal?.addEventListener("abort", () => reject(new ThroughlineError("ABORTED", "The summary was aborted."))),
        ),
    };
    const ended = async (): Promise<string> => {
      const controller = new AbortController();
      const work = code(breakers.guard("a", waiting).summarize({ ...request, signal: controller.signal }));
      controller.abort();
      return work;
    };
    expect(await ended()).toBe("ABORTED");
    expect(breakers.status()).toMatchObject([{ state: "closed", failures: 0 }]);
    await code(breakers.guard("a", scripted("fails")).summarize(request));
    clock.advance(30 * minuteMs);
    expect(await ended()).toBe("ABORTED");
    expect(breakers.status()).toMatchObject([{ state: "open", retryInMs: 0 }]);
    expect(await code(breakers.guard("a", scripted("works")).summarize(request))).toBe("done");
  });

  it("keeps its state over a restart, each summarizer its own", async () => {
    const clock = createTestClock();
    const kept: BreakerSnapshot[] = [];
    const before = createSummarizerBreakers({ clock, onChange: (snapshot) => void kept.push(snapshot) });
    const failing = before.guard("ollama", scripted("fails"));
    await code(before.guard("anthropic", scripted("fails")).summarize(request));
    for (let time = 0; time < 3; time++) await code(failing.summarize(request));
    expect(kept).toHaveLength(4);
    const snapshot = JSON.parse(JSON.stringify(kept.at(-1))) as unknown;
    clock.advance(10 * minuteMs);
    const after = createSummarizerBreakers({ clock, snapshot });
    expect(after.status()).toEqual([
      expect.objectContaining({ name: "anthropic", state: "closed", failures: 1, threshold: 3, retryInMs: null }),
      expect.objectContaining({
        name: "ollama",
        state: "open",
        failures: 3,
        retryInMs: 20 * minuteMs,
        lastError: "Error: the model does not answer",
      }),
    ]);
    const model = scripted("works");
    expect(await code(after.guard("ollama", model).summarize(request))).toBe("SUMMARIZER_PAUSED");
    expect(model.calls()).toBe(0);
    clock.advance(20 * minuteMs);
    expect(await code(after.guard("ollama", model).summarize(request))).toBe("done");
    expect(after.snapshot().summarizers["ollama"]).toEqual({ failures: 0, openedAtMs: null, lastError: null });
  });

  it("reads a state that is broken as none, and is not held by a clock that was set back", async () => {
    for (const snapshot of [null, 7, "x", { v: 2 }, { v: 1, summarizers: { a: { failures: "x" }, b: null } }])
      expect(createSummarizerBreakers({ snapshot }).status()).toEqual([]);
    const clock = createTestClock(1000);
    const entry = { failures: 3, openedAtMs: 1_000_000_000, lastError: null };
    const breakers = createSummarizerBreakers({ clock, snapshot: { v: 1, summarizers: { a: entry } } });
    expect(breakers.status()).toMatchObject([{ retryInMs: 30 * minuteMs }]);
  });
});
