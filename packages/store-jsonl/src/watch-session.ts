import { createFinding, monotonicMs, sessionNotFound } from "@throughline/core/internal";
import {
  type Finding,
  hasErrorCode,
  type RecordPage,
  type SessionEvent,
  type SessionRef,
  type StoreLimits,
} from "@throughline/core";
import { watchBounds, type Watched } from "@throughline/store-kit/internal";
import { WatchHub } from "@throughline/store-kit";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { FolderEvents } from "./folder-events.ts";
import { ageMsOf, timeGrainMs } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import type { HeldSession } from "./held-session.ts";
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
  /** Runs work that whoever closes the store waits for. */
  track<T>(work: () => Promise<T>): Promise<T>;
}

/** So often transcripts are looked at: their size and time, 2 microseconds each. It works on every file system. */
const pollMs = 25;
const idleMs = 100;
/** At one look; of more sessions each look takes the next ones. */
const mostFiles = 500;
/** The same where the kernel reports changes, and the poll finds only what it did not report. */
const mostFilesReported = 100;

/** The transcript of a session that somebody follows, as it was before it was read. */
interface Followed {
  path: string;
  facts: FileFacts | null;
  /** Its size and time do not tell all: it is looked at again whatever they are. */
  isUnsettled: boolean;
}

/** Names a session among those of all agents of a handle. */
export function watchKey({ namespace, agentId }: Pick<SessionRef, "namespace" | "agentId">, sessionId: string): string {
  return `${namespace}/${agentId}/${sessionId}`;
}

/** The poll of a handle and the folders that report changes to it. */
export interface Watches {
  readonly hub: WatchHub<Followed>;
  readonly events: FolderEvents;
}

/** One poll for all sessions that a handle follows. */
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
      // Its own read reports what is wrong with this file.
      return true;
    }
  };
  const polled = (watched: readonly Watched<Followed>[]): readonly Watched<Followed>[] => {
    // A look that an event caused polls no sooner than any other.
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
 * Follows a session, whoever writes to it. What is read is always whole appends: a line or a batch whose end is not
 * there yet is met again at the next look. Where another program cut the file, what stands behind the cut now is given.
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
    // The signal is how a watch ends.
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

/** Reads the next page; null when there is none yet. A read that failed may be repeated. */
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
      const first = agent.hold(row);
      if (first !== null) given.begin(first, afterSeq);
      hasBegun = true;
    }
    reset();
    // Before it is read: what is written meanwhile is a change.
    state.facts = files.facts(state.path);
    // By its id: the key may have another session by now. One that is purged has nothing more to tell.
    const now = agent.locateId(sessionId);
    if (now === null) throw sessionNotFound(ref);
    const held = agent.hold(now);
    const whole = (): HeldSession | null => agent.hold(now, true);
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

/** Somebody may be putting back what was cut off. */
function isPutBack({ transcript, file }: HeldSession): boolean {
  return transcript.tail === null && growingBytes(transcript, file.facts) !== null;
}

function cutFinding(path: string, { key }: SessionRef, keptSeq: number, nextSeq: number): Finding {
  const message = `Records ${keptSeq + 1} to ${nextSeq - 1} are missing or replaced. The watch continues with the records that are there now.`;
  return createFinding("RECORD_MISSING", message, { path, key });
}

/** Another change of the file in the same moment might not show. */
function isYoung(facts: FileFacts | null): boolean {
  return facts === null || ageMsOf(facts) <= timeGrainMs;
}
