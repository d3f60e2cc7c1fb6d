// OpenClaw 2026.9, SQLite: the messages of a turn in one atomic batch, through the module that its plugins import.
import { join } from "node:path";
import process from "node:process";
import { callId, turnParts, turnUsage, type Contender } from "./contender.ts";

interface Transcripts {
  appendSessionTranscriptMessagesByIdentity(options: unknown): Promise<unknown>;
  readSessionTranscriptEvents(options: unknown): Promise<readonly { readonly type?: string }[]>;
}
interface Sessions {
  upsertSessionEntry(options: unknown): Promise<unknown>;
}

/** Opens a new session in a state directory of its own. */
export async function open(folder: string): Promise<Contender> {
  // Read once by the package, so before it is loaded.
  process.env["OPENCLAW_STATE_DIR"] = join(folder, "state");
  process.env["HOME"] = folder;
  const [first, second] = [
    "openclaw/plugin-sdk/session-transcript-runtime",
    "openclaw/plugin-sdk/session-store-runtime",
  ];
  const transcripts = (await import(first as string)) as Transcripts;
  const sessions = (await import(second as string)) as Sessions;
  const session = {
    agentId: "main",
    sessionKey: "agent:main:peers",
    sessionId: "11111111-1111-4111-8111-111111111111",
  };
  await sessions.upsertSessionEntry({ ...session, entry: { sessionId: session.sessionId, updatedAt: Date.now() } });
  const origin = { api: "anthropic-messages", provider: "anthropic", model: "claude", usage: turnUsage };
  return {
    turn(index) {
      const timestamp = Date.now();
      const id = callId(index);
      const texts = (text: string): unknown => [{ type: "text", text }];
      const call = [{ type: "toolCall", id, name: turnParts.tool, arguments: turnParts.toolInput }];
      const result = { toolCallId: id, toolName: turnParts.tool, content: texts(turnParts.result), isError: false };
      const messages = [
        { role: "user", content: turnParts.question, timestamp },
        { role: "assistant", content: call, ...origin, stopReason: "toolUse", timestamp },
        { role: "toolResult", ...result, timestamp },
        { role: "assistant", content: texts(turnParts.answer), ...origin, stopReason: "stop", timestamp },
      ];
      return transcripts.appendSessionTranscriptMessagesByIdentity({
        ...session,
        messages: messages.map((message) => ({ message })),
      });
    },
    async reopen() {
      const events = await transcripts.readSessionTranscriptEvents(session);
      return events.filter(({ type }) => type === "message").length;
    },
    close: () => Promise.resolve(),
  };
}
