// Answers in a chat with a word every 20 ms, and says on stdout what it has given: node keep-chat.ts STORE.db
import { flushCompileCache } from "node:module";
import process from "node:process";
import { writeSync } from "node:fs";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createChatStore } from "../src/chat-store.ts";

// A process that is killed does not keep what it compiled by itself.
flushCompileCache();
await using store = createSqliteStore({ path: process.argv[2] ?? "" });
const chats = createChatStore({ store });
await chats.saveChat({
  chatId: "c",
  messages: [{ id: "u1", role: "user", parts: [{ type: "text", text: "Hi" }] }],
});
const event = (chunk: object): string => `data: ${JSON.stringify(chunk)}\n\n`;
let characters = 0;
let at = 0;
const stream = new ReadableStream<string>({
  start(controller) {
    controller.enqueue(event({ type: "start", messageId: "a1" }));
    controller.enqueue(event({ type: "start-step" }));
    controller.enqueue(event({ type: "text-start", id: "t" }));
  },
  async pull(controller) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    const delta = `word${at++} `;
    characters += delta.length;
    controller.enqueue(event({ type: "text-delta", id: "t", delta }));
    writeSync(1, `${JSON.stringify({ atMs: Date.now(), characters })}\n`);
  },
});
await chats.keepStream("c", stream);
