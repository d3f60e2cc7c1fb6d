// Mastra's libSQL storage on a local file: saveMessages of a turn, which folds call and result into one message.
import { join } from "node:path";
import { callId, turnParts, type Contender } from "./contender.ts";

interface Memory {
  saveThread(options: { readonly thread: unknown }): Promise<unknown>;
  saveMessages(options: { readonly messages: readonly unknown[] }): Promise<unknown>;
  listMessages(options: unknown): Promise<{ readonly messages: readonly unknown[] }>;
}
interface Storage {
  init(): Promise<void>;
  getStore(name: "memory"): Promise<Memory | undefined>;
  close?: () => Promise<void>;
}

async function opened(folder: string): Promise<{ readonly storage: Storage; readonly memory: Memory }> {
  const name = "@mastra/libsql";
  const { LibSQLStore: store } = (await import(name)) as { readonly LibSQLStore: new (options: unknown) => Storage };
  const storage = new store({ id: "peers", url: `file:${join(folder, "mastra.db")}` });
  await storage.init();
  const memory = await storage.getStore("memory");
  if (memory === undefined) throw new Error("Mastra's storage has no memory domain.");
  return { storage, memory };
}

const thread = { threadId: "peers", resourceId: "user" };

/** Opens the storage with one new thread. */
export async function open(folder: string): Promise<Contender> {
  const { storage, memory } = await opened(folder);
  const now = new Date();
  await memory.saveThread({
    thread: { id: thread.threadId, resourceId: thread.resourceId, title: "", createdAt: now, updatedAt: now },
  });
  const startMs = Date.now();
  return {
    turn(index) {
      const message = (part: string, role: string, parts: readonly unknown[], place: number): unknown => ({
        id: `${part}-${index}`,
        role,
        ...thread,
        type: "v2",
        createdAt: new Date(startMs + index * 2 + place),
        content: { format: 2, parts },
      });
      const toolInvocation = {
        state: "result",
        toolCallId: callId(index),
        toolName: turnParts.tool,
        args: turnParts.toolInput,
        result: turnParts.result,
      };
      const answer = [
        { type: "tool-invocation", toolInvocation },
        { type: "text", text: turnParts.answer },
      ];
      return memory.saveMessages({
        messages: [
          message("user", "user", [{ type: "text", text: turnParts.question }], 0),
          message("answer", "assistant", answer, 1),
        ],
      });
    },
    async reopen() {
      const again = await opened(folder);
      const { messages } = await again.memory.listMessages({ ...thread, perPage: false });
      await again.storage.close?.();
      return messages.length;
    },
    close: async () => storage.close?.(),
  };
}
