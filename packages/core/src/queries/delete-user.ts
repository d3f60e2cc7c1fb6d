import { mainSessionKey } from "../build-session-key.ts";
import { waitForTurnEnd, type WaitForTurnOptions } from "../end-session.ts";
import { fileIdsOf } from "../file-blocks.ts";
import { refused } from "../refused.ts";
import { searchText } from "../search-text.ts";
import type { SessionStore } from "../session-store.ts";
import type { StoredRecord } from "../stored-records.ts";
import { hasErrorCode } from "../throughline-error.ts";
import { throughlineKind } from "../throughline-record.ts";
import { assertUser, findUserSessions, type UserSession, type UserSessions } from "./user-sessions.ts";

/** Counts what the sessions of a user hold. */
export interface UserCounts {
  /** Counts the sessions in every state. */
  readonly sessions: number;
  /** Counts those of them that are archived. */
  readonly archived: number;
  /** Counts the records, including those of other branches. Records that forks share count in each. */
  readonly records: number;
  /** Counts the messages among the records. */
  readonly messages: number;
  /** Counts the summaries among the records: compactions, checkpoints and summaries of branches. */
  readonly summaries: number;
  /** Counts the notes among the records, such as those of a redaction. */
  readonly notes: number;
  /** Counts the wire frames among the records, which a gateway stored for each call. */
  readonly wireFrames: number;
  /** Counts the stored files that records refer to, once in each session. Null for a store without files. */
  readonly files: number | null;
  /**
   * Counts the stored files that no record refers to. They belong to a user only with the whole namespace, so they are 0
   * for a key prefix. Null for a store without files.
   */
  readonly unusedFiles: number | null;
  /** Counts the replies that are being written. */
  readonly partials: number;
  /** Counts the records that full-text search finds. Null for a store without search. */
  readonly searchRows: number | null;
  /** Counts the sessions with a record that cannot be read. They are deleted, and their other counts are too low. */
  readonly unread: number;
}

/** Describes what a deletion of a user would remove, or removed. */
export interface UserDeletion {
  /** States whether the sessions are still there. */
  readonly state: "planned" | "deleted";
  /** Counts what the sessions hold or held. */
  readonly counts: UserCounts;
  /** Lists the sessions, each after the one that it was made from. */
  readonly sessions: readonly UserSession[];
  /** States in sentences where copies may remain that no store can reach. */
  readonly notReached: readonly string[];
}

/** Sets whether anything is removed, and how the deletion waits for turns. */
export interface DeleteUserOptions extends WaitForTurnOptions {
  /** Counts only, and removes nothing. @default false */
  readonly dryRun?: boolean | undefined;
  /** Names agents whose unused files are deleted too, when they have no session. @default the agents of the sessions */
  readonly agentIds?: readonly string[] | undefined;
  /** Runs after each removed session. */
  readonly onDeleted?: ((session: UserSession) => void | Promise<void>) | undefined;
}

const notReached: readonly string[] = [
  "Backups and exported files hold what the store held. Make new ones, and delete the older ones.",
  "Sessions that were copied to another store, or shared with another program, stay there.",
  "Providers keep what was sent to them, by their own terms.",
  "Logs of your programs, and memory files in workspaces, are not part of the store.",
  "A mark stays of each session that was imported, so that an import does not bring it back. It holds no text.",
];

/** Sessions that are created while others are deleted are found by the next round. */
const mostRounds = 8;

/**
 * Purges the sessions of a user one by one, forks and spawned sessions first. After an interruption the same call
 * deletes the rest, because what a session was made from goes last.
 *
 * @throws {ThroughlineError} INPUT_INVALID for a user that would be everybody. SESSION_PROTECTED for the main session of
 *   an agent, unless the whole namespace is the user's. SESSION_BUSY when a turn does not end in time, and what the store
 *   throws. Sessions that were deleted before the error stay deleted.
 */
export async function deleteUser(
  store: SessionStore,
  user: UserSessions,
  { dryRun = false, agentIds = [], onDeleted, ...wait }: DeleteUserOptions = {},
): Promise<UserDeletion> {
  assertUser(user);
  let counts = nothingCounted(store);
  const sessions: UserSession[] = [];
  const agents = new Set(user.keyPrefix === null ? agentIds : []);
  for (let round = 0; round < mostRounds; round++) {
    const found = await findUserSessions(store, user, wait.signal);
    if (round === 0) assertNotMain(user, found);
    // Before the sessions, because nothing else names the agents of a deletion that is interrupted.
    if (user.keyPrefix === null) for (const { ref } of found) agents.add(ref.agentId);
    counts = sum(counts, await deleteUnusedFiles(store, { namespace: user.namespace, agents }, { dryRun, ...wait }));
    for (const session of found.toReversed()) {
      const counted = await countSession(store, session, wait.signal);
      if (counted === null) continue;
      if (!dryRun && !(await purge(store, session, wait))) continue;
      counts = sum(counts, counted);
      sessions.push(session);
      if (!dryRun) await onDeleted?.(session);
    }
    if (dryRun || found.length === 0) break;
  }
  return { state: dryRun ? "planned" : "deleted", counts, sessions: sessions.toReversed(), notReached };
}

/** Deletes the files of these agents that no record refers to. Files of a session go with it. */
async function deleteUnusedFiles(
  store: SessionStore,
  { namespace, agents }: { readonly namespace: string; readonly agents: ReadonlySet<string> },
  { dryRun, signal }: { readonly dryRun: boolean; readonly signal?: AbortSignal | undefined },
): Promise<UserCounts> {
  const counts = nothingCounted(store);
  const { files } = store;
  if (files === undefined) return counts;
  for (const agentId of agents)
    for await (const page of files.list({ namespace, agentId }, { signal }))
      for (const { id, bytes, references } of page)
        if (bytes !== null && references === 0 && (dryRun || (await files.delete({ namespace, agentId }, id))))
          counts.unusedFiles = (counts.unusedFiles ?? 0) + 1;
  return counts;
}

function assertNotMain({ keyPrefix }: UserSessions, found: readonly UserSession[]): void {
  const main = found.find(({ ref }) => ref.archiveId === undefined && ref.key === mainSessionKey(ref.agentId));
  if (keyPrefix !== null && main !== undefined)
    throw refused("SESSION_PROTECTED", `${JSON.stringify(main.ref.key)} is the main session of its agent.`, {
      ...main.ref,
    });
}

/** Returns false when the session is gone, or is another one now. A later round finds what it became. */
async function purge(store: SessionStore, { ref, sessionId }: UserSession, wait: WaitForTurnOptions): Promise<boolean> {
  await waitForTurnEnd(store, ref, wait);
  if ((await store.load(ref))?.sessionId !== sessionId) return false;
  try {
    await store.remove(ref, { purge: true });
    return true;
  } catch (error) {
    if (hasErrorCode(error, "SESSION_NOT_FOUND")) return false;
    throw error;
  }
}

const summaryTypes: ReadonlySet<string> = new Set(["compaction", "checkpoint", "branch_summary"]);
const frameKinds: ReadonlySet<string | null> = new Set(["exchange", "prompt"]);

type Counts = { -readonly [Name in keyof UserCounts]: UserCounts[Name] };

function nothingCounted({ capabilities, files: facet }: SessionStore): Counts {
  const searchRows = capabilities.search ? 0 : null;
  const files = facet === undefined ? null : 0;
  return {
    sessions: 0,
    archived: 0,
    records: 0,
    messages: 0,
    summaries: 0,
    notes: 0,
    wireFrames: 0,
    files,
    unusedFiles: files,
    partials: 0,
    searchRows,
    unread: 0,
  };
}

/** Returns null for a session that is gone. */
async function countSession(
  store: SessionStore,
  { ref }: UserSession,
  signal: AbortSignal | undefined,
): Promise<UserCounts | null> {
  const counts = nothingCounted(store);
  const files = new Set<string>();
  try {
    if (ref.archiveId === undefined && (await store.partials?.read(ref)) != null) counts.partials += 1;
    for await (const { records } of store.read(ref, signal === undefined ? {} : { signal }))
      for (const stored of records) {
        count(counts, stored);
        for (const id of fileIdsOf(stored.record)) files.add(id);
      }
  } catch (error) {
    if (hasErrorCode(error, "SESSION_NOT_FOUND")) return null;
    // Damage, and a key that is gone, must not keep a session from being deleted.
    if (!hasErrorCode(error, "STORE_CORRUPT", "CODEC_FAILED", "STORE_VERSION_UNSUPPORTED")) throw error;
    counts.unread += 1;
  }
  if (counts.files !== null) counts.files = files.size;
  return { ...counts, sessions: 1, archived: ref.archiveId === undefined ? 0 : 1 };
}

function count(counts: Counts, { type, record }: StoredRecord): void {
  const kind = throughlineKind(record);
  counts.records += 1;
  if (type === "message") counts.messages += 1;
  if (summaryTypes.has(type)) counts.summaries += 1;
  if (kind === "note") counts.notes += 1;
  if (frameKinds.has(kind)) counts.wireFrames += 1;
  if (counts.searchRows !== null && searchText(record) !== null) counts.searchRows += 1;
}

function sum(one: UserCounts, other: UserCounts): Counts {
  const names = Object.keys(one) as (keyof UserCounts)[];
  // The cast is safe: every field of the sum is one of the counts.
  return Object.fromEntries(names.map((name) => [name, added(one[name], other[name])])) as unknown as Counts;
}

function added(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other;
}
