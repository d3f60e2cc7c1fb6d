import { type AgentTool, defineTool, hasErrorCode, type SessionState } from "@throughline/core";
import { childSessionKey, spawnSession } from "./spawn-session.ts";
import { noSession, prepareSend, type SendTarget } from "./send-message.ts";
import { sessionRow } from "./session-row.ts";
import type { SessionToolContext } from "./session-tool-context.ts";
import { filledText, quote, refusing, SessionToolRefusal, type RefusalReason } from "./tool-refusal.ts";
import type { VisibleSessions } from "./visible-sessions.ts";

/** `sessions_spawn`: a session below this one, with a first message when there is one to give. */
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
        // A model may use the id of a call again, for another task: that is another call.
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

/** As the send policy sees a child that is not made yet. */
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
