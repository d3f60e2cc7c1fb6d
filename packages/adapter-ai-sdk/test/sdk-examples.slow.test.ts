import {
  convertToModelMessages,
  createUIMessageStreamResponse,
  generateId,
  jsonSchema,
  type LanguageModel,
  stepCountIs,
  streamText,
  tool,
  UI_MESSAGE_STREAM_HEADERS,
  type UIMessage,
  type UIMessageChunk,
} from "ai";
import { createResumableStreamContext as createContext } from "resumable-stream/generic";
import { describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { type ChatStore, createChatStore } from "../src/chat-store.ts";
import { ChatPage } from "./chat-page.ts";
import { say, scripted, toolCall } from "./scripted-model.ts";

const long = Array.from({ length: 200 }, (_, at) => `word${at} `).join("");

interface Routes {
  readonly POST: (request: Request) => Promise<Response>;
  readonly GET: (id: string) => Promise<Response>;
}

/** What Redis does for `resumable-stream`, in this process. */
function pubSub() {
  const values = new Map<string, string>();
  const channels = new Map<string, Set<(message: string) => void>>();
  const publisher = {
    connect: async () => {},
    publish: async (channel: string, message: string) => {
      const listeners = channels.get(channel) ?? new Set();
      for (const listener of listeners) queueMicrotask(() => listener(message));
      return listeners.size;
    },
    set: async (name: string, value: string) => (values.set(name, value), "OK"),
    get: async (name: string) => values.get(name) ?? null,
    incr: async (name: string) => {
      const next = Number(values.get(name) ?? 0) + 1;
      values.set(name, String(next));
      return next;
    },
  };
  const subscriber = {
    connect: async () => {},
    subscribe: async (channel: string, callback: (message: string) => void) => {
      channels.set(channel, (channels.get(channel) ?? new Set()).add(callback));
    },
    unsubscribe: async (channel: string) => channels.delete(channel),
  };
  return { publisher, subscriber };
}

/** The program's `@util/chat-store` of the SDK's documentation. */
function chatFunctions(chats: ChatStore, forModel: boolean) {
  return {
    readChat: async (id: string) => ({
      messages: await chats.loadChat<UIMessage>(id, { forModel }),
      activeStreamId: (await chats.findChat(id))?.activeStreamId ?? null,
    }),
    saveChat: ({ id, ...rest }: { id: string; messages?: UIMessage[]; activeStreamId?: string | null }) =>
      chats.saveChat({ chatId: id, ...rest }),
  };
}

/** The two routes of "Chatbot Resume Streams" in the documentation of `ai` 6.0.326, with another model. */
function documentedRoutes(chats: ChatStore, model: LanguageModel, forModel: boolean): Routes {
  const { readChat, saveChat } = chatFunctions(chats, forModel);
  const shared = pubSub();
  const after = (promise: Promise<unknown>): void => void promise;
  const createResumableStreamContext = (options: { waitUntil: typeof after }) =>
    createContext({ ...options, ...shared });
  return {
    async POST(req) {
      const { message, id }: { message: UIMessage | undefined; id: string } = (await req.json()) as never;
      const chat = await readChat(id);
      let messages = chat.messages;
      messages = [...messages, message as UIMessage];
      // Clear any previous active stream and save the user message
      void saveChat({ id, messages, activeStreamId: null });
      const result = streamText({ model, messages: await convertToModelMessages(messages) });
      return result.toUIMessageStreamResponse({
        originalMessages: messages,
        generateMessageId: generateId,
        onFinish: ({ messages: all }) => {
          // Clear the active stream when finished
          void saveChat({ id, messages: all, activeStreamId: null });
        },
        async consumeSseStream({ stream }) {
          const streamId = generateId();
          // Create a resumable stream from the SSE stream
          const streamContext = createResumableStreamContext({ waitUntil: after });
          await streamContext.createNewResumableStream(streamId, () => stream);
          // Update the chat with the active stream ID
          void saveChat({ id, activeStreamId: streamId });
        },
      });
    },
    async GET(id) {
      const chat = await readChat(id);
      if (chat.activeStreamId == null) {
        // no content response when there is no active stream
        return new Response(null, { status: 204 });
      }
      const streamContext = createResumableStreamContext({ waitUntil: after });
      const resumed = (await streamContext.resumeExistingStream(chat.activeStreamId)) ?? null;
      return new Response(resumed?.pipeThrough(new TextEncoderStream()) ?? null, {
        headers: UI_MESSAGE_STREAM_HEADERS,
      });
    },
  };
}

const getWeather = tool({
  description: "Get the weather in a location",
  inputSchema: jsonSchema<{ city?: string }>({ type: "object", properties: { city: { type: "string" } } }),
  needsApproval: true,
  execute: async () => "sunny",
});

/** The same routes without Redis, with the tool of "Tool Execution Approval". */
function keptRoutes(chats: ChatStore, model: LanguageModel, forModel: boolean): Routes {
  return {
    async POST(request) {
      const { message, id } = (await request.json()) as { message: UIMessage; id: string };
      const before = await chats.loadChat<UIMessage>(id);
      const messages = [...before.filter((each) => each.id !== message.id), message];
      await chats.saveChat({ chatId: id, messages: messages as never, activeStreamId: null });
      const result = streamText({
        model,
        tools: { clock: getWeather },
        stopWhen: stepCountIs(3),
        messages: await convertToModelMessages(await chats.loadChat<UIMessage>(id, { forModel })),
      });
      return result.toUIMessageStreamResponse({
        originalMessages: messages,
        generateMessageId: generateId,
        consumeSseStream: ({ stream }) => chats.keepStream(id, stream),
      });
    },
    async GET(id) {
      const stream = await chats.resumeChat(id);
      if (stream === null) return new Response(null, { status: 204 });
      return createUIMessageStreamResponse({ stream: stream as unknown as ReadableStream<UIMessageChunk> });
    },
  };
}

const fetchOf =
  (routes: Routes): typeof globalThis.fetch =>
  async (url, init) =>
    init?.method === "POST"
      ? routes.POST(new Request(url as string, init))
      : routes.GET(new URL(url as string).pathname.split("/").at(-2) ?? "");

const textOf = (page: ChatPage): string =>
  (page.lastMessage?.parts ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");

describe.each([
  ["resumable-stream", documentedRoutes],
  ["keepStream", keptRoutes],
] as const)("the SDK's resume example with %s", (_name, routesOf) => {
  it.each([false, true])("goes on with the answer after the page was loaded again, forModel %s", async (forModel) => {
    const store = createMemoryStore();
    const { model, prompts } = scripted(createMemoryStore(), [say(long), say("Bye.")], {}, 5);
    const chats = createChatStore({ store });
    const routes = routesOf(chats, model, forModel);
    const first = new ChatPage([], fetchOf(routes));
    const sending = first.sendMessage({ text: "Hello" });
    await expect.poll(() => textOf(first).length).toBeGreaterThan(300);
    await first.stop();
    await sending;
    // The page is loaded again while the model answers.
    const page = new ChatPage(await chats.loadChat<UIMessage>("c"), fetchOf(routes));
    const resuming = page.resumeStream();
    await expect.poll(() => page.status).toBe("streaming");
    await resuming;
    expect([textOf(page), page.status, page.error]).toEqual([long, "ready", undefined]);
    expect(page.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    await expect.poll(async () => (await chats.findChat("c"))?.activeStreamId).toBeNull();
    await expect.poll(() => chats.loadChat("c")).toEqual(page.messages);
    await page.resumeStream();
    expect(page.messages).toHaveLength(2);
    await page.sendMessage({ text: "And now?" });
    expect(textOf(page)).toBe("Bye.");
    expect(prompts.at(-1)?.map((each) => each["role"])).toEqual(["user", "assistant", "user"]);
    await expect.poll(() => chats.loadChat("c")).toHaveLength(4);
  });
});

describe.each([false, true])("the SDK's approval example, forModel %s", (forModel) => {
  it.each([true, false])("asks, and continues the same message: approved %s", async (approved) => {
    const store = createMemoryStore();
    const { model, prompts } = scripted(createMemoryStore(), [[toolCall("t1")], say("Done.")], {}, 5);
    const chats = createChatStore({ store });
    const routes = keptRoutes(chats, model, forModel);
    const asking = new ChatPage([], fetchOf(routes));
    await asking.sendMessage({ text: "Weather?" });
    await expect.poll(async () => (await chats.findChat("c"))?.activeStreamId).toBeNull();
    // Another page, as after a reload, decides.
    const page = new ChatPage(await chats.loadChat<UIMessage>("c"), fetchOf(routes));
    const [part] = (page.lastMessage?.parts ?? []).filter(({ type }) => type === "tool-clock");
    expect(part).toMatchObject({ state: "approval-requested", toolCallId: "t1" });
    const { approval } = part as unknown as { readonly approval: { readonly id: string } };
    await page.addToolApprovalResponse({ id: approval.id, approved });
    await expect.poll(() => textOf(page)).toBe("Done.");
    await expect.poll(async () => (await chats.findChat("c"))?.activeStreamId).toBeNull();
    const state = approved ? "output-available" : "output-denied";
    expect(page.lastMessage?.parts.find(({ type }) => type === "tool-clock")).toMatchObject({ state });
    expect(await chats.loadChat("c")).toEqual(page.messages);
    expect(page.messages).toHaveLength(2);
    expect(JSON.stringify(prompts.at(-1))).toContain(approved ? "sunny" : "execution-denied");
  });
});
