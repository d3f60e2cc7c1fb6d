import type { ListQuery, SessionState, SessionStore } from "@throughline/core";
import { listSessions } from "@throughline/core/internal";
import { archivedFrom, classifySessionFile } from "@throughline/openclaw-format/internal";
import type { TranscriptSource } from "./transcript-source.ts";

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i;
const uuidAtEnd = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** Random ids of other programs that are not UUIDs have at least this length. */
const longId = /[0-9a-z]{20}/i;

/**
 * Returns the ids by which a store may know the sessions of a source; a new session gets the first. It is the session's
 * id if no other session can have that, so that the file may be renamed or moved. Otherwise it is the path, before its
 * program archived it. A file may have been imported before its first line with the id was whole.
 */
export function sourceIdsOf(source: TranscriptSource): readonly [string, ...string[]] {
  const { path, sessionId, isPlaced = false, statesId = false, header } = source;
  const nameStart = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\"), path.lastIndexOf("#")) + 1;
  const name = path.slice(nameStart);
  const place = path.slice(0, nameStart) + (archivedFrom(name) ?? name);
  const isStated = statesId || header?.sessionId === sessionId;
  // A session of a file with several may be number 1 in the next file as well.
  const isDistinct = uuid.test(sessionId) || (isStated && (!path.includes("#") || longId.test(sessionId)));
  if (isPlaced || !isDistinct) return [place];
  // A topic has the session id of its conversation.
  const { topicId } = classifySessionFile(name);
  const topic = topicId === null ? "" : `-topic-${topicId}`;
  // A file's name may have more before the id that its lines state.
  const id = isStated ? sessionId : (uuidAtEnd.exec(sessionId)?.[0] ?? sessionId);
  return !isStated || uuid.test(name) || path.includes("#") ? [id + topic] : [id + topic, place];
}

/** Lists the sessions of one source. */
export interface SourceSessions {
  readonly sessions: readonly SessionState[];
  /** States when a session of the source was purged last, in UTC milliseconds; null when none was. */
  readonly purgedAtMs: number | null;
}

/**
 * Finds the sessions that were imported from a source, archived ones too, in every agent. The time of a purge is that
 * of the one agent, because another agent may have a session with the same id.
 */
export async function sessionsFrom(
  store: SessionStore,
  importedFrom: NonNullable<ListQuery["importedFrom"]>,
  { namespace, agentId }: { readonly namespace: string; readonly agentId: string },
): Promise<SourceSessions> {
  const query: ListQuery = { namespace, importedFrom, sort: "key" };
  const first = await store.list(query);
  const { nextCursor: cursor } = first;
  const others = cursor === null ? [] : await Array.fromAsync(listSessions(store, { ...query, cursor }));
  const sessions = [...first.sessions, ...others];
  if (typeof first.purgedAtMs !== "number") return { sessions, purgedAtMs: null };
  const { purgedAtMs = null } = await store.list({ ...query, agentId, limit: 1 });
  return { sessions, purgedAtMs };
}
