import {
  AISDKError,
  generateText,
  jsonSchema,
  stepCountIs,
  streamText,
  tool,
  ToolLoopAgent,
  type ModelMessage,
} from "ai";
import type { MockLanguageModelV3 } from "ai/test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { hasErrorCode, openSession } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { buildContext } from "@throughline/history";
import { historyTargets } from "@throughline/history/internal";
import { readResetPolicy, readSendPolicy } from "@throughline/policy";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { endingStore } from "@throughline/test-kit";
import { throughlineMiddleware } from "../src/middleware.ts";
import { recordsOf, ref, say, scripted, spoken, toolCall, usage, type Part } from "./scripted-model.ts";

const clock = (run: () => unknown = () => "noon") =>
  tool({
    description: "the time",
    inputSchema: jsonSchema({ type: "object", properties: {} }),
    execute: () => run() as string,
  });
const stopWhen = stepCountIs(5);
const asked: ModelMessage = { role: "user", content: "What time is it?" };
const noRetry = { maxRetries: 0 };

describe("a recorded model of a session with a policy", () => {
  it("is not asked where the entry or a rule denies an answer, and nothing is stored", async () => {
    const store = createMemoryStore();
    const sendPolicy = readSendPolicy({ default: "deny" });
    const denying = scripted(store, [say("Noon.")], { sendPolicy });
    const denied = await generateText({ model: denying.model, messages: [asked], ...noRetry }).catch(
      (error: unknown) => error,
    );
    expect(hasErrorCode((denied as Error).cause, "SEND_DENIED")).toBe(true);
    expect([await store.load(ref), denying.prompts]).toEqual([null, []]);
    await openSession(store, ref, { entry: { sendPolicy: "deny" } });
    const own = scripted(store, [say("Noon.")]);
    await expect(generateText({ model: own.model, messages: [asked], ...noRetry })).rejects.toThrow("SEND_DENIED");
    expect([await recordsOf(store), own.prompts]).toEqual([[], []]);
  });

  it("begins in a new session when the one before was idle, and never between a call and its result", async () => {
    let nowMs = Date.parse("2026-03-02T10:00:00Z");
    const hand = { nowMs: () => nowMs, sleep: systemClock.sleep };
    const store = createMemoryStore({ clock: hand });
    const options = {
      clock: hand,
      mode: "guard",
      reset: readResetPolicy({ reset: { mode: "idle", idleMinutes: 30 } }),
    } as const;
    const { model, prompts } = scripted(store, [say("One."), [toolCall("c1")], say("Two.")], options);
    const slow = () => {
      nowMs += 40 * 60_000;
      return "noon";
    };
    for (const minutes of [0, 40]) {
      nowMs += minutes * 60_000;
      await generateText({ model, tools: { clock: clock(slow) }, stopWhen, messages: [asked] });
    }
    expect(prompts.map((prompt) => prompt.map((message) => message["role"]).join(" "))).toEqual([
      "user",
      "user",
      "user assistant tool",
    ]);
    expect((await store.list({ state: "any" })).sessions).toHaveLength(2);
  });
});

describe("throughlineMiddleware", () => {
  it.each(["generateText", "streamText", "ToolLoopAgent"] as const)(
    "records what a model sees and says: %s",
    async (by) => {
      const store = createMemoryStore();
      const { model, prompts } = scripted(store, [[...say("I look."), toolCall("c1")], say("It is noon.")]);
      const tools = { clock: clock() };
      const given = { model, tools, instructions: "Be brief.", system: "Be brief.", stopWhen };
      if (by === "generateText") await generateText({ ...given, messages: [asked] });
      else if (by === "streamText") await streamText({ ...given, messages: [asked] }).consumeStream();
      else await new ToolLoopAgent(given).generate({ messages: [asked] });
      expect(await spoken(store)).toEqual([
        "user: What time is it?",
        "assistant: I look.",
        "assistant: c1",
        "toolResult: noon",
        "assistant: It is noon.",
      ]);
      expect(prompts.map(({ length }) => length)).toEqual([2, 4]);
      const replies = (await recordsOf(store)).map(({ record }) => record["message"] as Part | undefined);
      expect(replies.find((message) => message?.["role"] === "toolResult")).toMatchObject({ toolName: "clock" });
      expect(replies.findLast((message) => message?.["role"] === "assistant")).toMatchObject({
        provider: "acme",
        model: by === "streamText" ? "acme-1" : "acme-1-0",
        stopReason: "stop",
        usage: { input: 7, output: 3, cacheRead: 5, cacheWrite: 0, reasoning: 1, totalTokens: 15 },
      });
    },
  );

  it("has stored a prompt before the model is asked, and a call before its tool runs", async () => {
    const store = createMemoryStore();
    const seen: number[] = [];
    const look = async (): Promise<number> => seen.push((await spoken(store)).length);
    const { model } = scripted(store, [
      async () => (await look(), [toolCall("c1")]),
      async () => (await look(), say("noon")),
    ]);
    const tools = { clock: clock(async () => (await look(), "noon")) };
    await streamText({ model, tools, messages: [asked], stopWhen }).consumeStream();
    expect(seen).toEqual([1, 2, 3]);
  });

  it("keeps the error of a tool, which messages of a user interface mask", async () => {
    const store = createMemoryStore();
    const { model } = scripted(store, [[toolCall("c1")], say("It failed.")]);
    const failing = clock(() => {
      throw new Error("the clock fell off the wall");
    });
    await generateText({ model, tools: { clock: failing }, messages: [asked], stopWhen });
    // Version 7 sends the name of the error as well.
    expect((await spoken(store)).join("\n")).toMatch(/toolResult: (?:Error: )?the clock fell off the wall/);
  });

  it("stores each message once, however often and however much of the history is sent", async () => {
    const store = createMemoryStore();
    const history: ModelMessage[] = [];
    for (const turn of [1, 2, 3, 4]) {
      history.push({ role: "user", content: `question ${turn}` });
      const { model } = scripted(store, [say(`answer ${turn}`)]);
      // From the third turn on the program sends the end of its history alone.
      const { response } = await generateText({ model, messages: turn < 3 ? history : history.slice(-3) });
      history.push(...response.messages);
    }
    expect(await spoken(store)).toEqual(
      [1, 2, 3, 4].flatMap((turn) => [`user: question ${turn}`, `assistant: answer ${turn}`]),
    );
  });

  it("stores a question once that is asked again after a failure", async () => {
    const store = createMemoryStore();
    const { model } = scripted(store, [new Error("down"), say("up")]);
    await expect(generateText({ model, messages: [asked], ...noRetry })).rejects.toThrow("down");
    expect(await spoken(store)).toEqual(["user: What time is it?"]);
    await generateText({ model, messages: [asked], ...noRetry });
    expect(await spoken(store)).toEqual(["user: What time is it?", "assistant: up"]);
  });

  it("keeps a text that the program changed as an edit, and a prompt that left the log as a branch", async () => {
    const store = createMemoryStore();
    const turn = async (messages: ModelMessage[], text: string): Promise<unknown> =>
      generateText({ model: scripted(store, [say(text)]).model, messages });
    await turn([asked], "noon");
    const reply: ModelMessage = { role: "assistant", content: "noon" };
    await turn([{ role: "user", content: "What time was it?" }, reply, { role: "user", content: "Sure?" }], "yes");
    expect(await spoken(store)).toEqual([
      "user: What time was it?",
      "assistant: noon",
      "user: Sure?",
      "assistant: yes",
    ]);
    expect((await recordsOf(store)).filter(({ type }) => type === "context_edit")).toHaveLength(1);
    await turn(
      [
        { role: "user", content: "What time was it?" },
        { role: "user", content: "And where?" },
      ],
      "here",
    );
    expect(await spoken(store)).toEqual(["user: What time was it?", "user: And where?", "assistant: here"]);
    const texts = JSON.stringify(await recordsOf(store));
    for (const text of ["What time is it?", "Sure?", "yes", "noon"]) expect(texts).toContain(text);
  });

  it.each(["aborted", "error", "cancelled"] as const)(
    "keeps what came of a stream that ends early: %s",
    async (how) => {
      const store = createMemoryStore();
      const stop = new AbortController();
      const broken: readonly Part[] = [
        { type: "text-start", id: "1" },
        { type: "text-delta", id: "1", delta: "Half of" },
      ];
      const { model } = scripted(
        store,
        [how === "error" ? [...broken, { type: "error", error: new Error("cut") }] : say("Half of it and more")],
        {},
        how === "error" ? null : 20,
      );
      if (how === "cancelled") {
        const prompt = [{ role: "user" as const, content: [{ type: "text" as const, text: "What time is it?" }] }];
        const reader = (await (model as MockLanguageModelV3).doStream({ prompt })).stream.getReader();
        for (let count = 0; count < 4; count++) await reader.read();
        await reader.cancel();
      } else {
        const result = streamText({
          model,
          messages: [asked],
          abortSignal: stop.signal,
          onError: () => {},
          ...noRetry,
        });
        const texts = result.textStream[Symbol.asyncIterator]();
        if (how === "aborted") await texts.next().then(() => stop.abort());
        await result.consumeStream();
      }
      // A reply that was broken off is kept, and sent to nobody.
      await expect.poll(async () => (await store.load(ref))?.head.turn ?? null).toBeNull();
      const reply = (await recordsOf(store)).findLast(({ type }) => type === "message")?.record["message"];
      expect(reply).toMatchObject({ role: "assistant", stopReason: how === "error" ? "error" : "aborted" });
      expect(JSON.stringify(reply)).toMatch(/"text":"Hal/u);
      const next = scripted(store, [say("all of it")], { mode: "guard" });
      await generateText({ model: next.model, prompt: "Go on." });
      expect(JSON.stringify(next.prompts)).not.toContain("Half");
    },
  );

  it("sends the history of the log in guard mode, from its last compaction on", async () => {
    const store = createMemoryStore();
    const first = scripted(store, [[toolCall("c1")], say("It is noon.")], { mode: "guard" });
    await generateText({
      model: first.model,
      tools: { clock: clock() },
      system: "Be brief.",
      prompt: "What time is it?",
      stopWhen,
    });
    const head = (await store.load(ref))?.head.headId ?? "";
    const compaction = { summary: "The user asked for the time.", firstKeptEntryId: head, tokensBefore: 100 };
    await store.append(ref, [{ type: "compaction", ...compaction }]);
    const compacted: string[] = [];
    const compact = (of: typeof ref): Promise<unknown> => Promise.resolve(compacted.push(of.key));
    const second = scripted(store, [say("You are welcome.")], { mode: "guard", compact });
    await generateText({ model: second.model, system: "Be brief.", prompt: "Thanks." });
    const sent = JSON.stringify(second.prompts[0]);
    expect(second.prompts[0]?.[0]).toMatchObject({ role: "system", content: "Be brief." });
    expect(sent).toContain("The user asked for the time.");
    expect(sent).toContain("It is noon.");
    expect(sent).not.toContain("c1");
    expect(sent).toContain("Thanks.");
    expect(compacted).toEqual([ref.key]);
  });

  it("answers in guard mode a call that was never answered", async () => {
    const store = createMemoryStore();
    await openSession(store, ref);
    const content = [{ type: "toolCall", id: "lost", name: "clock", arguments: {} }];
    await store.append(ref, [
      { type: "message", message: { role: "user", content: "What time is it?" } },
      { type: "message", message: { role: "assistant", content } },
    ]);
    const { model, prompts } = scripted(store, [say("sorry")], { mode: "guard" });
    await generateText({ model, prompt: "Hello?" });
    expect(prompts[0]?.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"]);
  });

  it("keeps reasoning with its signature, files and results of every kind", async () => {
    const store = createMemoryStore();
    const signed = { anthropic: { signature: "c2ln" } };
    const { model } = scripted(store, [
      [{ type: "reasoning", text: "hm", providerMetadata: signed }, toolCall("c1")],
      say("done"),
    ]);
    const content = [
      { type: "text" as const, text: "Look." },
      { type: "image" as const, image: new Uint8Array([1, 2, 3]), mediaType: "image/png" },
      { type: "file" as const, data: new Uint8Array([4]), mediaType: "application/pdf", filename: "a.pdf" },
    ];
    const look = {
      ...clock(),
      toModelOutput: () => ({ type: "content" as const, value: [{ type: "text" as const, text: "seen" }] }),
    };
    await generateText({ model, tools: { clock: look }, messages: [{ role: "user", content }], stopWhen });
    expect(await spoken(store)).toEqual([
      "user: Look.",
      "user: image",
      "user: unknown",
      "assistant: thinking",
      "assistant: c1",
      "toolResult: seen",
      "assistant: done",
    ]);
    const again = scripted(store, [say("more")], { mode: "guard" });
    await generateText({ model: again.model, prompt: "And?" });
    const files = JSON.stringify(again.prompts[0], (_name, value: unknown) => value);
    expect(files).toContain("AQID");
    expect(files).toContain('"signature":"c2ln"');
    for (const target of historyTargets.values())
      expect(target.validate(target.render(buildContext(await recordsOf(store))).messages, null)).toEqual([]);
  });

  it("takes over a history that is longer than one append", async () => {
    const store = createMemoryStore({ limits: { batchRecords: 40 } });
    const history = Array.from({ length: 101 }, (_, at): ModelMessage => ({
      role: at % 2 === 0 ? "user" : "assistant",
      content: `message ${at}`,
    }));
    await generateText({ model: scripted(store, [say("done")]).model, messages: history });
    expect(await spoken(store)).toEqual([
      ...history.map(({ role, content }) => `${role}: ${content as string}`),
      "assistant: done",
    ]);
  });

  it("finds its place in a long log by the ends, and stores each message once", async () => {
    const store = createMemoryStore();
    const history: ModelMessage[] = [];
    for (let at = 0; at < 700; at++)
      history.push({ role: at % 2 === 0 ? "user" : "assistant", content: `message ${at}` });
    history.push(asked);
    const ask = async (messages: ModelMessage[], text: string): Promise<unknown> =>
      generateText({ model: scripted(store, [say(text)]).model, messages });
    await ask(history, "noon");
    history.push({ role: "assistant", content: "noon" }, { role: "user", content: "And now?" });
    await ask(history, "later");
    history.push({ role: "assistant", content: "later" }, { role: "user", content: "Now?" });
    await ask(history.slice(-150), "midnight");
    const lines = await spoken(store);
    expect(lines).toEqual([
      ...history.map(({ role, content }) => `${role}: ${content as string}`),
      "assistant: midnight",
    ]);
  });

  it("keeps another process out while a model answers", async () => {
    const folder = mkdtempSync(join(tmpdir(), "throughline-ai-"));
    const path = join(folder, "s.sqlite");
    try {
      await using one = createSqliteStore({ path });
      await using two = createSqliteStore({ path });
      let refused: unknown;
      const second = scripted(two, [say("no")]);
      const first = scripted(one, [
        async () => {
          refused = await generateText({ model: second.model, prompt: "me too", ...noRetry }).catch(
            (error: unknown) => error,
          );
          return say("yes");
        },
      ]);
      await generateText({ model: first.model, messages: [asked], ...noRetry });
      expect(AISDKError.isInstance(refused)).toBe(true);
      expect(hasErrorCode((refused as Error).cause, "SESSION_BUSY")).toBe(true);
      expect(await spoken(two)).toEqual(["user: What time is it?", "assistant: yes"]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("fails with the SDK's error when the store goes away, and leaves whole messages", async () => {
    for (let calls = 1; calls < 30; calls++) {
      const store = createMemoryStore();
      const ending = endingStore(store, calls, true);
      const { model, prompts } = scripted(ending.store, [say("noon")]);
      const error = await generateText({ model, messages: [asked], ...noRetry }).catch((thrown: unknown) => thrown);
      if (ending.made() < calls) break;
      expect(AISDKError.isInstance(error)).toBe(true);
      expect(hasErrorCode((error as Error).cause, "STORE_CLOSED")).toBe(true);
      const left = (await store.load(ref)) === null ? [] : await spoken(store);
      expect(["user: What time is it?", "assistant: noon"].slice(0, left.length)).toEqual(left);
      // No model is asked what is not in the log.
      expect(prompts.length).toBeLessThanOrEqual(left.length);
    }
  });

  it("refuses unknown options and a message that is too large, with nothing stored", async () => {
    const store = createMemoryStore({ limits: { recordBytes: 2000 } });
    expect(() => throughlineMiddleware({ store, ref, mod: "guard" } as never)).toThrow(/mode/);
    const { model, prompts } = scripted(store, [say("no")]);
    const prompt = "x".repeat(3000);
    const error = await generateText({ model, prompt, ...noRetry }).catch((thrown: unknown) => thrown);
    expect(hasErrorCode((error as Error).cause, "RECORD_TOO_LARGE")).toBe(true);
    expect([prompts, await spoken(store)]).toEqual([[], []]);
    expect(usage.inputTokens.total).toBe(12);
  });
});
