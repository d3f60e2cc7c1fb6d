// Saves a chat again and again, each time with one message more: node save-chats.ts STORE.db NAME COUNT
import process from "node:process";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createChatStore } from "../src/chat-store.ts";

const [path = "", name = "", count = "1"] = process.argv.slice(2);
const store = createSqliteStore({ path, create: true });
const chats = createChatStore({ store });
for (let at = 0; at < Number(count); at++) {
  const messages = await chats.loadChat("shared");
  const message = { id: `${name}-${at}`, role: "user" as const, parts: [{ type: "text", text: `${name} ${at}` }] };
  await chats.saveChat({ chatId: "shared", messages: [...messages, message] });
}
await store.close();
