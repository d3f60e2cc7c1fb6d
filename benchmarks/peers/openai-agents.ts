// MemorySession of the OpenAI Agents SDK, as its runner uses it: read the items, then add those of the turn.
import { callId, turnParts, type Contender } from "./contender.ts";

interface Session {
  getItems(): Promise<readonly unknown[]>;
  addItems(items: readonly unknown[]): Promise<void>;
}

/** Opens a new session in memory. */
export async function open(): Promise<Contender> {
  const name = "@openai/agents-core";
  const { MemorySession: sessions } = (await import(name)) as { readonly MemorySession: new () => Session };
  const session = new sessions();
  return {
    async turn(index) {
      await session.getItems();
      const id = callId(index);
      const call = { name: turnParts.tool, arguments: JSON.stringify(turnParts.toolInput), status: "completed" };
      await session.addItems([
        { type: "message", role: "user", content: turnParts.question },
        { type: "function_call", callId: id, ...call },
        {
          type: "function_call_result",
          callId: id,
          name: turnParts.tool,
          status: "completed",
          output: { type: "text", text: turnParts.result },
        },
        {
          type: "message",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: turnParts.answer }],
        },
      ]);
    },
    reopen: async () => (await session.getItems()).length,
    close: () => Promise.resolve(),
  };
}
