import { type AgentTool, defineTool } from "@throughline/core";
import { prepareSend } from "./send-message.ts";
import type { SessionToolContext } from "./session-tool-context.ts";
import { filledText, quote, refusing, SessionToolRefusal } from "./tool-refusal.ts";

export function createSendTool(context: SessionToolContext): AgentTool {
  const { sessionsOf, limits } = context;
  return defineTool({
    name: "sessions_send",
    description:
      "Sends a message to another session that you may see. It arrives marked as coming from this session, not from a " +
      "person.",
    input: {
      type: "object",
      properties: {
        session: { type: "string", description: "The key of the session." },
        message: { type: "string", description: `The text, at most ${limits.messageLength} characters.` },
      },
      required: ["session", "message"],
      additionalProperties: false,
    },
    run: (args, call) =>
      refusing(call.signal, async () => {
        const sessions = sessionsOf(call);
        const text = filledText("message", args.message, limits.messageLength);
        const target = await sessions.find(filledText("session", args.session, 512));
        if (target.ref.key === sessions.own.key)
          throw new SessionToolRefusal("arguments", "This is that session; it need not be sent anything.");
        const sendMessage = await prepareSend(context, sessions, call, {
          tool: "sessions_send",
          keyPrefix: "send",
          target: () => ({ key: target.ref.key, entry: target.entry }),
        });
        const reply = await sendMessage(target.ref, text);
        const { key } = target.ref;
        return {
          content: reply === null ? `Sent to ${quote(key)}.` : `${quote(key)} answered:\n${reply}`,
          details: { key, sessionId: target.sessionId, isAnswered: reply !== null },
        };
      }),
  });
}
