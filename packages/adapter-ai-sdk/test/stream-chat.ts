// Begins to answer in a chat, says so on stdout, and answers for ever: node stream-chat.ts STORE.db
import { flushCompileCache } from "node:module";
import process from "node:process";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createChatStore } from "../src/chat-store.ts";

// A process that is killed does not keep what it compiled by itself.
flushCompileCache();
await using store = createSqliteStore({ path: process.argv[2] ?? "" });
const asked = { id: "u1", role: "user" as const, parts: [{ type: "text", text: "Hi" }] };
const answer = { id: "a1", role: "assistant" as const, parts: [{ type: "text", text: "Hel", state: "streaming" }] };
await createChatStore({ store }).saveChat({ chatId: "c", messages: [asked, answer], activeStreamId: "s1" });
process.stdout.write("answering\n");
await new Promise((resolve) => setTimeout(resolve, 60_000));
