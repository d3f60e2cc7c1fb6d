import {
  convertToModelMessages,
  jsonSchema,
  stepCountIs,
  streamText,
  tool,
  type UIMessage,
  type UIMessageChunk,
} from "ai";
import { describe, expect, it } from "vitest";
import { ThroughlineError } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { replaceMembers } from "@throughline/test-kit";
import { type ChatStore, createChatStore, type StoredMessage } from "../src/chat-store.ts";
import { user } from "./chat-server.ts";
import { scripted, say, toolCall } from "./scripted-model.ts";

const clockTool = tool({
  description: "Tells the time",
  inputSchema: jsonSchema<object>({ type: "object", properties: {} }),
  execute: async () => "noon",
});
const long = Array.from({ length: 300 }, (_, at) => `word${at} `).join("");

/** Answers as a route of a chat does, and returns the response whose stream is kept. */
async function answer(
  chats: ChatStore,
  answers: Parameters<typeof scripted>[1],
  { delayMs = 5, saves = false }: { readonly delayMs?: number; readonly saves?: boolean } = {},
): Promise<{ readonly response: Response; readonly kept: Promise<void> }> {
  const { model } = scripted(createMemoryStore(), answers, {}, delayMs);
  const messages = [...(await chats.loadChat<UIMessage>("c")), user("u1") as UIMessage];
  await chats.saveChat({ chatId: "c", messages, activeStreamId: null });
  const result = streamText({
    model,
    tools: { clock: clockTool },
    stopWhen: stepCountIs(3),
    messages: await convertToModelMessages(messages),
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const response = result.toUIMessageStreamResponse({
    originalMessages: messages,
    generateMessageId: () => "a1",
    consumeSseStream: ({ stream }) => void chats.keepStream("c", stream).then(resolve, reject),
    onFinish: async ({ messages: all }) => {
      if (saves) await chats.saveChat({ chatId: "c", messages: all, activeStreamId: null });
    },
  });
  return { response, kept: promise };
}

async function reader(chats: ChatStore, onText: (text: string) => void = () => {}): Promise<readonly UIMessageChunk[]> {
  await expect.poll(async () => (await chats.findChat("c"))?.activeStreamId).toBeTypeOf("string");
  const stream = (await chats.resumeChat("c")) ?? expect.unreachable("no stream answers");
  const chunks: UIMessageChunk[] = [];
  let text = "";
  for await (const chunk of stream as unknown as AsyncIterable<UIMessageChunk>) {
    chunks.push(chunk);
    if (chunk.type === "text-delta") onText((text += chunk.delta));
  }
  return chunks;
}

const textOf = (chunks: readonly UIMessageChunk[]): string =>
  chunks.map((chunk) => (chunk.type === "text-delta" ? chunk.delta : "")).join("");

describe("keepStream", () => {
  it("gives a page of the same process each piece, and one of another process the text while it is written", async () => {
    const store = createMemoryStore();
    const chats = createChatStore({ store });
    const { response, kept } = await answer(chats, [say(long)]);
    void response.body?.cancel();
    const seen = { here: 0, there: 0 };
    const all = await Promise.all([
      reader(chats, () => (seen.here += 1)),
      reader(createChatStore({ store }), () => (seen.there += 1)),
    ]);
    await kept;
    expect(all.map(textOf)).toEqual([long, long]);
    for (const chunks of all) {
      expect(chunks[0]).toEqual({ type: "start", messageId: "a1" });
      expect(chunks.slice(-3).map(({ type }) => type)).toEqual(["text-end", "finish-step", "finish"]);
    }
    expect(seen.here).toBeGreaterThan(100);
    expect(seen.there).toBeGreaterThan(2);
    const messages = await chats.loadChat<StoredMessage>("c");
    expect(messages.at(-1)?.parts).toEqual([{ type: "step-start" }, { type: "text", text: long, state: "done" }]);
    expect(await chats.resumeChat("c")).toBeNull();
    expect((await store.load(chats.sessionOf("c")))?.head.turn).toBeNull();
  });

  it("gives calls and results of an earlier step, and stores no message twice when the program saves too", async () => {
    const store = createMemoryStore();
    const chats = createChatStore({ store });
    const { response, kept } = await answer(chats, [[...say("I look."), toolCall("t1")], say(long)], { saves: true });
    void response.body?.cancel();
    const all = await Promise.all([reader(chats), reader(createChatStore({ store }))]);
    await kept;
    for (const chunks of all) {
      expect(textOf(chunks)).toBe(`I look.${long}`);
      const types = chunks.map(({ type }) => type).filter((type, at, list) => type !== list[at - 1]);
      expect(types.join(" ")).toBe(
        "start start-step text-start text-delta text-end tool-input-available tool-output-available finish-step " +
          "start-step text-start text-delta text-end finish-step finish",
      );
    }
    await expect.poll(() => chats.loadChat("c")).toHaveLength(2);
    expect((await chats.findChat("c"))?.activeStreamId).toBeNull();
  });

  it("lets every process save while it runs, and writes nothing once the stream was stopped", async () => {
    const store = createMemoryStore();
    const chats = createChatStore({ store });
    const { response, kept } = await answer(chats, [say(long)]);
    void response.body?.cancel();
    const other = createChatStore({ store });
    await expect.poll(async () => (await other.findChat("c"))?.activeStreamId).toBeTypeOf("string");
    const chunks = reader(other);
    await other.saveChat({ chatId: "c", messages: [...(await other.loadChat<StoredMessage>("c")), user("u2")] });
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await other.saveChat({ chatId: "c", activeStreamId: null });
    await kept;
    expect(long.startsWith(textOf(await chunks))).toBe(true);
    expect((await chats.loadChat<StoredMessage>("c")).map(({ id }) => id)).toEqual(["u1", "u2"]);
    expect(await store.partials?.read(chats.sessionOf("c"))).toBeNull();
  });

  it("reports a reply that cannot be stored to the program and its readers, and leaves the process alone", async () => {
    const store = createMemoryStore();
    const failures: unknown[] = [];
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    const { model } = scripted(createMemoryStore(), [say(long)], {}, 5);
    let isBroken = false;
    const broken = replaceMembers(store, {
      append: async (...args: Parameters<typeof store.append>) => {
        if (isBroken) throw new ThroughlineError("STORE_IO", "no space on secret.host", { outcome: "unknown" });
        return store.append(...args);
      },
    });
    const chats = createChatStore({ store: broken, onStreamError: (failure) => failures.push(failure) });
    const result = streamText({ model, prompt: "Go" });
    // This is how the SDK documents the option: nobody waits for the promise.
    const response = result.toUIMessageStreamResponse({
      generateMessageId: () => "a1",
      consumeSseStream: ({ stream }) => chats.keepStream("c", stream),
    });
    void response.text();
    const chunks = reader(chats, () => (isBroken = true));
    expect((await chunks).at(-1)).toEqual({ type: "error", errorText: "The reply could not be stored." });
    await new Promise((resolve) => setTimeout(resolve, 50));
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
    expect(failures).toMatchObject([{ chatId: "c", error: { cause: { code: "STORE_IO" } } }]);
    expect(textOf(await chunks)).toBe(long);
  });

  it("refuses to begin while another program answers in the session", async () => {
    const store = createMemoryStore();
    const chats = createChatStore({ store });
    await chats.saveChat({ chatId: "c", messages: [user("u1")] });
    const turn = { action: "open", turnId: "t", owner: "another", fence: 1, leaseUntilMs: Date.now() + 9000 } as const;
    await store.append(chats.sessionOf("c"), [], { entry: {}, turn });
    const stream = new ReadableStream<string>({
      start: (controller) => {
        controller.enqueue(`data: ${JSON.stringify({ type: "start", messageId: "a1" })}\n\n`);
        controller.close();
      },
    });
    await expect(chats.keepStream("c", stream)).rejects.toMatchObject({ cause: { code: "SESSION_BUSY" } });
  });

  it("gives the text that a dead process has left, and stores it with the next save", async () => {
    const store = createMemoryStore();
    let nowMs = Date.now();
    const clock = { nowMs: () => nowMs, sleep: async () => {} };
    const chats = createChatStore({ store });
    await chats.saveChat({ chatId: "c", messages: [user("u1")], activeStreamId: "s1" });
    const ref = chats.sessionOf("c");
    const state = (await store.load(ref)) ?? expect.unreachable();
    const { turnId = "", fence = 0 } = state.head.turn ?? {};
    await store.append(ref, [], { entry: { activeStreamMessage: "a1" }, turn: { action: "within", fence } });
    const facts = { v: 1, step: 2, attempt: 0, provider: null, api: null, model: null, updatedMs: nowMs } as const;
    const place = { sessionId: state.head.sessionId, turnId, fence, afterSeq: state.head.lastSeq };
    await store.partials?.write(ref, { ...facts, ...place, text: "So far" });
    nowMs += 60_000;
    const later = createChatStore({ store, clock });
    const messages = await later.loadChat<StoredMessage>("c");
    const left = {
      id: "a1",
      role: "assistant",
      parts: [{ type: "step-start" }, { type: "text", text: "So far", state: "done" }],
    };
    expect(messages).toEqual([user("u1"), left]);
    await later.saveChat({ chatId: "c", messages: [...messages, user("u2")], activeStreamId: null });
    expect(await later.loadChat("c")).toEqual([user("u1"), left, user("u2")]);
  });
});
