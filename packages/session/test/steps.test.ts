import { describe, expect, it } from "vitest";
import type { ChatRequest } from "@throughline/core";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import type { SessionsOptions } from "@throughline/session";
import type { StepContext } from "../src/session-options.ts";
import { explainCalls, rebuildCall } from "@throughline/session";
import { createScriptedModel, type ScriptedReply } from "./scripted-model.ts";
import { createFixture, echoTool, key, outline } from "./session-fixture.ts";

const prefix = { system: "Be kind.", tools: [echoTool.definition] };

/** Puts a summary in place of everything but the last messages. */
async function summarise({ records, append }: StepContext, keep: number): Promise<boolean> {
  const messages = (await records()).filter(({ type, side }) => type === "message" && !side);
  const firstKept = messages.at(-keep);
  if (messages.length <= keep || firstKept === undefined) return false;
  await append(
    [{ type: "compaction", summary: "They spoke of much.", firstKeptEntryId: firstKept.id, tokensBefore: 1000 }],
    { windowFromSeq: firstKept.seq },
  );
  return true;
}

describe("work around the calls", () => {
  it("steps run in their order before a call and after the turn, each an event", { tags: ["slow"] }, async () => {
    const seen: string[] = [];
    const { sessions, records, events } = createFixture({
      steps: [
        {
          name: "flush",
          when: "before-call",
          run: async ({ append, gauge }) => {
            seen.push(`flush at ${gauge.source}`);
            await append([{ type: "custom_message", customType: "hint", content: "Write it down." }]);
          },
        },
        { name: "second", when: "before-call", run: async () => void seen.push("second") },
        {
          name: "checkpoint",
          when: "after-turn",
          run: async ({ append, gauge }) => {
            seen.push(`checkpoint at ${gauge.tokens}`);
            await append([{ type: "label", targetId: "x", label: "checked" }]);
          },
        },
        { name: "breaks", when: "after-turn", run: () => Promise.reject(new Error("no model")) },
      ],
    });
    await using session = await sessions.open(key);
    await session.runTurn("Hi");
    while (!events.some(({ name }) => name === "step.failed")) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(seen).toEqual(["flush at tokenizer", "second", "checkpoint at 15"]);
    expect(outline(await records())).toEqual([
      "turn:open",
      "user",
      "custom_message",
      "assistant:stop",
      "call:answered",
      "turn:done",
      "label",
    ]);
    const steps = events.flatMap((event) =>
      "step" in event && typeof event.step === "string" ? [`${event.name} ${event.step}`] : [],
    );
    expect(steps).toEqual([
      "step.started flush",
      "step.finished flush",
      "step.started second",
      "step.finished second",
      "step.started checkpoint",
      "step.finished checkpoint",
      "step.started breaks",
      "step.failed breaks",
    ]);
  });

  it("a step that fails before a call fails the turn, which is closed", async () => {
    const { sessions, records } = createFixture({
      steps: [{ name: "flush", when: "before-call", run: () => Promise.reject(new Error("disk gone")) }],
    });
    await using session = await sessions.open(key);
    await expect(session.runTurn("Hi")).rejects.toThrow("disk gone");
    expect(outline(await records())).toEqual(["turn:open", "user", "turn:failed"]);
  });

  it("after a compaction the summary is sent, the measure starts anew, and a restart reads the window alone", async () => {
    const data = createMemoryData();
    const script = createScriptedModel();
    const usage = { input: 190_000, output: 10, cacheRead: 0, cacheWrite: 0 };
    const options: Partial<SessionsOptions> = {
      steps: [
        {
          name: "compaction",
          when: "before-call",
          run: async (fixture) => {
            if ((fixture.gauge.percent ?? 0) > 80) await summarise(fixture, 1);
          },
        },
      ],
    };
    const first = createFixture({ script, store: createMemoryStore({ data }), ...options });
    await using session = await first.sessions.open(key);
    for (let at = 0; at < 20; at++) await session.runTurn(`Old words ${at}`);
    script.push({ text: "Full.", usage });
    const full = await session.runTurn("The last of the old");
    expect(full.gauge).toMatchObject({ source: "actual", tokens: 190_010 });
    expect(first.events.some(({ name }) => name === "threshold.crossed")).toBe(false);
    const next = await session.runTurn("Something new");
    expect(next.gauge.tokens).toBe(15);
    expect(next.calls[0]?.estimatedTokens).toBeLessThan(1000);
    expect(script.requests.at(-1)?.messages).toHaveLength(3);
    expect(JSON.stringify(script.requests.at(-1)?.messages)).toContain("They spoke of much.");
    const second = createFixture({ script, store: createMemoryStore({ data }), ...options });
    await using reopened = await second.sessions.open(key);
    expect(reopened.restored).toEqual({ turns: 1, messages: 44 });
    await reopened.runTurn("After the restart");
    expect(JSON.stringify(script.requests.at(-1)?.messages)).not.toContain("Old words");
    // What the window leaves out is still in the store, and every call can be told from it.
    const records = await second.records();
    expect(JSON.stringify(records)).toContain("Old words 0");
    const calls = explainCalls(records);
    expect(calls.at(-1)).toMatchObject({ summaryId: expect.any(String), fromSeq: expect.any(Number) });
    for (const [at, { facts }] of calls.entries())
      expect(JSON.stringify(rebuildCall(records, facts, prefix).messages)).toBe(
        JSON.stringify(script.requests[at]?.messages),
      );
  });

  it("a request that does not fit is compacted in flight, and stays so", async () => {
    // A model that counts what it is sent.
    const sized = (request: ChatRequest): ScriptedReply => {
      script.push(sized);
      const input = Math.ceil(JSON.stringify(request.messages).length / 4);
      return { text: "Noted.", usage: { input, output: 5, cacheRead: 0, cacheWrite: 0 } };
    };
    const script = createScriptedModel(sized);
    let compactions = 0;
    const store = createMemoryStore();
    const { sessions, records } = createFixture({
      script,
      store,
      model: { chat: script, modelId: "claude-sonnet-4-5", windowTokens: 6000, maxOutputTokens: 500 },
      // Every second time past the session, as a package with a store of its own would.
      compact: async (fixture) => {
        compactions += 1;
        const { ref, turn } = fixture;
        if (compactions % 2 === 0 || turn === null) return summarise(fixture, 1);
        const append: StepContext["append"] = async (drafts, options = {}) => {
          await store.append(ref, drafts, { ...options, turn });
        };
        return summarise({ ...fixture, append }, 1);
      },
    });
    await using session = await sessions.open(key);
    for (let at = 0; at < 20; at++) await session.runTurn(`Part ${at}: ${"long words ".repeat(300)}`);
    expect(compactions).toBeGreaterThan(1);
    expect(compactions).toBeLessThan(6);
    const all = await records();
    for (const [at, { facts }] of explainCalls(all).entries())
      expect(JSON.stringify(rebuildCall(all, facts, prefix).messages)).toBe(
        JSON.stringify(script.requests[at]?.messages),
      );
    expect(outline(all).filter((word) => word === "compaction")).toHaveLength(compactions);
  });
});
