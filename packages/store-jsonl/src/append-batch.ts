import { type AppendedRecord, monotonicMs, storedRecord } from "@throughline/core/internal";
import {
  type AppendResult,
  hasErrorCode,
  type SessionEvent,
  type SessionRef,
  type ThroughlineError,
} from "@throughline/core";
import type { AppendPlan, AppendRequest } from "@throughline/store-kit/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { inFile, planOn, stageAppend, writeEntry, type StagedAppend } from "./append-records.ts";
import type { DerivedFiles } from "./derived-files.ts";
import { afterCommit, fileError } from "./file-work.ts";
import type { OpenTranscript } from "./open-transcript.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import type { EncodedLine } from "./stored-line.ts";
import {
  type ChangeContext,
  isNotReady,
  type LinePauses,
  locateSession,
  type LockWants,
  type NotReady,
  openToWrite,
} from "./under-locks.ts";
import type { WaitingLine } from "./waiting-line.ts";

/**
 * Limits the text of one write, in characters, because other processes wait for the lock meanwhile. A single append may
 * be longer.
 */
const maxStagedLength = 1024 * 1024;

/**
 * Holds the result of a written append. The append is acknowledged when `flushed` resolves, or at once when it is null.
 */
export interface WrittenAppend {
  readonly result: AppendResult;
  readonly events: readonly SessionEvent[];
  readonly flushed: Promise<unknown> | null;
}

export interface WaitingAppend {
  readonly request: AppendRequest;
  /** Lists the stored files that its records refer to. */
  readonly fileIds: readonly string[];
  readonly isForDisk: boolean;
  /** Is true when all records must be searched for an id or a key. A new key is in none of them. */
  readonly needsWhole: boolean;
  /** This is a time of `monotonicMs`, because the store's clock may be simulated. */
  readonly sinceMs: number;
  /** Counts the appends of a queue, to tell which of them arrived before a failure. */
  readonly nth: number;
  /**
   * Is true after a batch write failed. The append is then tried alone, because another one may not fit on the disk.
   */
  isAlone: boolean;
  resolve(written: WrittenAppend): void;
  reject(error: unknown): void;
}

interface Decided {
  readonly waiting: WaitingAppend;
  readonly plan: AppendPlan;
  readonly staged: StagedAppend | null;
}

export interface AppendBatchOptions extends ChangeContext {
  readonly ref: SessionRef;
  readonly waiting: WaitingLine<WaitingAppend>;
  readonly derived: Pick<DerivedFiles, "announce">;
  /** Aborts when every append of the queue was aborted, because then no caller needs the lock. */
  readonly signal: AbortSignal | undefined;
}

const written = {};

/**
 * Writes the waiting appends of one session while its locks are held. Each append is planned on the result of those
 * before it.
 */
export class AppendBatch implements LockWants<SessionRow> {
  readonly isWhole: boolean;
  readonly signal: AbortSignal | undefined;
  readonly sinceMs: number;
  readonly pauses: LinePauses = { halfBytes: null, count: 0 };
  readonly scope: AppendBatchOptions;
  readonly #context: StoreContext;
  readonly #agent: AgentSessionFiles;
  readonly #waiting: WaitingLine<WaitingAppend>;
  readonly #first: WaitingAppend;
  /** Is true when the first append has no records; then the batch is only that append. */
  readonly #isEntryOnly: boolean;
  readonly #isForDisk: boolean;

  constructor(options: AppendBatchOptions, first: WaitingAppend) {
    this.scope = options;
    this.#context = options.context;
    this.#agent = options.agent;
    this.#waiting = options.waiting;
    this.#first = first;
    this.#isEntryOnly = first.request.prepared.length === 0;
    let [isWhole, isForDisk] = [false, false];
    for (const one of options.waiting) {
      isWhole ||= one.needsWhole;
      isForDisk ||= one.isForDisk;
    }
    this.isWhole = isWhole;
    this.#isForDisk = isForDisk;
    this.signal = options.signal;
    this.sinceMs = first.sinceMs;
  }

  /** Looks the key up again: a different session may have it now, and the appends go to that session. */
  find(): Promise<SessionRow> | SessionRow {
    const known = this.#agent.peek(this.scope.ref);
    return known === null ? this.#lookUp() : this.#prepare(known);
  }

  async #lookUp(): Promise<SessionRow> {
    return this.#prepare(await locateSession(this.#agent, this.scope.ref, false));
  }

  #prepare(row: SessionRow): Promise<SessionRow> | SessionRow {
    if (!this.#isEntryOnly) this.scope.derived.announce(this.#agent, row.sessionId);
    const reading = this.#agent.prepare(row, this.isWhole);
    return reading === null ? row : reading.then(() => row);
  }

  needsEntries({ sessionId }: SessionRow): boolean {
    return this.#isEntryOnly || (this.#isForDisk && this.#agent.log.isDoubtful(sessionId));
  }

  /**
   * Writes the waiting appends in one write, under the session's locks. Each append is resolved or rejected on its own.
   */
  readonly write = (row: SessionRow): object | NotReady => {
    const first = openToWrite(this.scope, row, this);
    if (isNotReady(first)) return first;
    if (this.#isEntryOnly) {
      // The append may have been aborted during the wait. The next one may have records, and needs other locks.
      if (this.#waiting.first === this.#first) this.#writeEntry(first);
      return written;
    }
    const decided: Decided[] = [];
    const held = this.#stageAll(first, decided);
    if (held === null) return written;
    const { file, path } = held;
    let isInPlace: boolean;
    try {
      isInPlace = file.commit(path);
    } catch (error) {
      this.#agent.unlearn(held);
      this.#takeBack(fileError(error, path), decided);
      return written;
    }
    this.#settle(held, decided, isInPlace);
    return written;
  };

  #writeEntry(held: OpenTranscript): void {
    const waiting = this.#waiting.take();
    if (waiting === undefined) return;
    const { request, resolve, reject } = waiting;
    const { log } = this.#agent;
    try {
      // Records whose flush failed must be flushed first, because a durable entry would refer to them.
      if (waiting.isForDisk) held.file.settleDoubt();
      const nowMs = this.#context.clock.nowMs();
      const plan = planOn(held, log.image.keyed, request, nowMs);
      if (!plan.result.replayed) writeEntry(this.#agent, held, request, plan, nowMs);
      if (plan.result.replayed && waiting.isForDisk) afterCommit(held.path, () => log.settle());
      const flushed = waiting.isForDisk ? log.flushed() : null;
      resolve({ result: plan.result, events: plan.events, flushed });
    } catch (error) {
      reject(error);
    }
  }

  /** Plans and stages the appends of one write. Null means that nothing was written and the batch must start again. */
  #stageAll(first: OpenTranscript, decided: Decided[]): OpenTranscript | null {
    let held = first;
    for (let next = this.#take(held, decided); next !== null; next = this.#take(held, decided)) {
      const { request, reject } = next;
      try {
        const nowMs = this.#context.clock.nowMs();
        const plan = planOn(held, this.#agent.log.image.keyed, request, nowMs);
        this.#agent.stored.assertReferred(held.row.sessionId, next.fileIds);
        const staged = plan.result.replayed
          ? standAgain(held, request, plan.result.records[0]?.seq)
          : stageAppend(this.#context, held, { request, plan, nowMs }, this.#agent.folder);
        decided.push({ waiting: next, plan, staged });
        if (staged !== null) held = this.#agent.withStaged(held);
      } catch (error) {
        // Another program is in the middle of a line. The append is tried again until the lock timeout is over.
        if (hasErrorCode(error, "STORE_LOCKED") && !isOverdue(next, this.#context)) this.#waiting.putBack([next]);
        else reject(error);
        // The image is gone, so the file was replaced or may have been.
        if (held.file.current === null) {
          this.#waiting.putBack(decided.map(({ waiting }) => waiting));
          return null;
        }
      }
    }
    return held;
  }

  /**
   * Removes the next append from the queue if it can join this write. Otherwise it returns null, and the append stays
   * queued.
   */
  #take({ file, row }: OpenTranscript, decided: readonly Decided[]): WaitingAppend | null {
    const next = this.#waiting.first;
    const { log } = this.#agent;
    if (next === undefined || next.request.prepared.length === 0) return null;
    if (next.needsWhole && !this.isWhole) return null;
    // The session's log line must be on the disk first, and that needs the lock of the entries log.
    if (next.isForDisk && log.isDoubtful(row.sessionId)) return null;
    // A write was already done for the earlier append. A failure of this append's write must not be reported for that
    // one.
    if (decided.at(-1)?.staged?.isWritten === true) return null;
    if (decided.length > 0 && (next.isAlone || decided[0]?.waiting.isAlone === true)) return null;
    return file.stagedLength < maxStagedLength ? (this.#waiting.take() ?? null) : null;
  }

  #settle(held: OpenTranscript, decided: readonly Decided[], isInPlace: boolean): void {
    let last: Decided | null = null;
    let isForDisk = false;
    for (const one of decided) {
      if (one.staged !== null) last = one;
      isForDisk ||= one.waiting.isForDisk;
    }
    const flushed = isForDisk ? this.#flushed(held) : null;
    // Each waiting caller receives this rejection. Without a waiting caller it must not end the process as unhandled.
    flushed?.catch(() => undefined);
    for (const one of decided) {
      const { waiting, plan } = one;
      const { request, resolve, reject } = waiting;
      try {
        const { result, events } = isInPlace ? plan : this.#planInFile(held, one, one === last);
        const answer = request.options.return === undefined ? result : withLines(result, one);
        resolve({ result: answer, events, flushed: waiting.isForDisk ? flushed : null });
      } catch (error) {
        reject(error);
      }
    }
  }

  /**
   * Plans the append by the file. A replayed append may repeat one of this batch, whose seq may have shifted as well.
   */
  #planInFile(
    held: OpenTranscript,
    { waiting, staged }: Decided,
    isLast: boolean,
  ): Pick<AppendPlan, "result" | "events"> {
    if (staged !== null) return inFile(held, staged, isLast);
    return planOn(
      this.#agent.withStaged(held),
      this.#agent.log.image.keyed,
      waiting.request,
      this.#context.clock.nowMs(),
    );
  }

  /** Resolves when the records and the log lines that they depend on are on the disk. */
  #flushed({ file, row }: OpenTranscript): Promise<unknown> {
    const { log } = this.#agent;
    const records = file.flushed();
    return log.isOnDisk(row.sessionId) ? records : Promise.all([records, log.flushed()]);
  }

  /**
   * Handles a failed write. One append of several may be too large for the disk, so each is tried alone, if nothing was
   * written.
   */
  #takeBack(error: ThroughlineError, decided: readonly Decided[]): void {
    const waiting = decided.map((one) => one.waiting);
    if (waiting.length === 1 || error.outcome !== "not-applied") for (const { reject } of waiting) reject(error);
    else this.#waiting.putBack(waiting.map((one) => Object.assign(one, { isAlone: true })));
  }
}

/** Flushes the lines of a replayed append again, because the earlier call may have failed before its flush. */
function standAgain(
  { file, path, owner }: OpenTranscript,
  { durability }: AppendRequest,
  seq: number = Infinity,
): null {
  if (durability === "disk") afterCommit(path, () => file.settle(owner, seq));
  return null;
}

export function isOverdue({ sinceMs }: WaitingAppend, { locks }: StoreContext): boolean {
  return monotonicMs() - sinceMs > locks.timeoutMs;
}

/** Adds the records to the result, as they were written. A replay has no staged lines to take them from. */
function withLines(result: AppendResult, { plan, staged }: Decided): AppendResult {
  if (staged === null) return result;
  const stored = plan.linked.map((item, index) => {
    const place = result.records[index] as AppendedRecord;
    return storedRecord(item, place, (staged.lines[index] as EncodedLine).stored);
  });
  return { ...result, stored };
}
