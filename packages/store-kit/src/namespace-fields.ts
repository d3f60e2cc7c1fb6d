import type { SessionRef } from "@throughline/core";
import { type Awaitable, chain } from "./awaitable.ts";
import { assertIdsFree } from "./id-claims.ts";
import type { SessionFrame } from "./session-frame.ts";
import type { FieldWrites } from "./store-backend.ts";

type Owner = Pick<SessionFrame, "ref" | "sessionId">;

/** Holds what a commit expects of the fields of a namespace, and what it writes there. */
export interface FieldPlan {
  readonly expectFields: FieldWrites;
  readonly fields: FieldWrites;
}

type ReadFields = (names: readonly string[]) => Awaitable<readonly (string | null)[]>;

function agentField({ ref }: Owner): string {
  return JSON.stringify(["agent", ref.agentId.toLowerCase()]);
}

function sessionField({ ref, sessionId }: Owner): string {
  return JSON.stringify(["session", ref.agentId.toLowerCase(), sessionId.toLowerCase()]);
}

function purgeField(sourceDigest: string): string {
  return JSON.stringify(["purged", sourceDigest]);
}

/** Holds the place of a session, which its id leads to after a rename. */
function placeText({ ref, sessionId }: Owner): string {
  return JSON.stringify([sessionId, ref.key, ref.archiveId !== undefined]);
}

/** Plans the field that leads from a session's id to its address. */
export function planPlace(owner: Owner): FieldWrites {
  return [[sessionField(owner), placeText(owner)]];
}

/** Returns the address of the session with this id, or null. */
export function placeOf(owner: Owner, read: ReadFields): Awaitable<SessionRef | null> {
  return chain(read([sessionField(owner)]), ([text = null]) => {
    if (text === null) return null;
    const [sessionId, key, isArchived] = JSON.parse(text) as readonly [string, string, boolean];
    const { namespace, agentId } = owner.ref;
    return { namespace, agentId, key, ...(isArchived ? { archiveId: sessionId } : {}) };
  });
}

/**
 * Plans to claim the ids of a new session.
 * @throws {ThroughlineError} as `assertIdsFree`
 */
export async function planClaims(owner: Owner, read: ReadFields): Promise<FieldPlan> {
  const names = [agentField(owner), sessionField(owner)];
  const [agentId = null, place = null] = await read(names);
  const sessionId = place === null ? undefined : (JSON.parse(place) as readonly [string])[0];
  assertIdsFree(owner, { agentId: agentId ?? undefined, sessionId });
  return {
    expectFields: [
      [agentField(owner), agentId],
      [sessionField(owner), null],
    ],
    fields: [[agentField(owner), owner.ref.agentId], ...planPlace(owner)],
  };
}

type PurgeTimes = Readonly<Record<string, number>>;

function purgeTimes(text: string | null | undefined): PurgeTimes {
  return text === null || text === undefined ? {} : (JSON.parse(text) as PurgeTimes);
}

/** Plans to free the id of a purged session, and to note when its source was purged. */
export async function planPurge(
  owner: Owner & { readonly sourceDigest: string | null },
  nowMs: number,
  read: ReadFields,
): Promise<FieldPlan> {
  const free: FieldWrites = [[sessionField(owner), null]];
  if (owner.sourceDigest === null) return { expectFields: [], fields: free };
  const name = purgeField(owner.sourceDigest);
  const [text = null] = await read([name]);
  const times = { ...purgeTimes(text), [owner.ref.agentId]: nowMs };
  return { expectFields: [[name, text]], fields: [...free, [name, JSON.stringify(times)]] };
}

/** Returns when a session of the source was purged last, or null. Without an agent, the purges of all agents count. */
export async function purgedAtMs(
  sourceDigest: string,
  agentId: string | undefined,
  read: ReadFields,
): Promise<number | null> {
  const [text] = await read([purgeField(sourceDigest)]);
  const times = Object.entries(purgeTimes(text)).filter(([agent]) => (agentId ?? agent) === agent);
  return times.length === 0 ? null : Math.max(...times.map(([, atMs]) => atMs));
}
