import { convertToModelMessages, jsonSchema, stepCountIs, streamText, tool, type UIMessage } from "ai";
import type { SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { type ChatStore, createChatStore, type StoredMessage } from "../src/chat-store.ts";
import { say, scripted, toolCall } from "./scripted-model.ts";

export type Part = Readonly<Record<string, unknown>>;

export const user = (id: string): StoredMessage => ({ id, role: "user", parts: [{ type: "text", text: id }] });

export interface ChatServer {
  /** Saves the messages, answers them, and gives the chat as it is then. */
  readonly answer: (messages: readonly StoredMessage[]) => Promise<readonly StoredMessage[]>;
  readonly chats: () => ChatStore;
  readonly prompts: readonly (readonly Part[])[];
  readonly runs: readonly string[];
  readonly store: SessionStore;
}

/** A chat server on the SDK's own approval flow: the tools that run, and what the model is asked with. */
export function chatServer(forModel: boolean): ChatServer {
  const store = createMemoryStore();
  const runs: string[] = [];
  const { model, prompts } = scripted(createMemoryStore(), [[toolCall("c1"), toolCall("c2")], say("Done.")]);
  const clock = tool({
    description: "Pays",
    inputSchema: jsonSchema<object>({ type: "object", properties: {} }),
    needsApproval: true,
    execute: async (_input, { toolCallId }) => {
      runs.push(toolCallId);
      return `paid ${toolCallId}`;
    },
  });
  /** Another process for each request. */
  const chats = () => createChatStore({ store });
  const answer = async (messages: readonly StoredMessage[]): Promise<readonly StoredMessage[]> => {
    await chats().saveChat({ chatId: "c", messages });
    const given = await chats().loadChat<UIMessage>("c", { forModel });
    const result = streamText({
      model,
      tools: { clock },
      stopWhen: stepCountIs(3),
      messages: await convertToModelMessages(given),
    });
    const saved = Promise.withResolvers<void>();
    const stream = result.toUIMessageStream({
      originalMessages: messages as unknown as UIMessage[],
      generateMessageId: () => `a${prompts.length}`,
      onFinish: (end) => {
        const saving = chats().saveChat({ chatId: "c", messages: end.messages as unknown as StoredMessage[] });
        saving.then(saved.resolve, saved.reject);
      },
    });
    for await (const chunk of stream) void chunk;
    await saved.promise;
    return chats().loadChat<StoredMessage>("c");
  };
  return { answer, chats, prompts, runs, store };
}

/** The user's decisions in the last message, by call. */
export function decide(
  messages: readonly StoredMessage[],
  decisions: Readonly<Record<string, boolean>>,
): StoredMessage[] {
  return messages.map((message) => ({
    ...message,
    parts: (message.parts as readonly Part[]).map((part) => {
      const approved = decisions[String(part["toolCallId"])];
      if (part["state"] !== "approval-requested" || approved === undefined) return part;
      const approval = { ...(part["approval"] as object), approved };
      return { ...part, state: "approval-responded", approval };
    }),
  }));
}

export function statesOf(message: StoredMessage | undefined): readonly string[] {
  return ((message?.parts ?? []) as readonly Part[]).flatMap(({ toolCallId, state }) =>
    toolCallId === undefined ? [] : [`${String(toolCallId)} ${String(state)}`],
  );
}
