// A chat that outlives its process: the messages of the user interface in a chat store, and what the model sees in a log of its own.
// node --conditions=@throughline/source src/main.ts "My name is Ada." [sessions.db]
import process from "node:process";
import { convertToModelMessages, streamText, type UIMessage, wrapLanguageModel } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { createChatStore, throughlineMiddleware } from "@throughline/adapter-ai-sdk";
import { sessionRef } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";

const [question = "Hello.", path = "sessions.db"] = process.argv.slice(2);
const chatId = "chat-1";

const store = createSqliteStore({ path });
const chats = createChatStore({ store });
const middleware = throughlineMiddleware({ store, ref: sessionRef({ key: `agent:main:models:${chatId}` }) });
const model = wrapLanguageModel({ model: countingModel(), middleware });

const before = await chats.loadChat<UIMessage>(chatId);
const asked: UIMessage = { id: `u${before.length}`, role: "user", parts: [{ type: "text", text: question }] };
await chats.saveChat({ chatId, messages: [...before, asked] });

const forModel = [...(await chats.loadChat<UIMessage>(chatId, { forModel: true }))];
const result = streamText({ model, messages: await convertToModelMessages(forModel) });
const saved = Promise.withResolvers<void>();
const stream = result.toUIMessageStream<UIMessage>({
  originalMessages: [...before, asked],
  generateMessageId: () => `a${before.length}`,
  onFinish: ({ messages }) => void chats.saveChat({ chatId, messages }).then(saved.resolve, saved.reject),
});
for await (const chunk of stream) if (chunk.type === "text-delta") process.stdout.write(chunk.delta);
await saved.promise;
process.stdout.write(`\n${(await chats.loadChat(chatId)).length} messages are stored.\n`);
await store.close();

/** A model without a key, which says how much it was sent. Take `anthropic("…")` or another one in its place. */
function countingModel(): MockLanguageModelV3 {
  const inputTokens = { total: 9, noCache: 9, cacheRead: 0, cacheWrite: 0 };
  const usage = { inputTokens, outputTokens: { total: 6, text: 6, reasoning: 0 } };
  return new MockLanguageModelV3({
    doStream: ({ prompt }) => {
      const text = `I was sent ${prompt.length} messages.`;
      return Promise.resolve({
        stream: simulateReadableStream({
          chunks: [
            { type: "text-start", id: "1" },
            { type: "text-delta", id: "1", delta: text },
            { type: "text-end", id: "1" },
            { type: "finish", usage, finishReason: { unified: "stop", raw: "stop" } },
          ],
        }),
      });
    },
  });
}
