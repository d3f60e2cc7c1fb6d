import { createHash } from "node:crypto";
import type { AgentToolCall, SessionEntry, SessionRef, SessionState } from "@throughline/core";
import { resolveSendPolicy } from "@throughline/policy";
import { hopsOf, provenanceFrom, sessionMessage } from "./session-message.ts";
import type { SessionToolContext } from "./session-tool-context.ts";
import { quote, SessionToolRefusal } from "./tool-refusal.ts";
import type { VisibleSessions } from "./visible-sessions.ts";

export const noSession = "This session does not exist any more.";

/** Describes the target for the send policy. The target session may not exist yet when the policy is checked. */
export interface SendTarget {
  readonly key: string;
  readonly entry: SessionEntry;
}

/** Returns the target's answer. Null means that the target reads the text in its next turn. */
export type SendMessage = (ref: SessionRef, text: string) => Promise<string | null>;

/**
 * Checks whether a session may still pass a message on. The check runs before any write, so that a refused call leaves
 * nothing behind.
 * @throws {SessionToolRefusal} when the session is gone, the send policy denies it, or sessions passed it on too
 *   often already
 */
export async function prepareSend(
  { deliver, limits, sendPolicy }: SessionToolContext,
  { store, own }: VisibleSessions,
  { signal, callId }: AgentToolCall,
  by: {
    readonly tool: string;
    readonly keyPrefix: string;
    /** Receives the sender, because the key of a child that is not created yet derives from the key of its parent. */
    readonly target: (own: SessionState) => SendTarget;
  },
): Promise<SendMessage> {
  const state = await store.load(own, { signal });
  if (state === null) throw new SessionToolRefusal("no-session", noSession);
  // The sender is checked too. Otherwise a session that may not speak could let another session speak for it.
  for (const { key, entry } of [{ key: own.key, entry: state.entry }, by.target(state)])
    if (resolveSendPolicy({ key, entry, policy: sendPolicy }).action === "deny")
      throw new SessionToolRefusal(
        "send-denied",
        `The send policy denies messages in ${quote(key)}. Nothing was sent.`,
      );
  const hops = 1 + (await hopsOf(store, own, signal));
  if (hops > limits.hops)
    throw new SessionToolRefusal(
      "too-many-hops",
      `Sessions passed this on ${limits.hops} times; a person has to go on.`,
    );
  return (ref, text) => {
    // Some providers give every reply the same call ids. The hash therefore covers the text: the same id with another
    // text is another call.
    const call = createHash("sha256")
      .update(JSON.stringify([callId, text]))
      .digest("hex");
    const idempotencyKey = `${by.keyPrefix}:${state.sessionId}:${call}`;
    return deliver({
      ref,
      message: sessionMessage(text, provenanceFrom(state, by.tool, hops)),
      idempotencyKey,
      signal,
    });
  };
}
