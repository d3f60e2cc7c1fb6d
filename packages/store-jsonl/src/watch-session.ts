import { createFinding, monotonicMs, sessionNotFound, type StoreLimits } from "@throughline/core/internal";
import { type Finding, hasErrorCode, type RecordPage, type SessionEvent, type SessionRef } from "@throughline/core";
import { watchBounds, type Watched } from "@throughline/store-kit/internal";
import { WatchHub } from "@throughline/store-kit";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { FolderEvents } from "./folder-events.ts";
import { ageMsOf, timeGrainMs } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import type { OpenTranscript } from "./open-transcript.ts";
import { DeliveredRecords } from "./delivered-records.ts";
import { readPage, type Page, type PageCursor } from "./read-pages.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import { growingBytes } from "./transcript-findings.ts";

export interface WatchContext {
  readonly agent: AgentSessionFiles;
  emit(event: SessionEvent): void;
  readonly limits: StoreLimits;
  readonly watches: Watches;
  readonly files: Files;
  /** @throws {ThroughlineError} STORE_CLOSED */
  begin(): void;
  /** Runs work that `close` waits for. */
  track<T>(work: () => Promise<T>): Promise<T>;
}

/** Polls size and time of transcripts at this interval, at 2 microseconds each. Polling works on every file system. */
const pollMs = 25;
const idleMs = 100;
/** Limits the files of one poll; with more sessions the polls take turns. */
const mostFiles = 500;
/** Limits the poll where the kernel reports changes, because it then only finds those that were missed. */
const mostFilesReported = 100;

/**
 * Holds the path and facts of a watched transcript from before its last read, so that a write during the read counts as
 * a change.
 */
interface Followed {
  path: string;
  facts: FileFacts | null;
  /** Is true when size and time may hide a change, so the file is read again in any case. */
  isUnsettled: boolean;
}

export function watchKey({ namespace, agentId }: Pick<SessionRef, "namespace" | "agentId">, sessionId: string): string {
  return `${namespace}/${agentId}/${sessionId}`;
}

export interface Watches {
  readonly hub: WatchHub<Followed>;
  readonly events: FolderEvents;
}

export function createWatches({ files, clock }: Pick<StoreContext, "files" | "clock">): Watches {
  let next = 0;
  let polledMs = -Infinity;
  let known: { readonly watched: readonly Watched<Followed>[]; readonly byPath: Map<string, Watched<Followed>[]> } = {
    watched: [],
    byPath: new Map(),
  };
  const isChanged = ({ state }: Watched<Followed>): boolean => {
    if (state.isUnsettled) return true;
    try {
      return !isSame(files.facts(state.path), state.facts);
    } catch {
      // The following read of this file reports the error.
      return true;
    }
  };
  const polled = (watched: readonly Watched<Followed>[]): readonly Watched<Followed>[] => {
    // A check that an event caused must not shorten the poll interval.
    if (monotonicMs() - polledMs < pollMs - 1) return [];
    polledMs = monotonicMs();
    const count = Math.min(watched.length, events.isComplete ? mostFilesReported : mostFiles);
    const from = next % watched.length;
    next = from + count;
    return Array.from({ length: count }, (_, index) => watched[(from + index) % watched.length] as Watched<Followed>);
  };
  const hub = new WatchHub<Followed>({
    clock,
    pollMs,
    idleMs,
    look: (watched) => {
      if (known.watched !== watched) known = { watched, byPath: Map.groupBy(watched, ({ state }) => state.path) };
      const reported = [...events.take()].flatMap((path) => known.byPath.get(path) ?? []);
      return [...reported, ...polled(watched)].filter(isChanged);
    },
  });
  const events: FolderEvents = new FolderEvents(files, (path) => {
    if (known.byPath.has(path)) hub.lookSoon();
  });
  return { hub, events };
}

function isSame(one: FileFacts | null, other: FileFacts | null): boolean {
  if (one === null || other === null) return one === other;
  return one.identity === other.identity && one.sizeBytes === other.sizeBytes && one.modifiedNs === other.modifiedNs;
}

const toTheEnd = { beforeSeq: Infinity, left: Infinity, step: 1 } as const;

/**
 * Follows a session, whichever process writes to it. Only whole appends are returned; an incomplete line or batch is
 * read again later. If another program truncated the file, the records behind the cut are returned.
 */
export async function* watchSession(
  scope: WatchContext,
  ref: SessionRef,
  options: { readonly afterSeq: number; readonly signal: AbortSignal },
): AsyncGenerator<RecordPage> {
  const { afterSeq, signal } = watchBounds(options);
  scope.begin();
  if (signal.aborted) return;
  const { hub, events } = scope.watches;
  let bell: ReturnType<typeof hub.follow> | null = null;
  let stop = (): void => undefined;
  try {
    const row = await hub.read(async () => {
      scope.begin();
      const found = await scope.track(() => scope.agent.locate(ref));
      scope.begin();
      if (found === null) throw sessionNotFound(ref);
      return found;
    }, signal);
    const state: Followed = { path: scope.agent.folder.session(row.fileName), facts: null, isUnsettled: true };
    bell = hub.follow(watchKey(ref, row.sessionId), state, signal);
    stop = events.follow(scope.agent.folder.sessions);
    const next = pageReader(scope, { ref, row, state, afterSeq, reset: bell.reset });
    while (!signal.aborted) {
      const page = await hub.read(next, signal);
      if (page === null) await bell.ring();
      else yield page;
    }
  } catch (error) {
    // An aborted signal ends a watch without an error.
    if (!signal.aborted || !hasErrorCode(error, "ABORTED")) throw error;
  } finally {
    bell?.end();
    stop();
  }
}

interface Reading {
  readonly ref: SessionRef;
  readonly row: SessionRow;
  readonly state: Followed;
  readonly afterSeq: number;
  reset(): void;
}

/** Reads the next page; returns null when there is none yet. A failed read may be repeated. */
function pageReader(scope: WatchContext, { ref, row, state, afterSeq, reset }: Reading): () => RecordPage | null {
  const { agent, limits, files } = scope;
  const { pageRecords, pageBytes } = limits;
  const { sessionId } = row;
  const given = new DeliveredRecords();
  let cursor: PageCursor | null = null;
  let seq = afterSeq + 1;
  let hasBegun = false;
  return () => {
    scope.begin();
    if (!hasBegun) {
      const first = agent.open(row);
      if (first !== null) given.begin(first, afterSeq);
      hasBegun = true;
    }
    reset();
    // The facts are taken before the read, so that a write during the read counts as a change.
    state.facts = files.facts(state.path);
    // The session is found by its id, because its key may belong to another session now. A purged session ends the
    // watch.
    const now = agent.locateId(sessionId);
    if (now === null) throw sessionNotFound(ref);
    const held = agent.open(now);
    const whole = (): OpenTranscript | null => agent.open(now, true);
    const cutAfter = held === null ? null : given.cutAfter(held, seq, whole);
    if (cutAfter !== null) {
      const finding = cutFinding(agent.folder.session(now.fileName), ref, cutAfter, seq);
      scope.emit({ name: "finding", ref, finding });
      seq = cutAfter + 1;
      cursor = null;
    }
    const bounds = { ...toTheEnd, afterSeq: seq - 1, pageRecords, pageBytes };
    const isGrowing = held !== null && isPutBack(held);
    const page: Page<"record"> | null = isGrowing ? null : readPage(agent, now, seq, bounds, "record", cursor);
    if (page !== null) {
      given.give(page.records);
      seq = page.span.toSeq + 1;
      ({ cursor } = page);
      return { records: page.records, lastSeq: page.lastSeq };
    }
    const isElsewhere = held !== null && held.path !== state.path;
    if (isElsewhere) state.path = held.path;
    state.isUnsettled = held === null || isElsewhere || isGrowing || isYoung(state.facts);
    return null;
  };
}

/** Tests whether another program may be restoring what was cut off. */
function isPutBack({ transcript, file }: OpenTranscript): boolean {
  return transcript.tail === null && growingBytes(transcript, file.facts) !== null;
}

function cutFinding(path: string, { key }: SessionRef, keptSeq: number, nextSeq: number): Finding {
  const message = `Records ${keptSeq + 1} to ${nextSeq - 1} are missing or replaced. The watch continues with the records that are there now.`;
  return createFinding("RECORD_MISSING", message, { path, key });
}

/** Another change within the same clock tick might not show in the facts, so the file is read once more. */
function isYoung(facts: FileFacts | null): boolean {
  return facts === null || ageMsOf(facts) <= timeGrainMs;
}
