import type { Calibration } from "@throughline/tokens/internal";
import { afterEach, describe, expect, it } from "vitest";
import { ThroughlineError } from "@throughline/core";
import type { SimulatedReply } from "@throughline/testing";
import { ollamaRequestFields } from "../src/ollama.ts";
import { toolTurn, wirings, type WiringName } from "./models.ts";
import { openFixture, stages, type Fixture } from "./guard-fixture.ts";

const names = Object.keys(wirings) as WiringName[];
const ways = names.flatMap((name) => [[name, false] as const, [name, true] as const]);
let fixture: Fixture;

/** A conversation whose last turn asks a question. */
function conversation(name: WiringName, turns: number, resultCharacters: number): readonly object[] {
  const line = "line of a log that a tool has read\n";
  const result = line.repeat(Math.ceil(resultCharacters / line.length)).slice(0, resultCharacters);
  const history = Array.from({ length: turns }, (_, number) => toolTurn(name, number, result)).flat();
  return [...history, { role: "user", content: "And now?" }];
}

function thrown(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => "nothing was thrown",
    (error: unknown) => error,
  );
}

describe.each(ways)("%s, streamed: %s", (name, streams) => {
  afterEach(() => fixture.simulator.close());

  it("sends what fits as it is", async () => {
    fixture = await openFixture(name, streams, 20_000);
    const messages = conversation(name, 2, 300);
    const { outcome, changes, attempts } = await fixture.guard({ messages, windowTokens: 20_000 });
    expect([outcome, changes, attempts.map((attempt) => attempt.outcome)]).toEqual(["answered", [], ["answered"]]);
    expect(fixture.sent[0]?.messages).toBe(messages);
    expect(fixture.sent[0]).not.toHaveProperty("tools");
    expect(fixture.simulator.refusals).toEqual([]);
  });

  it("shortens oversized tool results after an overflow, and answers", async () => {
    fixture = await openFixture(name, streams, 20_000);
    const messages = conversation(name, 2, 60_000);
    const before = JSON.stringify(messages);
    // Nobody told the guard the window: it learns of the overflow from the provider.
    const { outcome, changes, attempts, request } = await fixture.guard({ messages });
    expect([outcome, attempts.map((attempt) => attempt.outcome)]).toEqual(["answered", ["overflowed", "answered"]]);
    expect(stages(fixture.events)).toEqual(["truncate"]);
    expect(changes.map(({ what }) => what)).toEqual(["tool-result", "tool-result"]);
    expect(changes.every(({ beforeBytes, afterBytes }) => beforeBytes === 60_000 && afterBytes < 20_000)).toBe(true);
    expect(JSON.stringify(request.messages)).toMatch(/truncated \(60000 chars total, showing first \d+ and last \d+\)/);
    expect(fixture.events.filter((event) => event.name === "guard.attempt")).toHaveLength(2);
    expect(JSON.stringify(messages)).toBe(before);
  });

  it("compacts when that is not enough, and never before the results", async () => {
    fixture = await openFixture(name, streams, 4000);
    const messages = conversation(name, 40, 1500);
    const { outcome, attempts } = await fixture.guard({ messages });
    expect(outcome).toBe("answered");
    expect(attempts.length).toBeLessThanOrEqual(3);
    expect(stages(fixture.events).filter((stage) => stage === "compact")).toEqual(["compact"]);
    expect(fixture.simulator.refusals.every(({ kind }) => kind === "overflow")).toBe(true);
  });

  it("knows before the first call that it does not fit", async () => {
    fixture = await openFixture(name, streams, 8000);
    const { outcome, attempts } = await fixture.guard({ messages: conversation(name, 20, 4000), windowTokens: 8000 });
    expect([outcome, attempts.map((attempt) => attempt.outcome)]).toEqual(["answered", ["over", "answered"]]);
    expect(fixture.simulator.refusals).toEqual([]);
  });

  it("raises what nothing cures, with the provider's error and every attempt", async () => {
    fixture = await openFixture(name, streams, 2000);
    const messages = [{ role: "user", content: "These words are the user's own. ".repeat(1000) }];
    const error = await thrown(fixture.guard({ messages }));
    expect(error).toMatchObject({ code: "CONTEXT_OVERFLOW", details: { kind: "input" } });
    expect((error as ThroughlineError).cause).toBeInstanceOf(Object);
    expect((error as ThroughlineError).details["attempts"]).toMatchObject([{ attempt: 0, outcome: "overflowed" }]);
    expect(fixture.simulator.requests).toHaveLength(1);
  });

  it.each([
    ["a rate limit", { kind: "error", status: 429, message: "Rate limit reached: 5000 tokens per minute" }],
    ["bad credentials", { kind: "error", status: 401, message: "invalid token" }],
    ["a server fault", { kind: "error", status: 500, message: "internal error computing maximum context length" }],
    ["overload", { kind: "error", status: 503 }],
  ] satisfies [string, SimulatedReply][])("passes %s on untouched, with one call", async (_, reply) => {
    // A local server's 500 is believed by its words, so the words must not be an overflow's.
    fixture = await openFixture(name, streams, 20_000, { replies: [reply] });
    const messages = conversation(name, 3, 3000);
    const before = JSON.stringify(messages);
    const error = await thrown(fixture.guard({ messages }));
    expect(error).toBeInstanceOf(Error);
    expect(ThroughlineError.isInstance(error)).toBe(false);
    expect(error).toMatchObject(name === "ollama" ? { status_code: reply.status } : { status: reply.status });
    expect([fixture.simulator.requests.length, stages(fixture.events)]).toEqual([1, []]);
    expect(JSON.stringify(messages)).toBe(before);
  });

  it("is ended by the caller's signal", async () => {
    fixture = await openFixture(name, streams, 20_000, {
      replies: [{ kind: "answer", content: "Late.", delayMs: 200 }],
    });
    const early = await thrown(fixture.guard({ messages: conversation(name, 1, 10), signal: AbortSignal.abort() }));
    expect(early).toMatchObject({ code: "ABORTED" });
    expect(fixture.sent).toHaveLength(0);
    if (name === "ollama") return;
    const controller = new AbortController();
    const pending = thrown(fixture.guard({ messages: conversation(name, 1, 10), signal: controller.signal }));
    await expect.poll(() => fixture.simulator.requests.length).toBe(1);
    controller.abort();
    expect(await pending).toMatchObject({ message: expect.stringMatching(/abort/i) as string });
    expect([fixture.sent.length, stages(fixture.events)]).toEqual([1, []]);
  });

  it("raises a rate limit smaller than the request without another call", async () => {
    const message =
      "Request too large for model `m` on tokens per minute (TPM): Limit 8000, Requested 9000, please reduce your message size and try again.";
    fixture = await openFixture(name, streams, 20_000, { replies: [{ kind: "error", status: 413, message }] });
    const error = await thrown(fixture.guard({ messages: conversation(name, 8, 3000) }));
    expect(error).toMatchObject({ code: "CONTEXT_OVERFLOW", details: { kind: "ceiling", windowTokens: 8000 } });
    expect(fixture.simulator.requests).toHaveLength(1);
  });

  it("takes images out of a request with too many bytes", async () => {
    fixture = await openFixture(name, streams, 50_000, { maxRequestBytes: 30_000 });
    const data = "iVBORw0KGgo".padEnd(20_000, "A");
    const picture = {
      anthropic: {
        content: [
          { type: "text", text: "Look." },
          { type: "image", source: { type: "base64", media_type: "image/png", data } },
        ],
      },
      "openai-chat": {
        content: [
          { type: "text", text: "Look." },
          { type: "image_url", image_url: { url: `data:image/png;base64,${data}` } },
        ],
      },
      "openai-responses": {
        content: [
          { type: "input_text", text: "Look." },
          { type: "input_image", detail: "auto", image_url: `data:image/png;base64,${data}` },
        ],
      },
      ollama: { content: "Look.", images: [data] },
    }[name];
    const messages = [1, 2].flatMap(() => [
      { role: "user", ...picture },
      { role: "assistant", content: "I see." },
    ]);
    const { outcome, changes } = await fixture.guard({ messages: [...messages, { role: "user", content: "And?" }] });
    expect([outcome, stages(fixture.events), changes.map(({ what, index }) => [what, index])]).toEqual([
      "answered",
      ["media"],
      [["media", 0]],
    ]);
    await expect.poll(() => fixture.simulator.requests.at(-1)?.outcome).toBe("answered");
  });
});

describe("kinds that only some providers have", () => {
  afterEach(() => fixture.simulator.close());

  it.each([
    ["anthropic", false],
    ["anthropic", true],
    ["openai-chat", false],
    ["openai-chat", true],
  ] as const)(
    "%s, streamed %s: asks for a shorter answer first when prompt and answer together are too much",
    async (name, streams) => {
      fixture = await openFixture(name, streams, 6000);
      const { outcome, changes, request, limits } = await fixture.guard({
        messages: conversation(name, 1, 12_000),
        maxOutputTokens: 5000,
      });
      expect([outcome, stages(fixture.events), changes.map(({ what }) => what)]).toEqual([
        "answered",
        ["output-budget"],
        ["output-budget"],
      ]);
      expect(request.maxOutputTokens).toBeGreaterThan(1500);
      expect(request.maxOutputTokens).toBeLessThan(3500);
      expect(Object.values(limits.models)).toEqual([{ windowTokens: 6000 }]);
    },
  );

  it.each([false, true])("shortens the one item that is too long, streamed %s", async (streams) => {
    const message =
      "Invalid 'messages[2].content': string too long. Expected a string with maximum length 10000, but got a string with length 30000 instead.";
    const reply: SimulatedReply = { kind: "error", status: 400, message, code: "string_above_max_length" };
    fixture = await openFixture("openai-chat", streams, 100_000, { replies: [reply] });
    const { outcome, changes } = await fixture.guard({ messages: conversation("openai-chat", 2, 30_000) });
    expect([outcome, stages(fixture.events)]).toEqual(["answered", ["item"]]);
    expect(changes.map(({ afterBytes }) => afterBytes <= 10_000)).toEqual([true, true]);
  });

  it.each([false, true])(
    "keeps Anthropic's answer that the end of the window cut short, streamed %s",
    async (streams) => {
      const reply: SimulatedReply = { kind: "answer", content: "As far as it goes", stop: "context-window" };
      fixture = await openFixture("anthropic", streams, 20_000, { replies: [reply] });
      const found = await fixture.guard({ messages: conversation("anthropic", 1, 10) });
      expect(found).toMatchObject({ outcome: "partial", overflow: { kind: "input" } });
      expect(JSON.stringify(found.reply)).toContain("As far as it goes");
      expect(found.attempts.map(({ outcome }) => outcome)).toEqual(["broke-off"]);
    },
  );

  it.each(names)("%s: keeps a stream's text when an overflow breaks it off", async (name) => {
    const message = {
      anthropic: "prompt is too long: 200010 tokens > 200000 maximum",
      "openai-chat": "This model's maximum context length is 128000 tokens.",
      "openai-responses": "Your input exceeds the context window of this model.",
      ollama: "Context size has been exceeded.",
    }[name];
    const breakAfter = { events: 6, how: "error-event", status: 400, message } as const;
    const content = "Half of what there is to say, and more. ".repeat(20);
    const reply: SimulatedReply = { kind: "answer", content, breakAfter };
    fixture = await openFixture(name, true, 200_000, { replies: [reply] });
    const messages = conversation(name, 2, 3000);
    const before = JSON.stringify(messages);
    const found = await fixture.guard({ messages });
    expect(found).toMatchObject({ outcome: "partial", reply: null });
    expect(found.overflow?.kind).toMatch(/^(?:input|io)$/);
    expect(content.startsWith(String(found.partial))).toBe(true);
    expect([fixture.simulator.requests.length, stages(fixture.events), found.changes]).toEqual([1, [], []]);
    expect(JSON.stringify(messages)).toBe(before);
  });

  it.each(names)("%s: passes on what else breaks a stream off, and touches nothing", async (name) => {
    for (const [status, message] of [
      [429, "Rate limit reached: too many tokens per minute"],
      [500, "The server had an error"],
    ] as const) {
      const breakAfter = { events: 6, how: "error-event", status, message } as const;
      const reply: SimulatedReply = {
        kind: "answer",
        content: "Half of what there is to say. ".repeat(20),
        breakAfter,
      };
      fixture = await openFixture(name, true, 200_000, { replies: [reply] });
      const error = await thrown(fixture.guard({ messages: conversation(name, 2, 3000) }));
      expect(ThroughlineError.isInstance(error)).toBe(false);
      expect([fixture.simulator.requests.length, stages(fixture.events)]).toEqual([1, []]);
      if (status === 429) await fixture.simulator.close();
    }
  });

  it.each(ways)(
    "%s, streamed %s: shortens what is named as too long, and asks for less where that is said",
    async (name, streams) => {
      const [item, sum] = [
        "Invalid 'messages[2].content': string too long. Expected a string with maximum length 10000, but got a string with length 30000 instead.",
        "the prompt of 8000 tokens and max_tokens of 5000 exceed the context length of 12000 tokens",
      ];
      const failure = (message: string): SimulatedReply => ({ kind: "error", status: 400, message });
      fixture = await openFixture(name, streams, 100_000, { replies: [failure(item)] });
      const shortened = await fixture.guard({ messages: conversation(name, 2, 30_000) });
      expect([shortened.outcome, stages(fixture.events)]).toEqual(["answered", ["item"]]);
      await fixture.simulator.close();
      fixture = await openFixture(name, streams, 100_000, { replies: [failure(sum)] });
      const lowered = await fixture.guard({ messages: conversation(name, 1, 12_000), maxOutputTokens: 5000 });
      expect([lowered.outcome, stages(fixture.events)]).toEqual(["answered", ["output-budget"]]);
      expect(lowered.request.maxOutputTokens).toBeLessThan(4000);
    },
  );

  it("keeps what a caller kept when an overflow error follows it", async () => {
    fixture = await openFixture("ollama", true, 20_000);
    const found = await fixture.guard({
      messages: conversation("ollama", 1, 10),
      call: async (_, { keep }) => {
        keep("Half of");
        keep("Half of it");
        throw Object.assign(new Error("Context size has been exceeded."), { status: 500 });
      },
    });
    expect(found).toMatchObject({ outcome: "partial", partial: "Half of it", reply: null, overflow: { kind: "io" } });
  });

  it("catches Ollama leaving a part of the prompt out without a word", async () => {
    fixture = await openFixture("ollama", false, 3000);
    const messages = conversation("ollama", 12, 3000);
    const client = wirings.ollama(fixture.simulator.url, false);
    // A server from before the fields: what it is sent says nothing of truncation.
    const old = { ...client, call: (await import("ollama")).Ollama };
    const ollama = new old.call({ host: fixture.simulator.url });
    const { outcome, attempts } = await fixture.guard({
      messages,
      windowTokens: 128_000,
      readWindow: async () => 3000,
      call: async (request) =>
        ollama.chat({
          model: "llama3.1",
          messages: request.messages as { role: string; content: string }[],
          stream: false,
          options: { num_predict: request.maxOutputTokens ?? 0 },
        }),
    });
    expect(outcome).toBe("answered");
    expect(attempts[0]).toMatchObject({ outcome: "overflowed", overflow: { rule: "silent-truncation" } });
    expect(fixture.simulator.requests[0]?.promptTokens).toBeLessThanOrEqual(3000);
    const last = fixture.simulator.requests.at(-1)?.body as { messages: unknown[] };
    // What was sent last fitted whole.
    expect(JSON.stringify(last.messages).length / 4).toBeLessThan(3600);
  });

  it("only suspects a low count without proof, and goes on", async () => {
    fixture = await openFixture("ollama", false, 50_000, {
      replies: [{ kind: "answer", content: "Fine.", usage: { inputTokens: 20 } }],
    });
    const calibration: Calibration = { v: 1, ratios: { [`llama3-1 ${fixture.counter.version}`]: [1, 1, 1, 1] } };
    const messages = conversation("ollama", 4, 3000);
    const { outcome, changes } = await fixture.guard({ messages, windowTokens: 50_000, calibration });
    expect([outcome, changes]).toEqual(["answered", []]);
    expect(fixture.events.map(({ name }) => name)).toContain("guard.truncation-suspected");
  });

  it("keeps an answer when the server cannot be asked for its window behind it", async () => {
    const reply = { kind: "answer", content: "Fine.", usage: { inputTokens: 20 } } as const;
    fixture = await openFixture("ollama", false, 50_000, { replies: [reply] });
    const readWindow = (): Promise<number> => Promise.reject(new Error("gone"));
    const messages = conversation("ollama", 4, 3000);
    expect(await fixture.guard({ messages, windowTokens: 50_000, readWindow })).toMatchObject({ outcome: "answered" });
  });

  it("suspects nothing in a first turn, whose estimate rests on no measurement yet", async () => {
    const reply = { kind: "answer", content: "Fine.", usage: { inputTokens: 20 } } as const;
    fixture = await openFixture("ollama", false, 50_000, { replies: [reply] });
    await fixture.guard({ messages: conversation("ollama", 4, 3000), windowTokens: 50_000 });
    expect(fixture.events.map(({ name }) => name)).not.toContain("guard.truncation-suspected");
  });

  it("sends Ollama the fields that make it refuse instead", async () => {
    fixture = await openFixture("ollama", false, 3000);
    await fixture.guard({ messages: conversation("ollama", 12, 3000) });
    expect(fixture.simulator.requests[0]?.body).toMatchObject(ollamaRequestFields);
    expect(fixture.simulator.refusals.map(({ kind }) => kind)).toContain("overflow");
  });
});
