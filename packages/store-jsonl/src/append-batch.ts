import { type AppendedRecord, monotonicMs, storedRecord } from "@throughline/core/internal";
import {
  type AppendResult,
  hasErrorCode,
  type SessionEvent,
  type SessionRef,
  type ThroughlineError,
} from "@throughline/core";
import { type AppendPlan, type AppendRequest } from "@throughline/store-kit/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { inFile, planHeld, stageAppend, writeEntry, type StagedAppend } from "./append-records.ts";
import { afterCommit, fileError } from "./file-work.ts";
import type { HeldSession } from "./held-session.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import type { EncodedLine } from "./stored-line.ts";
import { isNotReady, locateSession, type LockWants, type Look, type NotReady } from "./under-locks.ts";
import type { WaitingLine } from "./waiting-line.ts";

/** Others wait for the lock meanwhile: so much text is written at once at most, or one append. */
const maxStagedLength = 1024 * 1024;

/** What was written for an append. It is acknowledged when `flushed` resolves, or at once where there is nothing to wait for. */
export interface WrittenAppend {
  readonly result: AppendResult;
  /** To be announced once it is acknowledged. */
  readonly events: readonly SessionEvent[];
  readonly flushed: Promise<unknown> | null;
}

/** An append that waits to be written. */
export interface WaitingAppend {
  readonly request: AppendRequest;
  /** By `monotonicMs`. */
  readonly sinceMs: number;
  /** Grows from one to the next. */
  readonly nth: number;
  /** Written by itself, after a write of several failed: one of them may be what does not fit. */
  isAlone: boolean;
  resolve(written: WrittenAppend): void;
  reject(error: unknown): void;
}

/** An append that was decided. */
interface Decided {
  readonly waiting: WaitingAppend;
  readonly plan: AppendPlan;
  /** Null when it is written already: it was made again with its key. */
  readonly staged: StagedAppend | null;
}

export interface AppendBatchOptions {
  readonly context: StoreContext;
  readonly agent: AgentSessionFiles;
  readonly ref: SessionRef;
  readonly waiting: WaitingLine<WaitingAppend>;
  /** Records of a session are about to be written. */
  readonly announce: (agent: AgentSessionFiles, sessionId: string) => void;
  /** Aborted once nobody waits any more. */
  readonly signal: AbortSignal | undefined;
}

const written = {};

/** The appends of one session that are written in one hold of its locks: each is decided by what those before it leave. */
export class AppendBatch implements LockWants<SessionRow> {
  readonly isWhole: boolean;
  readonly signal: AbortSignal | undefined;
  readonly sinceMs: number;
  readonly #options: AppendBatchOptions;
  readonly #context: StoreContext;
  readonly #agent: AgentSessionFiles;
  readonly #waiting: WaitingLine<WaitingAppend>;
  readonly #first: WaitingAppend;
  /** Only the first append, which has no records. */
  readonly #isEntryOnly: boolean;
  /** The lock of the entries log is taken too. */
  #hasEntries = false;

  constructor(options: AppendBatchOptions, first: WaitingAppend) {
    this.#options = options;
    this.#context = options.context;
    this.#agent = options.agent;
    this.#waiting = options.waiting;
    this.#first = first;
    this.#isEntryOnly = isWithoutRecords(first);
    this.isWhole = options.waiting.some(needsWhole);
    this.signal = options.signal;
    this.sinceMs = first.sinceMs;
  }

  /** The key may have another session by now, and that is the one this will be written to. */
  find(): Promise<SessionRow> | SessionRow {
    const looking = this.#agent.foreign.takeViewIfDue();
    const known = looking === null ? this.#agent.peek(this.#options.ref) : null;
    return known === null ? this.#lookUp(looking) : this.#prepare(known);
  }

  async #lookUp(looking: Promise<void> | null): Promise<SessionRow> {
    const { ref } = this.#options;
    await looking;
    return this.#prepare(this.#agent.peek(ref) ?? (await locateSession(this.#agent, ref, false)));
  }

  #prepare(row: SessionRow): Promise<SessionRow> | SessionRow {
    if (this.#waiting.some(hasRecords)) this.#options.announce(this.#agent, row.sessionId);
    const reading = this.#agent.prepare(row, this.isWhole);
    return reading === null ? row : reading.then(() => row);
  }

  /** Asked once, after the session was found. */
  needsEntries({ sessionId }: SessionRow): boolean {
    const { log, place } = this.#agent;
    // Another program may cut the transcript a moment later: its patches are in the entries log before that.
    const paysDebts = place.isOpenclaws && this.#waiting.some(patchesEntry);
    const isDoubtful = this.#waiting.some(isForDisk) && log.isDoubtful(sessionId);
    return (this.#hasEntries = this.#isEntryOnly || paysDebts || isDoubtful);
  }

  /** Writes those that wait, in one write. Under the session's locks; what becomes of each is its own caller's. */
  readonly write = (row: SessionRow, look: Look): object | NotReady => {
    const first = look.session(row);
    if (isNotReady(first)) return first;
    if (this.#isEntryOnly) {
      // Given up while this waited: whoever comes next may have records, and other locks to take.
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

  #writeEntry(held: HeldSession): void {
    const waiting = this.#waiting.take();
    if (waiting === undefined) return;
    const { request, resolve, reject } = waiting;
    const { log } = this.#agent;
    try {
      // Records whose flush failed come first: an entry on the disk would say that they are there.
      if (isForDisk(waiting)) held.file.settleDoubt();
      const nowMs = this.#context.clock.nowMs();
      const plan = planHeld(held, log, request, nowMs);
      if (!plan.result.replayed) writeEntry(this.#agent, held, request, plan, nowMs);
      this.#agent.remember(held);
      if (plan.result.replayed && isForDisk(waiting)) afterCommit(held.path, () => log.settle());
      const flushed = isForDisk(waiting) ? log.flushed() : null;
      resolve({ result: plan.result, events: plan.events, flushed });
    } catch (error) {
      reject(error);
    }
  }

  /** Takes and stages what goes into one write. Null: nothing is written, and a new look decides all of it. */
  #stageAll(first: HeldSession, decided: Decided[]): HeldSession | null {
    const temporary = this.#agent.folder.temporary(first.row.fileName);
    let held = first;
    for (let next = this.#take(held, decided); next !== null; next = this.#take(held, decided)) {
      const { request, reject } = next;
      try {
        const nowMs = this.#context.clock.nowMs();
        const plan = planHeld(held, this.#agent.log, request, nowMs);
        const staged = plan.result.replayed
          ? standAgain(held, request, plan.result.records[0]?.seq)
          : stageAppend(this.#context, held, { request, plan, nowMs }, temporary);
        decided.push({ waiting: next, plan, staged });
        if (staged !== null) held = this.#agent.holdStaged(held);
      } catch (error) {
        // Another program is in the middle of a line: it is looked at again, for as long as this waits for a lock.
        if (hasErrorCode(error, "STORE_LOCKED") && !isOverdue(next, this.#context)) this.#waiting.putBack([next]);
        else reject(error);
        // The file is another by now, or may be.
        if (held.file.current === null) {
          this.#waiting.putBack(decided.map(({ waiting }) => waiting));
          return null;
        }
      }
    }
    return held;
  }

  /** The next append that goes into the same write; null when there is none. */
  #take({ file, row }: HeldSession, decided: readonly Decided[]): WaitingAppend | null {
    const next = this.#waiting.first;
    const { log, place } = this.#agent;
    if (next === undefined || isWithoutRecords(next)) return null;
    if (needsWhole(next) && !this.isWhole) return null;
    if (patchesEntry(next) && !this.#hasEntries && place.isOpenclaws) return null;
    // What it hangs on must be on the disk before, and that takes another lock.
    if (isForDisk(next) && log.isDoubtful(row.sessionId)) return null;
    // The failure of a write that comes after it is not its own.
    if (decided.at(-1)?.staged?.isWritten === true) return null;
    if (decided.length > 0 && (next.isAlone || decided[0]?.waiting.isAlone === true)) return null;
    return file.stagedLength < maxStagedLength ? (this.#waiting.take() ?? null) : null;
  }

  /** After the write: pays a debt, begins the flush, and answers each append. */
  #settle(held: HeldSession, decided: readonly Decided[], isInPlace: boolean): void {
    let isPaid: boolean;
    try {
      isPaid = afterCommit(held.path, () => this.#payDebt(held, decided));
    } catch (error) {
      for (const { waiting } of decided) waiting.reject(error);
      return;
    }
    const flushed = decided.some(({ waiting }) => isForDisk(waiting)) ? this.#flushed(held, isPaid) : null;
    // Whoever waits for it hears of its failure; should nobody, by another error, that is no reason to end the process.
    flushed?.catch(() => undefined);
    this.#agent.remember(held);
    const last = decided.findLast(({ staged }) => staged !== null);
    for (const one of decided) {
      const { waiting, plan } = one;
      const { request, resolve, reject } = waiting;
      try {
        const { result, events } = isInPlace ? plan : this.#planInFile(held, one, one === last);
        const answer = request.options.return === undefined ? result : withLines(result, one);
        resolve({ result: answer, events, flushed: isForDisk(waiting) ? flushed : null });
      } catch (error) {
        reject(error);
      }
    }
  }

  /** What was made again may have been written just now: its place is another, too. */
  #planInFile(held: HeldSession, { waiting, staged }: Decided, isLast: boolean): Pick<AppendPlan, "result" | "events"> {
    if (staged !== null) return inFile(held, staged, isLast);
    return planHeld(this.#agent.holdStaged(held), this.#agent.log, waiting.request, this.#context.clock.nowMs());
  }

  /** Beside OpenClaw: puts the patches of these appends into the entries log. True where its flush is to be waited for. */
  #payDebt(held: HeldSession, decided: readonly Decided[]): boolean {
    const { place, redo, log } = this.#agent;
    if (!place.isOpenclaws || !decided.some(({ waiting }) => patchesEntry(waiting))) return false;
    const isPaid = redo.pay(log, this.#agent.holdStaged(held).row);
    const isRepeated = ({ waiting, plan }: Decided): boolean =>
      plan.result.replayed && patchesEntry(waiting) && isForDisk(waiting);
    if (!decided.some(isRepeated)) return isPaid;
    // The earlier call may have written the line and died before it flushed it.
    log.settle();
    return true;
  }

  /** Resolves when the records and what they hang on are on the disk. */
  #flushed({ file, row }: HeldSession, isPaid: boolean): Promise<unknown> {
    const { log } = this.#agent;
    const records = file.flushed();
    return !isPaid && log.isOnDisk(row.sessionId) ? records : Promise.all([records, log.flushed()]);
  }

  /** A write that failed. Of several, one may be what does not fit: each is tried by itself, if nothing is left of it. */
  #takeBack(error: ThroughlineError, decided: readonly Decided[]): void {
    const waiting = decided.map((one) => one.waiting);
    if (waiting.length === 1 || error.outcome !== "not-applied") for (const { reject } of waiting) reject(error);
    else this.#waiting.putBack(waiting.map((one) => Object.assign(one, { isAlone: true })));
  }
}

/** What an earlier call has written is put where a flush reaches it: that call may have failed just there. */
function standAgain({ file, path, owner }: HeldSession, { durability }: AppendRequest, seq: number = Infinity): null {
  if (durability === "disk") afterCommit(path, () => file.settle(path, owner, seq));
  return null;
}

function isForDisk({ request }: WaitingAppend): boolean {
  return request.durability === "disk";
}

function patchesEntry({ request }: WaitingAppend): boolean {
  return request.options.entry !== undefined;
}

function isWithoutRecords({ request }: WaitingAppend): boolean {
  return request.prepared.length === 0;
}

function hasRecords(waiting: WaitingAppend): boolean {
  return !isWithoutRecords(waiting);
}

/** Whether an id or a key must be looked for among all records. A new key is in none of them. */
function needsWhole({ request: { prepared, keyed, options } }: WaitingAppend): boolean {
  return (keyed !== null && options.isNewKey !== true) || prepared.some(({ isIdGiven }) => isIdGiven);
}

/** Whether it has waited for as long as a lock is waited for. */
export function isOverdue({ sinceMs }: WaitingAppend, { locks }: StoreContext): boolean {
  return monotonicMs() - sinceMs > locks.timeoutMs;
}

/** The result with the records as they were written; without them where an earlier append is answered. */
function withLines(result: AppendResult, { plan, staged }: Decided): AppendResult {
  if (staged === null) return result;
  const stored = plan.linked.map((item, index) => {
    const place = result.records[index] as AppendedRecord;
    return storedRecord(item, place, (staged.lines[index] as EncodedLine).stored);
  });
  return { ...result, stored };
}
