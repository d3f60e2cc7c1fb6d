import { describe, expect, it } from "vitest";
import { classifyOverflow } from "@throughline/guard";
import { createGuardTurn } from "../src/guard-options.ts";
import { learnLimits, limitsOf, nothingLearned, readLimits } from "../src/learned-limits.ts";
import { ollamaWindowTokens, readOllamaWindow, silentTruncation } from "../src/ollama.ts";
import type { GuardedRequest } from "../src/guard-options.ts";
import type { GuardOptions } from "@throughline/guard";
import { dropOldest } from "../src/drop-oldest.ts";
import { serializeMessages } from "../src/serialize-messages.ts";
import { fine, model, overflow, run, turns, type Run } from "./guarded-run.ts";
import { openFixture, stages } from "./guard-fixture.ts";

describe("a guarded call", () => {
  it("takes 8,192 tokens for the answer unless told, and leaves a null to the provider [GRD-08, C39]", async () => {
    const request = { messages: turns(1, "x") };
    for (const [given, sent] of [
      [undefined, 8192],
      [500, 500],
      [null, null],
    ] as const) {
      const one = run({ request: given === undefined ? request : { ...request, maxOutputTokens: given } });
      await one.result;
      expect(one.sent[0]?.maxOutputTokens).toBe(sent);
    }
  });

  it("knows nothing of an unknown window, and makes no check", async () => {
    for (const windowTokens of [0, null]) {
      const one = run({ request: { messages: turns(40, "word ".repeat(4000)) }, windowTokens });
      expect((await one.result).changes).toEqual([]);
      expect(one.sent).toHaveLength(1);
    }
  });

  it("compacts at most once in a turn of the user, however many calls it has", async () => {
    const turn = createGuardTurn();
    const messages = turns(30, "word ".repeat(60));
    const first = run({ request: { messages }, windowTokens: 4000, turn });
    await first.result;
    expect(stages(first.events)).toContain("compact");
    const second = run({ request: { messages }, windowTokens: 4000, turn });
    await second.result;
    expect(stages(second.events)).not.toContain("compact");
    expect(turn.compactions).toBe(1);
  });

  it("asks a counting endpoint between 85 and 100 % of what fits, and believes it", async () => {
    const messages = turns(10, "word ".repeat(300));
    const request = { messages, maxOutputTokens: 100 };
    const alone = run({ request, windowTokens: 1_000_000 });
    const { tokens } = (await alone.result).estimate;
    const counted = async (share: number, endpoint: number): Promise<[number, readonly string[]]> => {
      let asked = 0;
      const windowTokens = Math.round(tokens / share) + 100;
      const countTokens = async (): Promise<number> => ((asked += 1), endpoint);
      const one = run({ request, windowTokens, countTokens });
      await one.result;
      return [asked, stages(one.events)];
    };
    expect(await counted(0.8, 1)).toEqual([0, []]);
    expect(await counted(0.9, tokens)).toEqual([1, []]);
    expect((await counted(0.9, tokens * 2))[1].length).toBeGreaterThan(0);
    expect((await counted(1.1, 1))[0]).toBe(0);
    // A count that fails leaves the decision to the estimate.
    const failing = run({
      request,
      windowTokens: Math.round(tokens / 0.9) + 100,
      countTokens: async () => Promise.reject(new Error("no")),
    });
    await failing.result;
    expect(failing.events.map(({ name }) => name)).toContain("guard.count-failed");
  });

  describe("a refusal that nobody can read", () => {
    const refusal = Object.assign(new Error("invalid request"), { status: 400 });
    const request = { messages: turns(1, "word ".repeat(4000)), maxOutputTokens: 10 };
    // Measured, so that there is no doubt before the call; the window is wrong or something else is.
    const actual = { tokens: 4000, coversMessages: request.messages.length };
    const isWhole = ({ messages }: GuardedRequest): boolean => JSON.stringify(messages).length > 19_000;
    const ask = (windowTokens: number, more: Partial<GuardOptions<unknown>> = {}): Run =>
      run({
        request,
        windowTokens,
        actual,
        call: async (sent) => {
          if (isWhole(sent)) throw refusal;
          return fine;
        },
        ...more,
      });

    it("of a large request is cured by shorter results, when it was the size", async () => {
      const { changes, attempts } = await ask(4200).result;
      expect(changes.map(({ what }) => what)).toEqual(["tool-result"]);
      expect(attempts.map(({ outcome, overflow: found }) => [outcome, found?.rule])).toEqual([
        ["overflowed", "probe:truncate"],
        ["answered", undefined],
      ]);
    });

    it("is passed on as it came, after one more call and no compaction, when it was not", async () => {
      let compactions = 0;
      const compact = async (): Promise<null> => ((compactions += 1), null);
      const one = ask(4200, { compact, call: async () => Promise.reject(refusal) });
      await expect(one.result).rejects.toBe(refusal);
      expect([one.sent.length, compactions]).toEqual([2, 0]);
    });

    it("of a small request, or of another status, is passed on at once", async () => {
      const fault = Object.assign(new Error("invalid request"), { status: 500 });
      const small = ask(5000);
      const other = ask(4200, { call: async () => Promise.reject(fault) });
      await expect(small.result).rejects.toBe(refusal);
      await expect(other.result).rejects.toBe(fault);
      expect([small.sent.length, other.sent.length]).toEqual([1, 1]);
    });

    it("is what the counting endpoint says it is", async () => {
      // Before the call the endpoint fails; after the refusal it answers.
      const counting = (tokens: number): Partial<GuardOptions<unknown>> => {
        let asked = 0;
        return { countTokens: async () => (asked++ === 0 ? Promise.reject(new Error("no")) : tokens) };
      };
      const over = await ask(4200, counting(4300)).result;
      expect(over.attempts[0]?.overflow).toMatchObject({ rule: "probe:count", inputTokens: 4300, limitTokens: 4200 });
      const fits = ask(4200, counting(4000));
      await expect(fits.result).rejects.toBe(refusal);
      expect(fits.sent).toHaveLength(1);
    });
  });

  it("goes on when the compaction fails, and tells", async () => {
    const compact = async (): Promise<never> => Promise.reject(new Error("the summarizer is down"));
    const one = run({ request: { messages: turns(30, "word ".repeat(60)) }, windowTokens: 4000, compact });
    expect((await one.result).outcome).toBe("answered");
    expect(one.events.find(({ name }) => name === "guard.no-progress")).toBeDefined();
    expect(one.events).toContainEqual(
      expect.objectContaining({ name: "guard.no-progress", remedy: "compact", cause: expect.any(Error) as unknown }),
    );
  });

  it("passes on another error that comes after an overflow, as it came", async () => {
    const other = new Error("503 overloaded");
    let calls = 0;
    const call = async (): Promise<unknown> => Promise.reject(calls++ === 0 ? overflow() : other);
    await expect(run({ request: { messages: turns(20, "word ".repeat(3000)) }, call }).result).rejects.toBe(other);
    expect(calls).toBe(2);
  });

  it("never makes more than three calls, whatever is answered", async () => {
    for (const text of [
      "prompt is too long",
      "input length and `max_tokens` exceed context limit: 7000 + 8192 > 8000",
      "413 Payload Too Large",
    ]) {
      const one = run({
        request: { messages: turns(30, "word ".repeat(3000)) },
        call: async () => Promise.reject(new Error(text)),
      });
      await expect(one.result).rejects.toMatchObject({ code: "CONTEXT_OVERFLOW" });
      expect(one.sent.length).toBeLessThanOrEqual(4);
      expect(
        one.sent.filter((request, index) => JSON.stringify(request) === JSON.stringify(one.sent[index - 1])),
      ).toEqual([]);
    }
  });

  it("does not overflow again after a restart when what was shortened is given back", async () => {
    const messages = turns(2, "word ".repeat(20_000));
    let refusals = 0;
    const call = async ({ messages: sent }: GuardedRequest): Promise<unknown> => {
      if (JSON.stringify(sent).length <= 60_000) return fine;
      refusals += 1;
      throw overflow();
    };
    const request = { messages, maxOutputTokens: 500 };
    const first = await run({ request, call, compact: null }).result;
    expect(first.changes.map(({ what }) => what)).toEqual(["tool-result", "tool-result"]);
    const kept = JSON.parse(JSON.stringify(first.changes)) as typeof first.changes;
    const again = await run({ request, call, keptChanges: kept, compact: null }).result;
    expect(refusals).toBe(1);
    expect(JSON.stringify(again.request)).toBe(JSON.stringify(first.request));
    expect(again.changes).toEqual([]);
  });

  it("takes thinking out behind a change where the model binds it to what stands before", async () => {
    const thinks = {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "so", signature: "s" },
        { type: "text", text: "Yes." },
      ],
    };
    const messages = [...turns(1, "word ".repeat(30_000)), thinks, { role: "user", content: "Go on." }];
    const { request } = await run({
      request: { messages },
      model: { provider: "anthropic", modelId: "claude-opus-5-5" },
      windowTokens: 20_000,
    }).result;
    expect(JSON.stringify(request.messages)).not.toContain('"thinking"');
    expect(JSON.stringify(request.messages)).toContain("Yes.");
    const older = await run({ request: { messages }, windowTokens: 20_000 }).result;
    expect(JSON.stringify(older.request.messages)).toContain('"thinking"');
  });
});

describe("leaving out the oldest messages", () => {
  const estimate = (messages: readonly unknown[]): number => JSON.stringify(messages).length / 4;

  it("leaves out as few as it takes, and keeps beginning, newest request, pairs and roles", () => {
    const messages = [
      { role: "user", content: "[Previous conversation summary]\nThe goal is peace." },
      { role: "assistant", content: "Understood." },
      ...turns(30, "r".repeat(400)).slice(0, -1),
    ];
    const left = dropOldest(messages, { estimate, targetTokens: 1500 }) as { role: string; content: unknown }[];
    expect(estimate(left)).toBeLessThanOrEqual(1500);
    expect(estimate(left)).toBeGreaterThan(1200);
    expect(left[0]?.content).toMatch(/The goal is peace\.\n\n\[\d+ messages were left out here/);
    expect(left.every(({ role }, index) => role !== left[index - 1]?.role)).toBe(true);
    expect(JSON.stringify(left.at(-1))).toBe(JSON.stringify(messages.at(-1)));
    const first = JSON.stringify(left).indexOf('"tool_result"');
    expect(JSON.stringify(left).indexOf('"tool_use"')).toBeLessThan(first);
  });

  it("cuts no character in two: no API takes half of one, now or in any later request", () => {
    for (const before of ["", "x"]) {
      const emoji = `${before}${"😀".repeat(2500)}`;
      const messages = [
        { role: "user", content: "Begin." },
        { role: "assistant", content: "Yes." },
        { role: "user", content: emoji },
        { role: "assistant", content: "a".repeat(9000) },
        { role: "user", content: "And now?" },
      ];
      const left = dropOldest(messages, { estimate, targetTokens: 1800 });
      expect(JSON.stringify(left)).toContain("The latest request among them was:");
      for (const { content } of left as { content: string }[]) expect(content.isWellFormed()).toBe(true);
      const results = [{ role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: emoji }] }];
      expect(serializeMessages(results).isWellFormed()).toBe(true);
    }
  });

  it("gives up where there is nothing to leave out", () => {
    expect(dropOldest([{ role: "user", content: "x".repeat(9000) }], { estimate, targetTokens: 10 })).toBeNull();
    expect(dropOldest([], { estimate, targetTokens: 10 })).toBeNull();
  });
});

describe("what errors tell of a model", () => {
  it("is kept by provider and model, and read back", () => {
    const window = classifyOverflow(overflow());
    const learned = learnLimits(nothingLearned, model, window);
    expect(limitsOf(learned, model)).toEqual({ windowTokens: 8000 });
    expect(limitsOf(learned, { ...model, provider: "bedrock" })).toEqual({});
    expect(learnLimits(learned, model, window)).toBe(learned);
    const capped = classifyOverflow({
      status: 400,
      message: "max_tokens: 9000 > 4096, which is the maximum allowed number of output tokens",
    });
    const more = learnLimits(learned, model, capped);
    expect(limitsOf(more, model)).toEqual({ windowTokens: 8000, maxOutputTokens: 4096 });
    expect(readLimits(JSON.parse(JSON.stringify(more)))).toEqual(more);
    expect([
      readLimits(null),
      readLimits({ v: 2 }),
      readLimits({ v: 1, models: { a: { windowTokens: "x" } } }),
    ]).toEqual([null, null, null]);
    expect(limitsOf(nothingLearned, { provider: null, modelId: "__proto__" })).toEqual({});
  });

  it("is used before the next call", async () => {
    const limits = learnLimits(nothingLearned, model, classifyOverflow(overflow()));
    const one = run({ request: { messages: turns(20, "word ".repeat(1000)) }, limits });
    expect((await one.result).attempts[0]).toMatchObject({ attempt: null, outcome: "over" });
    expect(one.sent).toHaveLength(1);
  });
});

describe("Ollama's window", () => {
  it("is what is loaded or asked for, never more than trained", { tags: ["slow"] }, async () => {
    const fixture = await openFixture("ollama", false, 8000, {
      models: { "llama3.1": { windowTokens: 16_000 } },
      ollamaContextTokens: 8000,
    });
    const get = async (path: string, body?: object): Promise<unknown> => {
      const how = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
      return (await fetch(`${fixture.simulator.url}${path}`, how)).json();
    };
    const window = readOllamaWindow("llama3.1", await get("/api/show", { model: "llama3.1" }), await get("/api/ps"));
    await fixture.simulator.close();
    expect(window).toEqual({ loadedTokens: 8000, configuredTokens: 8000, trainedTokens: 16_000 });
    expect([
      ollamaWindowTokens(window),
      ollamaWindowTokens(window, 12_000),
      ollamaWindowTokens(window, 99_000),
    ]).toEqual([8000, 12_000, 16_000]);
    expect(ollamaWindowTokens(readOllamaWindow("x", null))).toBeNull();
    expect(readOllamaWindow("x", { parameters: 5, model_info: [] }, { models: "no" }).loadedTokens).toBeNull();
  });

  it("was too small for certain only when the prompt cannot have fitted", () => {
    const estimate = { tokens: 10_000, lowTokens: 9000 };
    expect(silentTruncation(4000, estimate, 4096)).toBe("certain");
    expect(silentTruncation(4000, estimate, 128_000)).toBe("suspected");
    expect(silentTruncation(30, estimate, null)).toBe("suspected");
    expect(silentTruncation(8000, estimate, 128_000)).toBe("none");
  });
});
