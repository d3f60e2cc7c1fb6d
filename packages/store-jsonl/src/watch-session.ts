import {
  createFinding,
  type Finding,
  type RecordPage,
  type SessionEvent,
  type SessionRef,
  type StoreLimits,
  ThroughlineError,
} from "@throughline/core";
import { systemClock } from "@throughline/core/node";
import { sessionNotFound, watchBounds } from "@throughline/core/store";
import type { AgentSessionFiles } from "./agent-session-files.ts";
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
  /** Who wants to know of every append of this handle. */
  readonly followers: Set<() => void>;
  /** @throws {ThroughlineError} STORE_CLOSED */
  begin(): void;
  /** Runs work that whoever closes the store waits for. */
  track<T>(work: () => Promise<T>): Promise<T>;
}

/** So often the transcript's size and time are asked for: 2 microseconds each time, and it works on every file system. */
const pollMs = 25;

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
  const { agent, limits, followers } = scope;
  const { pageRecords, pageBytes } = limits;
  let row = await scope.track(() => agent.locate(ref));
  scope.begin();
  if (row === null) throw sessionNotFound(ref);
  const { sessionId } = row;
  let wake: () => void = () => undefined;
  const notify = (): void => wake();
  followers.add(notify);
  signal.addEventListener("abort", notify, { once: true });
  let cursor: PageCursor | null = null;
  const given = new DeliveredRecords();
  try {
    const first = agent.hold(row);
    if (first !== null) given.begin(first, afterSeq);
    for (let seq = afterSeq + 1; !signal.aborted;) {
      scope.begin();
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
      const woken = new Promise<void>((resolve) => (wake = resolve));
      await Promise.race([woken, pause(signal)]);
    }
  } finally {
    followers.delete(notify);
    signal.removeEventListener("abort", notify);
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

async function pause(signal: AbortSignal): Promise<void> {
  try {
    await systemClock.sleep(pollMs, signal);
  } catch (error) {
    // The signal is how a watch ends.
    if (!ThroughlineError.isInstance(error) || error.code !== "ABORTED") throw error;
  }
}
