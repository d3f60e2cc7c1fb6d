import { createHash } from "node:crypto";
import type { AgentToolCall, SessionRef } from "@throughline/core";
import { hopsOf, provenanceFrom, sessionMessage } from "./session-message.ts";
import type { SessionToolScene } from "./session-tool-scene.ts";
import { ToolRefusal } from "./tool-refusal.ts";
import type { VisibleSessions } from "./visible-sessions.ts";

export const noSession = "This session does not exist any more.";

/** Brings a text to another session, from this one. The answer, or null where it lies there for the next turn. */
export type PassOn = (ref: SessionRef, text: string) => Promise<string | null>;

/**
 * What a session may still pass on. Nothing is done yet, so that one that may not leaves nothing behind.
 * @throws {ToolRefusal} when the session is gone, or sessions passed it on too often already
 */
export async function readyToPassOn(
  { deliver, limits }: SessionToolScene,
  { store, own }: VisibleSessions,
  { signal, callId }: AgentToolCall,
  by: { readonly tool: string; readonly keyPrefix: string },
): Promise<PassOn> {
  const state = await store.load(own, { signal });
  if (state === null) throw new ToolRefusal("no-session", noSession);
  const hops = 1 + (await hopsOf(store, own, signal));
  if (hops > limits.hops)
    throw new ToolRefusal("too-many-hops", `Sessions passed this on ${limits.hops} times; a person has to go on.`);
  return (ref, text) => {
    // Some providers give every reply the same call ids: the same id with another text is another call.
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
