import {
  AbstractChat,
  createUIMessageStreamResponse,
  DefaultChatTransport,
  type UIMessage,
  type UIMessageChunk,
} from "ai";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Clock } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { type ChatStore, createChatStore, type StoredMessage } from "../src/chat-store.ts";
import { chatState } from "./chat-page.ts";

const asked: StoredMessage = { id: "u1", role: "user", parts: [{ type: "text", text: "Hi" }] };
const answer = (text: string, state: string = "done"): StoredMessage => ({
  id: "a1",
  role: "assistant",
  parts: [{ type: "step-start" }, { type: "text", text, state }],
});

/** The page of `useChat`: it loads a chat, and resumes what is being answered. */
class Page extends AbstractChat<UIMessage> {
  static async load(chats: ChatStore): Promise<Page> {
    const messages = await chats.loadChat<UIMessage>("c");
    const fetch = async (): Promise<Response> => {
      const stream = await chats.resumeChat("c");
      if (stream === null) return new Response(null, { status: 204 });
      return createUIMessageStreamResponse({ stream: stream as unknown as ReadableStream<UIMessageChunk> });
    };
    return new Page({ id: "c", state: chatState(messages), transport: new DefaultChatTransport({ fetch }) });
  }
}

/** A clock that the test sets. */
function setClock(): { readonly clock: Clock; advance(byMs: number): void } {
  let nowMs = 1_000_000;
  const waiting = new Set<{ readonly atMs: number; readonly resolve: () => void }>();
  const sleep = (delayMs: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const one = { atMs: nowMs + delayMs, resolve };
      waiting.add(one);
      signal?.addEventListener("abort", () => waiting.delete(one));
    });
  return {
    clock: { nowMs: () => nowMs, sleep },
    advance: (byMs) => {
      nowMs += byMs;
      for (const one of waiting) if (one.atMs <= nowMs && waiting.delete(one)) one.resolve();
    },
  };
}

/** A store that can watch, in a folder of its own. */
function temporaryStore(): AsyncDisposable & { readonly store: ReturnType<typeof createSqliteStore> } {
  const folder = mkdtempSync(join(tmpdir(), "throughline-resume-"));
  const store = createSqliteStore({ path: join(folder, "s.sqlite") });
  return {
    store,
    [Symbol.asyncDispose]: async () => {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function resumed(chats: ChatStore): Promise<Promise<readonly string[]>[]> {
  const stream = await chats.resumeChat("c");
  if (stream === null) throw new Error("nothing is being answered");
  return [Array.fromAsync(stream, ({ type }) => type)];
}

describe("resumeChat", () => {
  it("gives the page of the SDK what is there, and then the rest", async () => {
    await using made = temporaryStore();
    const { store } = made;
    const writer = createChatStore({ store });
    await writer.saveChat({ chatId: "c", messages: [asked, answer("Hel", "streaming")], activeStreamId: "s1" });
    const page = await Page.load(createChatStore({ store }));
    const reading = page.resumeStream();
    await expect.poll(() => page.status).toBe("streaming");
    await writer.saveChat({ chatId: "c", messages: [asked, answer("Hello.")] });
    await writer.saveChat({ chatId: "c", messages: [asked, answer("Hello.")], activeStreamId: null });
    await reading;
    expect([page.status, page.error]).toEqual(["ready", undefined]);
    expect(page.messages.map(({ id }) => id)).toEqual(["u1", "a1"]);
    expect(page.lastMessage?.parts).toEqual(answer("Hello.").parts);
    await page.resumeStream();
    expect(page.status).toBe("ready");
  });

  it.each([
    ["the answer", [asked, answer("Hello.")]],
    ["no answer", [asked]],
  ])("ends with a save that brings nothing new to %s", async (_what, messages) => {
    await using made = temporaryStore();
    const { store } = made;
    const writer = createChatStore({ store });
    const reader = createChatStore({ store });
    await writer.saveChat({ chatId: "c", messages, activeStreamId: "s1" });
    const [chunks] = await resumed(reader);
    await writer.saveChat({ chatId: "c", messages, activeStreamId: null });
    await chunks;
    expect(await reader.resumeChat("c")).toBeNull();
    expect((await reader.listChats()).chats[0]?.activeStreamId).toBeNull();
    // What says so is no message.
    expect(await reader.loadChat("c")).toEqual(messages);
  });

  it("ends when another stream begins", async () => {
    await using made = temporaryStore();
    const chats = createChatStore({ store: made.store });
    await chats.saveChat({ chatId: "c", messages: [asked], activeStreamId: "s1" });
    const [chunks] = await resumed(chats);
    await chats.saveChat({ chatId: "c", messages: [asked], activeStreamId: "s2" });
    await chunks;
    expect((await chats.listChats()).chats[0]?.activeStreamId).toBe("s2");
    await chats.saveChat({ chatId: "c", messages: [asked], activeStreamId: null });
  });

  it("ends when the process that answered is gone, also for who comes later", async () => {
    await using made = temporaryStore();
    const { store } = made;
    const { clock, advance } = setClock();
    await createChatStore({ store, clock }).saveChat({
      chatId: "c",
      messages: [asked, answer("Hel", "streaming")],
      activeStreamId: "s1",
    });
    const chats = createChatStore({ store, clock });
    const [chunks] = await resumed(chats);
    // Nobody renews it: of the clock of the test an hour passes between two looks.
    advance(3_600_000);
    expect(await chunks).toContain("finish");
    expect(await chats.resumeChat("c")).toBeNull();
    expect((await chats.listChats()).chats[0]?.activeStreamId).toBeNull();
    // The next request of the program begins another one.
    await chats.saveChat({ chatId: "c", messages: [asked], activeStreamId: "s2" });
    expect((await chats.listChats()).chats[0]?.activeStreamId).toBe("s2");
    await chats.saveChat({ chatId: "c", messages: [asked], activeStreamId: null });
  });
});
