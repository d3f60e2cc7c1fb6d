import assert from "node:assert/strict";
import type { PartialReply, PartialsFacet, SessionRef, SessionStore, StoreCapabilities } from "@throughline/core";
import { createSession, nowMs, userDraft } from "./case-tools.ts";
import type { StoreUnderTest } from "./store-under-test.ts";

export const requires = ({ partials }: StoreCapabilities): boolean => partials === true;

export function facetOf({ partials }: SessionStore): PartialsFacet {
  assert.ok(partials !== undefined, "a store that declares partials has the facet");
  return partials;
}

export const secret = "partial-secret";

export function partialOf(fields: Partial<PartialReply> = {}): PartialReply {
  return {
    v: 1,
    sessionId: "session-a",
    turnId: "turn-1",
    fence: 1,
    step: 1,
    attempt: 0,
    afterSeq: 1,
    provider: "anthropic",
    api: "anthropic-messages",
    model: null,
    text: "The first words",
    updatedMs: 1_767_323_045_006,
    ...fields,
  };
}

/** Opens a turn with a question; `fence` is the fence of the turn. */
export async function openTurn(
  store: SessionStore,
  ref: SessionRef,
  fence = 1,
  turnId = `turn-${fence}`,
): Promise<void> {
  const turn = { action: "open", turnId, owner: "kit", leaseUntilMs: nowMs() + 600_000, fence } as const;
  await store.append(ref, [userDraft(`question ${fence}`, { id: `q${fence}` })], { turn });
}

export async function closeTurn(store: SessionStore, ref: SessionRef, fence = 1): Promise<void> {
  await store.append(ref, [userDraft(`answer ${fence}`, { id: `a${fence}` })], { turn: { action: "close", fence } });
}

/** Creates a session with an open turn and a partial of the turn. */
export async function sessionWithPartial(
  store: SessionStore,
  fields: Partial<PartialReply> = {},
): Promise<{ readonly ref: SessionRef; readonly partial: PartialReply }> {
  const ref = await createSession(store, "a");
  await openTurn(store, ref);
  const partial = partialOf({ text: secret, ...fields });
  await facetOf(store).write(ref, partial);
  return { ref, partial };
}

/** Asserts that no file of the store contains the text of the partial. */
export async function assertInNoFile(under: StoreUnderTest): Promise<void> {
  for (const file of (await under.files?.()) ?? [])
    assert.ok(!Buffer.from(file).includes(secret), "a file still holds the partial");
}
