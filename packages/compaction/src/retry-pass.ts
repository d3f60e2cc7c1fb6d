import {
  appendOnce,
  type AppendResult,
  hasErrorCode,
  type RecordDraft,
  type SessionRef,
  type SessionState,
  type StoredRecord,
  ThroughlineError,
} from "@throughline/core";
import {
  loadExisting,
  patchEntry,
  proseOf,
  runInSlices,
  type SystemPorts,
  tellListener,
  throughlineDraft,
  updateEntry,
} from "@throughline/core/internal";
import type { CompactionDetails, ExtractedDetails, SummaryUsage } from "./compaction-details.ts";
import type { TokenMeasure } from "./compaction-work.ts";
import { stepFrom } from "./compaction-steps.ts";
import { extractDetailsInSlices } from "./extract-details.ts";
import { writeProse, type WrittenProse } from "./retry-prose.ts";
import { newRetry, readRetries, retryPatch, type PendingRetry } from "./retry-entry.ts";
import { afterFailure, afterPause, retryStateAt, retrySteps, type RetryState } from "./retry-steps.ts";
import type { RetryOutcome, SummaryRetryOptions } from "./retry-options.ts";
import {
  mayRepeatRedacted,
  neededFromSeq,
  newestBoundaryId,
  removedMessages,
  replacedOutdatedIds,
  retryReason,
  summaryChain,
  type ChainedSummary,
} from "./summary-chain.ts";
import { summaryText } from "./summary-text.ts";

export class RetryPass {
  private readonly options: SummaryRetryOptions & SystemPorts & { readonly stopgap: boolean };
  private readonly ref: SessionRef;
  private readonly signal: AbortSignal | null;
  /**
   * Holds the id of the session at the start of the pass. A reset puts another session under the key, which this pass
   * must not change.
   */
  private sessionId: string | null = null;
  private measure: TokenMeasure;

  constructor(options: SummaryRetryOptions & SystemPorts, ref: SessionRef, signal: AbortSignal | null) {
    this.options = { ...options, stopgap: options.stopgap ?? false };
    this.ref = ref;
    this.measure = options.measure;
    this.signal = signal;
  }

  async run(scan: boolean): Promise<readonly RetryOutcome[]> {
    const outcomes: RetryOutcome[] = [];
    const done = new Set<string>();
    // An improvement may make the following summary due, so the list is read again each time. Each id is tried once.
    for (;;) {
      const state = await loadExisting(this.options.store, this.ref);
      this.sessionId ??= state.sessionId;
      this.measure = this.options.measureFor?.(state.entry) ?? this.options.measure;
      if (state.sessionId !== this.sessionId) return outcomes;
      const known = readRetries(state.entry);
      const fromSeq = scan ? 1 : Math.min(...Object.values(known).map((retry) => retry.fromSeq));
      if (!Number.isFinite(fromSeq)) return outcomes;
      const records = await this.read(fromSeq);
      if (scan && done.size === 0) await this.clearReplaced(records);
      const pending = this.pending(records, state, known, scan).find(([id]) => !done.has(id));
      if (pending === undefined) return outcomes;
      const [id, retry] = pending;
      done.add(id);
      const isNewest = newestBoundaryId(records, state.head.headId) === id;
      outcomes.push(await this.retryOne(id, retry, { records, isNewest }));
    }
  }

  private async read(fromSeq: number): Promise<readonly StoredRecord[]> {
    const records: StoredRecord[] = [];
    const signal = this.signal === null ? {} : { signal: this.signal };
    for await (const page of this.options.store.read(this.ref, { afterSeq: fromSeq - 1, ...signal })) {
      records.push(...page.records);
    }
    return records;
  }

  /** A process that ended between a better summary and the redaction of the old one left the old text behind. */
  private async clearReplaced(records: readonly StoredRecord[]): Promise<void> {
    const left = replacedOutdatedIds(records);
    if (left.length > 0) await this.options.store.redact(this.ref, left, { reason: redactedSummary });
  }

  /** Returns the oldest summaries first, because later summaries continue the improved ones. */
  private pending(
    records: readonly StoredRecord[],
    state: SessionState,
    known: Readonly<Record<string, PendingRetry>>,
    scan: boolean,
  ): readonly (readonly [string, PendingRetry])[] {
    const newestId = newestBoundaryId(records, state.head.headId);
    const found = summaryChain(records).flatMap((summary): readonly (readonly [string, PendingRetry])[] => {
      const { id } = summary.stored;
      const reason = retryReason(summary, records);
      // The newest summary passes an earlier improvement on to the model. Summaries between them are not shown, so they
      // stay.
      const isWanted = this.options.stopgap
        ? reason === "redacted"
        : reason === null || reason === "better-before"
          ? id === newestId && (reason !== null || mayRepeatRedacted(summary, records))
          : true;
      // A range that starts before the first record in memory could only be rewritten in part.
      const isWhole = scan || summary.details.summarizedFromSeq >= (records[0]?.seq ?? 1);
      const isFound = isWhole && (scan || reason !== "poor");
      const retry = known[id] ?? (isFound ? newRetry(neededFromSeq(summary, records)) : null);
      return isWanted && retry !== null ? [[id, retry]] : [];
    });
    if (this.options.stopgap) return found;
    const ids = new Set(found.map(([id]) => id));
    return [...found, ...Object.entries(known).filter(([id]) => !ids.has(id))];
  }

  private async retryOne(
    id: string,
    retry: PendingRetry,
    { records, isNewest }: { readonly records: readonly StoredRecord[]; readonly isNewest: boolean },
  ): Promise<RetryOutcome> {
    const nowMs = this.options.clock.nowMs();
    const summary = summaryChain(records).find(({ stored }) => stored.id === id);
    if (summary === undefined || retryReason(summary, records) === null) {
      if (summary !== undefined && isNewest && mayRepeatRedacted(summary, records)) {
        const moved = await this.replaceRecord(summary, records);
        return moved ?? { kind: "waiting", summaryId: id, nextAtMs: nowMs };
      }
      await this.keep(id, null);
      return { kind: "settled", summaryId: id };
    }
    let state: RetryState = this.options.stopgap ? "due" : retryStateAt(retry, nowMs, this.options);
    if (state === "given-up") return { kind: "given-up", summaryId: id };
    if (state === "waiting") return { kind: "waiting", summaryId: id, nextAtMs: retry.nextAtMs ?? nowMs };
    state = stepFrom(retrySteps, state, "begun");
    if (this.options.stopgap)
      tellListener(this.options.onEvent, { name: "summary.withheld", ref: this.ref, summaryId: id });
    const { ref, measure, signal } = this;
    const { reply, pausedMs } = await writeProse({ ...this.options, ref, measure, signal, summary, records });
    if (this.signal?.aborted === true) {
      throw new ThroughlineError("ABORTED", "The retry was aborted.", { cause: this.signal.reason });
    }
    if (reply === null) {
      const isLost = this.options.stopgap || (await this.standing(summary)) === null;
      if (isLost) return { kind: "settled", summaryId: id };
      return pausedMs === null ? this.failed(id, retry, state) : this.paused(id, retry, state, pausedMs);
    }
    stepFrom(retrySteps, state, "passed");
    const written = await this.write(summary, reply, records);
    if (written === null) return { kind: "settled", summaryId: id };
    const { as, appended } = written;
    const name = this.options.stopgap ? "summary.replaced" : "retry.improved";
    const { source: provider, usage } = reply;
    tellListener(this.options.onEvent, { name, ref: this.ref, summaryId: id, as, provider, usage });
    return { kind: "improved", summaryId: id, as, appended };
  }

  /**
   * A note holds the better text. It becomes a compaction, so that the record with the old text can be redacted. No
   * model is asked.
   */
  private async replaceRecord(summary: ChainedSummary, records: readonly StoredRecord[]): Promise<RetryOutcome | null> {
    const { text, details } = await this.whole(summary, proseOf(summary.summary), records);
    const { provider, usage = null } = summary.details;
    const better: BetterSummary = { text, details, provider, usage, isRedacted: true };
    const appended = await this.whileItStands(summary, (now) => this.writeCompaction(summary, better, now));
    if (appended === null) return null;
    return { kind: "improved", summaryId: summary.stored.id, as: "compaction", appended };
  }

  private async failed(id: string, retry: PendingRetry, state: RetryState): Promise<RetryOutcome> {
    const after = afterFailure(retry, this.options.clock.nowMs(), this.options);
    stepFrom(retrySteps, state, after.nextAtMs === null ? "exhausted" : "failed");
    await this.keep(id, after);
    const { attempts, nextAtMs } = after;
    tellListener(this.options.onEvent, { name: "retry.failed", ref: this.ref, summaryId: id, attempts, nextAtMs });
    return { kind: "failed", summaryId: id, attempts, nextAtMs };
  }

  private async paused(id: string, retry: PendingRetry, state: RetryState, pausedMs: number): Promise<RetryOutcome> {
    const nowMs = this.options.clock.nowMs();
    const after = afterPause(retry, nowMs, pausedMs, this.options);
    stepFrom(retrySteps, state, "paused");
    await this.keep(id, after);
    return { kind: "waiting", summaryId: id, nextAtMs: after.nextAtMs ?? nowMs };
  }

  private async keep(id: string, retry: PendingRetry | null): Promise<void> {
    await updateEntry(this.options.store, this.ref, (entry) => {
      if (entry.sessionId !== this.sessionId) return entry;
      const patch = retryPatch(entry, id, retry);
      const { summaryRetries: _before, ...rest } = entry;
      const { summaryRetries } = patch;
      return { ...rest, ...(summaryRetries === undefined ? {} : { summaryRetries }) } as typeof entry;
    });
  }

  /** Extracted details stay unchanged, unless a redaction reached their range. */
  private async whole(
    summary: ChainedSummary,
    prose: string,
    records: readonly StoredRecord[],
  ): Promise<{ readonly text: string; readonly details: ExtractedDetails }> {
    const { details } = summary;
    if (!mayRepeatRedacted(summary, records)) {
      return { text: prose + summary.summary.slice(proseOf(summary.summary).length), details: ownDetails(details) };
    }
    const extracted = await extractDetailsInSlices(await runInSlices(removedMessages(summary, records)));
    const { countText } = this.measure;
    const text = summaryText({ prose, details: extracted, maxDetailTokens: 350, countText });
    return { text, details: { ...ownDetails(details), ...extracted } };
  }

  /** Returns null when another process improved the summary meanwhile, or when the key holds another session. */
  private async standing(summary: ChainedSummary): Promise<Omit<Standing, "idempotencyKey"> | null> {
    const { stored, writtenSeq } = summary;
    const state = await loadExisting(this.options.store, this.ref);
    if (state.sessionId !== this.sessionId) return null;
    const records = await this.read(Math.min(stored.seq, state.head.windowSeq ?? stored.seq));
    const isSame = summaryChain(records).some((one) => one.stored.id === stored.id && one.writtenSeq === writtenSeq);
    return isSame ? { state, records } : null;
  }

  /**
   * Writes only while the text of the summary is current: this process may have slept between the read and the append.
   * Each text has one successor, so its seq is part of the idempotency key. The append checks the head as well.
   */
  private async whileItStands<Written>(
    summary: ChainedSummary,
    write: (now: Standing) => Promise<Written>,
  ): Promise<Written | null> {
    // A redacted successor makes the older text current again while its key stays used. The next key is free.
    let usedKeys = 0;
    for (let attempt = 0; attempt < mostAttempts; attempt++) {
      const now = await this.standing(summary);
      if (now === null) return null;
      const idempotencyKey = `summary:${summary.stored.seq}:${summary.writtenSeq}:${usedKeys}`;
      try {
        return await write({ ...now, idempotencyKey });
      } catch (error) {
        if (hasErrorCode(error, "IDEMPOTENCY_MISMATCH")) usedKeys++;
        else if (!hasErrorCode(error, "APPEND_CONFLICT")) throw error;
      }
    }
    throw new ThroughlineError("APPEND_CONFLICT", "Turns came between all the time.", { outcome: "not-applied" });
  }

  /** Returns null when another process was faster, or when the key holds another session. */
  private async write(
    summary: ChainedSummary,
    { prose, source: provider, usage }: WrittenProse,
    before: readonly StoredRecord[],
  ): Promise<{ readonly as: "compaction" | "note"; readonly appended: AppendResult } | null> {
    const { text, details } = await this.whole(summary, prose, before);
    const better: BetterSummary = {
      text,
      details,
      provider,
      usage,
      isRedacted: mayRepeatRedacted(summary, before),
    };
    return this.whileItStands(summary, async (now) => {
      const isNewest = newestBoundaryId(now.records, now.state.head.headId) === summary.stored.id;
      const appended = isNewest && !this.options.stopgap ? await this.writeCompaction(summary, better, now) : null;
      if (appended !== null) return { as: "compaction", appended } as const;
      return { as: "note", appended: await this.writeNote(summary, better, now, isNewest) } as const;
    });
  }

  /** Writes a compaction that replaces the newest one on the branch. Returns null when a turn is open. */
  private async writeCompaction(
    { stored }: ChainedSummary,
    { text, details, provider, usage, isRedacted }: BetterSummary,
    { state, idempotencyKey }: Standing,
  ): Promise<AppendResult | null> {
    const { store, ids } = this.options;
    const { firstKeptEntryId, tokensBefore } = stored.record;
    const improved = {
      ...details,
      source: "model",
      provider,
      ...(usage === null ? {} : { usage }),
      needsRetry: false,
      supersedes: stored.id,
    };
    const draft: RecordDraft = {
      type: "compaction",
      id: ids.next(),
      summary: text,
      firstKeptEntryId,
      tokensBefore,
      details: improved,
    };
    try {
      const appended = await appendOnce(store, this.ref, [draft], {
        idempotencyKey,
        expect: { head: state.head.headId },
        entry: { ...retryPatch(state.entry, stored.id, null), totalTokensFresh: false },
      });
      // The old text may repeat redacted content. No reader needs it any longer, so it is redacted as well.
      if (isRedacted) await store.redact(this.ref, [stored.id], { reason: redactedSummary });
      return appended;
    } catch (error) {
      if (!hasErrorCode(error, "SESSION_BUSY")) throw error;
      return null;
    }
  }

  /** Writes a note beside the branch, because a turn is open or the summary is not the newest. */
  private writeNote(
    summary: ChainedSummary,
    { text, provider, usage, isRedacted }: BetterSummary,
    { state, records, idempotencyKey }: Standing,
    isNewest: boolean,
  ): Promise<AppendResult> {
    const { id, seq } = summary.stored;
    const { stopgap } = this.options;
    let entry = retryPatch(state.entry, id, null);
    // A stopgap is shown at once, and its better summary becomes due in the same commit. A record with redacted content
    // also stays due, because it can be removed only when no turn is open.
    if (stopgap || (isNewest && isRedacted)) {
      entry = retryPatch(state.entry, id, newRetry(neededFromSeq(summary, records)));
    }
    const newestId = newestBoundaryId(records, state.head.headId);
    const newest = isNewest || stopgap ? undefined : summaryChain(records).find(({ stored }) => stored.id === newestId);
    if (newest !== undefined) {
      // The newest summary was built on the poorer text. It becomes due in the same commit, so that no crash forgets
      // it.
      const due = newRetry(Math.min(neededFromSeq(newest, records), seq));
      entry = retryPatch(patchEntry(state.entry, entry), newest.stored.id, due);
    }
    const note = {
      kind: "summary-superseded",
      summaryId: id,
      summary: text,
      provider,
      ...(usage === null ? {} : { usage }),
      ...(stopgap ? { needsRetry: true } : {}),
    };
    const options = { idempotencyKey, entry, expect: { head: state.head.headId } };
    const { store, ids } = this.options;
    // Another process may write an equal note under the same key. The id makes the two notes differ.
    return appendOnce(store, this.ref, [{ ...throughlineDraft("note", note), id: ids.next() }], options);
  }
}

interface Standing {
  readonly state: SessionState;
  readonly records: readonly StoredRecord[];
  readonly idempotencyKey: string;
}

interface BetterSummary {
  readonly text: string;
  readonly details: ExtractedDetails;
  /** Is null when no record names the writer. */
  readonly provider: string | null;
  readonly usage: SummaryUsage | null;
  readonly isRedacted: boolean;
}

/** The record of the poorer text states the usage of that text, so it must not count twice. */
function ownDetails(details: CompactionDetails): Omit<CompactionDetails, "usage"> {
  const { usage: _, ...rest } = details;
  return rest;
}

/** Limits the attempts, because turns may move the head between the read and the append. */
const mostAttempts = 64;

const redactedSummary = "a summary of redacted records";
