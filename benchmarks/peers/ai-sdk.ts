// The pattern of the AI SDK's documentation: the whole conversation written to a JSON file after every turn, and read with
// validation before the next one.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { callId, turnParts, type Contender } from "./contender.ts";

interface AiSdk {
  validateUIMessages(options: { readonly messages: unknown }): Promise<unknown[]>;
}

/** Opens a new conversation. */
export async function open(folder: string): Promise<Contender> {
  const name = "ai";
  const { validateUIMessages: validate } = (await import(name)) as AiSdk;
  const path = join(folder, "chat.json");
  await writeFile(path, "[]");
  const load = async (): Promise<unknown[]> => {
    const messages = JSON.parse(await readFile(path, "utf8")) as unknown[];
    return messages.length === 0 ? [] : validate({ messages });
  };
  return {
    async turn(index) {
      const messages = await load();
      const tool = {
        type: "dynamic-tool",
        toolName: turnParts.tool,
        toolCallId: callId(index),
        state: "output-available",
        input: turnParts.toolInput,
        output: turnParts.result,
      };
      const parts = [tool, { type: "text", text: turnParts.answer }];
      messages.push(
        { id: `user-${index}`, role: "user", parts: [{ type: "text", text: turnParts.question }] },
        { id: `answer-${index}`, role: "assistant", parts },
      );
      await writeFile(path, JSON.stringify(messages, null, 2));
    },
    reopen: async () => (await load()).length,
    close: () => Promise.resolve(),
  };
}
