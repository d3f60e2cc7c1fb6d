import { type AgentTool, defineTool, hasErrorCode, type SessionState } from "@throughline/core";
import { childSessionKey, spawnSession } from "./spawn-session.ts";
import { noSession, prepareSend, type SendTarget } from "./send-message.ts";
import { sessionRow } from "./session-row.ts";
import type { SessionToolContext } from "./session-tool-context.ts";
import { filledText, quote, refusing, SessionToolRefusal, type RefusalReason } from "./tool-refusal.ts";
import type { VisibleSessions } from "./visible-sessions.ts";

export function createSpawnTool(context: SessionToolContext): AgentTool {
  const { sessionsOf, limits, clock } = context;
  return defineTool({
    name: "sessions_spawn",
    description:
      "Starts a session of its own below this one and gives its key. It starts empty: write in `task` what it needs to " +
      "know and do.",
    input: {
      type: "object",
      properties: {
        task: { type: "string", description: "Its first message. Default: none." },
        label: { type: "string", description: "A name for people. Default: none." },
      },
      additionalProperties: false,
    },
    run: (args, call) =>
      refusing(call.signal, async () => {
        const sessions = sessionsOf(call);
        const task = args.task === undefined ? null : filledText("task", args.task, limits.messageLength);
        const label = args.label === undefined ? null : filledText("label", args.label, 120);
        const by = { tool: "sessions_spawn", keyPrefix: "spawn", target: childOf };
        const sendMessage = task === null ? null : await prepareSend(context, sessions, call, by);
        // A model may reuse a call id for another task. The task and the label are part of the occasion, so that the
        // second task spawns its own session.
        const occasion = JSON.stringify([call.callId, task, label]);
        const child = await spawned(context, sessions, label, occasion);
        const { key } = child.ref;
        const row = sessionRow(child, clock.nowMs());
        if (row.isArchived) {
          const content = `This call started ${quote(key)} before; it is archived by now.`;
          return { content, details: { ...row, isAnswered: false } };
        }
        if (task === null || sendMessage === null)
          return { content: `Started ${quote(key)}.`, details: { ...row, isAnswered: false } };
        const reply = await sendMessage(child.ref, task);
        const answer = reply === null ? "It has its task." : `It answered:\n${reply}`;
        return { content: `Started ${quote(key)}. ${answer}`, details: { ...row, isAnswered: reply !== null } };
      }),
  });
}

/**
 * The child does not exist yet when the send policy is checked. Its key and the inherited `sendPolicy` are enough for
 * the policy.
 */
function childOf({ ref, sessionId, entry: { sendPolicy } }: SessionState): SendTarget {
  const entry = { sessionId, ...(sendPolicy === undefined ? {} : { sendPolicy }) };
  return { key: childSessionKey(ref, "child"), entry };
}

async function spawned(
  { clock, random, spawnLimits }: SessionToolContext,
  { store, own }: VisibleSessions,
  label: string | null,
  occasion: string,
): Promise<SessionState> {
  try {
    const entry = label === null ? {} : { label };
    return await spawnSession(store, own, { clock, random, limits: spawnLimits, entry, occasion });
  } catch (error) {
    if (hasErrorCode(error, "SESSION_NOT_FOUND")) throw new SessionToolRefusal("no-session", noSession);
    if (!hasErrorCode(error, "SPAWN_REFUSED")) throw error;
    const { message, details } = error as Error & { readonly details: Readonly<Record<string, unknown>> };
    throw new SessionToolRefusal(`spawn-${String(details["reason"])}` as RefusalReason, message);
  }
}
