import type { ListQuery } from "@throughline/core";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { WantedSessions } from "./index-page.ts";
import type { StoreContext } from "./store-context.ts";
import type { SessionSnapshot } from "./session-row.ts";
import { fingerprintOf } from "./transcript-summaries.ts";

/**
 * Each list compares this many transcripts with the index, besides those of its page. The choice is random, so that
 * several lists cover all.
 */
const sampleSize = 256;
/** A list by source reads up to this many sessions that the index does not have yet. */
const fewSessions = 64;
/** A mark older than this counts as left by a process that died, so it is deleted. */
const markLifeMs = 600_000;

export interface AgentList {
  readonly found: readonly SessionSnapshot[];
  /** Is true when `found` holds every session that fits the query, so that later pages need no new search. */
  readonly isAll: boolean;
}

/** Returns the sessions of one agent that may be on the wanted page, unsorted. With an index these are few. */
export function listAgent(
  context: StoreContext,
  agent: AgentSessionFiles,
  query: ListQuery,
  wanted: WantedSessions,
): AgentList {
  const looked = new Map<string, SessionSnapshot | null>();
  const source = wanted.sourceDigest;
  const byIndex =
    source === null && agent.log.isIndexed ? listByIndex(context, agent, query, wanted, looked) : undefined;
  const found = byIndex ?? (source === null ? listAll(agent, query, looked) : listBySource(agent, source, looked));
  // A list by source reads few sessions, and an import asks for many sources, so it leaves a few for the next list.
  const isNews =
    source === null
      ? agent.log.unindexed.size > 0 || looked.size > 0 || agent.adoption.hasNewNotes
      : agent.log.unindexed.size > fewSessions;
  if (isNews && agent.updateIndex([...looked.values()].filter((seen) => seen !== null)))
    agent.index.unmarkOlder(looked.keys(), context.clock.nowMs() - markLifeMs);
  return { found, isAll: byIndex === undefined };
}

/**
 * Returns the sessions that may be of a source. A patch that only a transcript has may state it, so those that are being
 * written are included.
 */
function listBySource(
  agent: AgentSessionFiles,
  source: string,
  looked: Map<string, SessionSnapshot | null>,
): readonly SessionSnapshot[] {
  const { index, log } = agent;
  const suspects = log.isIndexed ? index.suspects() : undefined;
  const ids =
    suspects === undefined ? log.rows.keys() : [...log.image.sources.idsOf(source), ...log.unindexed, ...suspects];
  return [...new Set(ids)].flatMap((sessionId) => {
    const row = log.row(sessionId);
    const seen = row === null ? null : agent.snapshotIfReadable(row);
    looked.set(sessionId, seen);
    return seen ?? [];
  });
}

function listAll(
  agent: AgentSessionFiles,
  query: ListQuery,
  looked: Map<string, SessionSnapshot | null>,
): readonly SessionSnapshot[] {
  const { state = "active", keyPrefix = "" } = query;
  const seen = [...agent.log.rows.values()].map((row) => {
    const known = looked.get(row.sessionId);
    const one = known === undefined ? agent.snapshotIfReadable(row) : known;
    looked.set(row.sessionId, one);
    return one;
  });
  return seen
    .filter((one) => one !== null)
    .filter(
      ({ row }) => (state === "any" || (state === "archived") === row.isArchived) && row.key.startsWith(keyPrefix),
    );
}

/** Limits how often the index is asked again while other processes keep changing it. */
const maxAttempts = 8;

/**
 * Lists by the index; returns undefined when it cannot answer. Snapshots go into `looked`, and replace what the index
 * says.
 */
function listByIndex(
  context: StoreContext,
  agent: AgentSessionFiles,
  query: ListQuery,
  wanted: WantedSessions,
  looked: Map<string, SessionSnapshot | null>,
): readonly SessionSnapshot[] | undefined {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const version = agent.index.version();
    const found = listOnce(context, agent, query, wanted, looked);
    // A session that another process just updated may be neither a suspect nor on the page, so the index is asked
    // again.
    if (found === undefined || agent.index.version() === version) return found;
  }
  return undefined;
}

function listOnce(
  context: StoreContext,
  agent: AgentSessionFiles,
  query: ListQuery,
  wanted: WantedSessions,
  looked: Map<string, SessionSnapshot | null>,
): readonly SessionSnapshot[] | undefined {
  const { index, log, folder, redo } = agent;
  const { files, random, limits } = context;
  const look = (sessionId: string): void => {
    const row = log.row(sessionId);
    looked.set(sessionId, row === null ? null : agent.snapshotIfReadable(row));
  };
  const suspects = index.suspects();
  // Programs that do not know the index also write to transcripts, so random samples are compared to find those
  // changes.
  const sample = index.sample(random.uint32() % (index.lastPlace() + 1), sampleSize);
  if (suspects === undefined || sample === undefined) return undefined;
  for (const sessionId of new Set([...log.unindexed, ...suspects])) look(sessionId);
  const checked = new Set<string>();
  for (const { id, fileName, seen } of sample) {
    if (looked.has(id)) continue;
    checked.add(id);
    if (!seen.startsWith(fingerprintOf(files.facts(folder.session(fileName))) || "gone")) look(id);
  }
  for (;;) {
    const believed = index.page(
      query,
      { ...wanted, limit: wanted.limit + looked.size },
      { pageBytes: limits.pageBytes, leaves: (sessionId) => looked.has(sessionId) },
    );
    if (believed === undefined || !log.isIndexed) return undefined;
    const changed = believed.filter(({ row, seen }) => {
      // An empty fingerprint means that the index row is unusable here, so the transcript is read even if it is
      // unchanged.
      if (seen !== "" && checked.has(row.sessionId)) return false;
      checked.add(row.sessionId);
      return fingerprintOf(files.facts(folder.session(row.fileName)), row) !== seen;
    });
    if (changed.length === 0) {
      for (const { row, folded } of believed) redo.note(row, folded);
      return [...believed, ...[...looked.values()].filter((one) => one !== null)];
    }
    for (const { row } of changed) look(row.sessionId);
  }
}
