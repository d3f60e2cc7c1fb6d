import {
  createFinding,
  type Finding,
  type RecordPage,
  type SessionEvent,
  type SessionRef,
  type StoreLimits,
} from "@throughline/core";
import { sessionNotFound, watchBounds, type Watched, WatchHub } from "@throughline/core/store";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { ageMsOf, timeGrainMs } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import type { HeldSession } from "./held-session.ts";
import { DeliveredRecords } from "./delivered-records.ts";
import type { PageCursor } from "./record-page.ts";
import { readPage } from "./read-pages.ts";
import type { Page } from "./record-page.ts";
import { growingBytes } from "./transcript-findings.ts";

export interface WatchContext {
  readonly agent: AgentSessionFiles;
  emit(event: SessionEvent): void;
  readonly limits: StoreLimits;
  readonly hub: WatchHub<Followed>;
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

/** The transcript of a session that somebody follows, as it was before it was read. */
export interface Followed {
  path: string;
  facts: FileFacts | null;
  /** Its size and time do not tell all: it is looked at again whatever they are. */
  isUnsettled: boolean;
}

/** Names a session among those of all agents of a handle. */
export function watchKey({ namespace, agentId }: Pick<SessionRef, "namespace" | "agentId">, sessionId: string): string {
  return `${namespace}/${agentId}/${sessionId}`;
}

/** One poll for all sessions that a handle follows. */
export function createWatchHub(files: Files): WatchHub<Followed> {
  let next = 0;
  const isChanged = ({ state }: Watched<Followed>): boolean =>
    state.isUnsettled || !isSame(files.facts(state.path), state.facts);
  return new WatchHub<Followed>({
    pollMs,
    idleMs,
    look: (watched) => {
      const count = Math.min(watched.length, mostFiles);
      const from = next % watched.length;
      next = from + count;
      const looked = Array.from({ length: count }, (_, index) => watched[(from + index) % watched.length]);
      return looked.filter((each) => each !== undefined && isChanged(each)) as Watched<Followed>[];
    },
  });
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
  const { agent, limits, hub, files } = scope;
  const { pageRecords, pageBytes } = limits;
  let row = await scope.track(() => agent.locate(ref));
  scope.begin();
  if (row === null) throw sessionNotFound(ref);
  const { sessionId } = row;
  const state: Followed = { path: agent.folder.session(row.fileName), facts: null, isUnsettled: true };
  const bell = hub.follow(watchKey(ref, sessionId), state, signal);
  let cursor: PageCursor | null = null;
  const given = new DeliveredRecords();
  try {
    const first = agent.hold(row);
    if (first !== null) given.begin(first, afterSeq);
    for (let seq = afterSeq + 1; !signal.aborted;) {
      scope.begin();
      bell.reset();
      // Before it is read: what is written meanwhile is a change.
      state.facts = files.facts(state.path);
      // By its id: the key may have another session by now. One that is purged has nothing more to tell.
      row = agent.locateId(sessionId);
      if (row === null) throw sessionNotFound(ref);
      const now = row;
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
      const page: Page<"record"> | null = isGrowing ? null : readPage(agent, row, seq, bounds, "record", cursor);
      if (page !== null) {
        given.give(page.records);
        seq = page.span.toSeq + 1;
        ({ cursor } = page);
        yield { records: page.records, lastSeq: page.lastSeq };
        continue;
      }
      const isElsewhere = held !== null && held.path !== state.path;
      if (isElsewhere) state.path = held.path;
      state.isUnsettled = held === null || isElsewhere || isGrowing || isYoung(state.facts);
      await bell.ring();
    }
  } finally {
    bell.end();
  }
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
