import type { AgentTool } from "@throughline/core";
import { hopsOf, provenanceFrom, sessionMessage } from "./session-message.ts";
import type { SessionToolScene } from "./session-tool-scene.ts";
import { quote, refusing, textArgument, ToolRefusal } from "./tool-refusal.ts";

/** `sessions_send`: a message from this session to another, which says so. */
export function createSendTool({ sessionsOf, deliver, limits }: SessionToolScene): AgentTool {
  const definition = {
    name: "sessions_send",
    description:
      "Sends a message to another session that you may see. It arrives marked as coming from this session, not from a " +
      "person.",
    inputSchema: {
      type: "object",
      properties: {
        session: { type: "string", description: "The key of the session." },
        message: { type: "string", description: `The text, at most ${limits.messageLength} characters.` },
      },
      required: ["session", "message"],
      additionalProperties: false,
    },
  };
  return {
    definition,
    run: (args, call) =>
      refusing(call.signal, async () => {
        const { signal, callId } = call;
        const sessions = sessionsOf(call);
        const text = textArgument(args, "message", limits.messageLength);
        const target = await sessions.find(textArgument(args, "session", 512));
        if (target.ref.key === sessions.own.key)
          throw new ToolRefusal("arguments", "This is that session; it need not be sent anything.");
        const own = await sessions.store.load(sessions.own, { signal });
        if (own === null) throw new ToolRefusal("no-session", "This session does not exist any more.");
        const hops = 1 + (await hopsOf(sessions.store, sessions.own, signal));
        if (hops > limits.hops)
          throw new ToolRefusal(
            "too-many-hops",
            `Sessions passed this on ${limits.hops} times; a person has to go on.`,
          );
        const message = sessionMessage(text, provenanceFrom(own, definition.name, hops));
        const idempotencyKey = `send:${own.sessionId}:${callId}`.slice(0, 256);
        const reply = await deliver({ ref: target.ref, message, idempotencyKey, signal });
        const { key } = target.ref;
        return {
          content: reply === null ? `Sent to ${quote(key)}.` : `${quote(key)} answered:\n${reply}`,
          details: { key, sessionId: target.sessionId, isAnswered: reply !== null },
        };
      }),
  };
}
