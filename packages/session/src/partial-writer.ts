import {
  type Clock,
  hasErrorCode,
  type PartialReply,
  type PartialsFacet,
  type RecordDraft,
  type SessionRef,
  ThroughlineError,
} from "@throughline/core";
import type { Emit } from "./session-event.ts";
import type { RedactDraft } from "./session-options.ts";
import { textOfContent } from "./window-facts.ts";

/** Text is written this long after its first character, and never more often. */
const flushMs = 700;
/** A pause of the model writes earlier, but not before `flushMs` after the write before. */
const pauseMs = 300;
const flushCharacters = 16 * 1024;
/** A write that takes longer is reported. */
const lateMs = 1000;

interface PartialWriterOptions {
  readonly partials: PartialsFacet;
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly turnId: string;
  readonly fence: number;
  readonly clock: Clock;
  readonly redact: RedactDraft | null;
  readonly emit: Emit | null;
  /** Registers work that closing the session waits for. */
  readonly track: (work: Promise<unknown>) => void;
}

type PartialCall = Pick<PartialReply, "step" | "attempt" | "afterSeq" | "provider" | "model">;

/**
 * Keeps the text of an open reply in the store while it is shown, so that a crash loses at most one second of it. The
 * class writes nothing of a reply that is stored within 700 ms. It runs one write at a time, and the turn waits for
 * none.
 */
export class PartialWriter {
  readonly #options: PartialWriterOptions;
  #call: PartialCall | null = null;
  #text = "";
  #savedCharacters = 0;
  /** Holds the time of the first character that is not saved; null when all are. */
  #unsavedSinceMs: number | null = null;
  #lastPieceMs = 0;
  /** Holds the time of the last write, or of the first character of the reply. */
  #lastWriteMs: number | null = null;
  /** Holds the time before which a write that failed is not repeated. */
  #retryAtMs = 0;
  #hasWritten = false;
  #isOver = false;
  #isRunning = false;
  #waiting: AbortController | null = null;
  /** Runs writes and removals one after another. */
  #tail: Promise<void> = Promise.resolve();

  constructor(options: PartialWriterOptions) {
    this.#options = options;
  }

  /** Begins an attempt, whose text starts empty. */
  begin(call: PartialCall): void {
    this.#call = call;
    this.#forget();
  }

  take(text: string): void {
    if (this.#isOver || this.#call === null || text === "") return;
    const nowMs = this.#options.clock.nowMs();
    this.#text += text;
    this.#lastPieceMs = nowMs;
    this.#unsavedSinceMs ??= nowMs;
    this.#lastWriteMs ??= nowMs;
    if (!this.#isRunning) void this.#run();
    else if (this.#isFull()) this.#waiting?.abort(woken);
  }

  /** Removes the partial. Call this once the store has acknowledged the reply. */
  end(): void {
    this.#call = null;
    this.#forget();
    if (!this.#hasWritten) return;
    this.#hasWritten = false;
    const { partials, ref, fence, emit } = this.#options;
    this.#tail = this.#tail
      .then(() => partials.remove(ref, fence))
      // The reply has a greater seq, so a partial that stays is never recovered. The next turn replaces it.
      .catch((cause: unknown) => emit?.({ name: "step.failed", step: "remove-partial", cause }));
    this.#options.track(this.#tail);
  }

  /** Writes nothing more. What was written stays for the process that recovers it. */
  stop(): void {
    this.#isOver = true;
    this.#waiting?.abort(woken);
  }

  #forget(): void {
    this.#text = "";
    this.#savedCharacters = 0;
    this.#unsavedSinceMs = null;
    this.#lastWriteMs = null;
    this.#waiting?.abort(woken);
  }

  #isFull(): boolean {
    return this.#text.length - this.#savedCharacters >= flushCharacters;
  }

  #dueMs(sinceMs: number): number {
    const pauseDueMs = Math.max(this.#lastPieceMs + pauseMs, (this.#lastWriteMs ?? sinceMs) + flushMs);
    return Math.max(this.#retryAtMs, this.#isFull() ? 0 : Math.min(sinceMs + flushMs, pauseDueMs));
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    const { clock } = this.#options;
    while (this.#unsavedSinceMs !== null && !this.#isOver) {
      const dueMs = this.#dueMs(this.#unsavedSinceMs);
      if (dueMs > clock.nowMs()) {
        await this.#sleep(dueMs - clock.nowMs());
        // A piece that came meanwhile, or the end of the reply, may have moved the time.
        if (this.#unsavedSinceMs === null || this.#dueMs(this.#unsavedSinceMs) > Math.max(dueMs, clock.nowMs()))
          continue;
      }
      this.#tail = this.#tail.then(() => this.#write());
      await this.#tail;
    }
    this.#isRunning = false;
  }

  async #sleep(delayMs: number): Promise<void> {
    const waiting = new AbortController();
    this.#waiting = waiting;
    try {
      await this.#options.clock.sleep(delayMs, waiting.signal);
    } catch (error) {
      if (!waiting.signal.aborted) throw error;
    } finally {
      this.#waiting = null;
    }
  }

  async #write(): Promise<void> {
    const call = this.#call;
    const sinceMs = this.#unsavedSinceMs;
    if (call === null || sinceMs === null || this.#isOver) return;
    const { partials, ref, sessionId, turnId, fence, clock } = this.#options;
    const { length } = this.#text;
    this.#unsavedSinceMs = null;
    this.#lastWriteMs = clock.nowMs();
    this.#hasWritten = true;
    const stopAlarm = this.#alarm(sinceMs);
    try {
      const text = this.#shownText();
      const facts = { v: 1, sessionId, turnId, fence, api: null, updatedMs: clock.nowMs() } as const;
      await partials.write(ref, { ...facts, ...call, text });
      if (this.#call === call) this.#savedCharacters = length;
    } catch (cause) {
      this.#failed(call, sinceMs, cause);
    } finally {
      stopAlarm();
    }
  }

  #failed(call: PartialCall, sinceMs: number, cause: unknown): void {
    const { emit, clock } = this.#options;
    if (hasErrorCode(cause, "TURN_FENCED", "SESSION_NOT_FOUND", "SESSION_ARCHIVED", "STORE_CLOSED")) return this.stop();
    const mayPass = ThroughlineError.isInstance(cause) && cause.retryable;
    this.#retryAtMs = clock.nowMs() + flushMs;
    if (!mayPass) this.stop();
    else if (this.#call === call) this.#unsavedSinceMs = sinceMs;
    if (!mayPass || clock.nowMs() - sinceMs >= lateMs) emit?.({ name: "partial.delayed", sinceMs, cause });
  }

  /** Reports a write that takes too long. */
  #alarm(sinceMs: number): () => void {
    const { clock, emit } = this.#options;
    const stopping = new AbortController();
    void clock.sleep(lateMs, stopping.signal).then(
      () => {
        if (!stopping.signal.aborted) emit?.({ name: "partial.delayed", sinceMs, cause: null });
      },
      () => {},
    );
    return () => stopping.abort(woken);
  }

  /** The hook sees the whole text, because what it replaces may lie over the border of two pieces. */
  #shownText(): string {
    const { redact } = this.#options;
    if (redact === null) return wellFormed(this.#text);
    const content = [{ type: "text", text: this.#text }];
    const draft: RecordDraft = redact({ type: "message", message: { role: "assistant", content } });
    const message = draft["message"] as { readonly content?: unknown } | null | undefined;
    return wellFormed(textOfContent(message?.content));
  }
}

/** The error is created once, because its stack trace would be a noticeable part of the cost of a short reply. */
const woken = new ThroughlineError("ABORTED", "The writer was woken.");

/** A piece may end within a character. Its first half is left for the next write. */
function wellFormed(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return (last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text).toWellFormed();
}
