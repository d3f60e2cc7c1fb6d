import type { PartialJson } from "../../json.ts";
import type { StreamEvent } from "./event-reader.ts";

/** The text of a reply that is being written. Its record replaces it. */
export interface PartialReply extends PartialJson {
  /** Is the record that holds the whole reply; null until it is there. */
  readonly untilSeq: number | null;
}

interface RecordEvent {
  readonly seq: number;
  readonly tsMs: number | null;
  readonly storedAtMs: number | null;
  readonly record: { readonly type?: unknown; readonly message?: { readonly role?: unknown } };
}

/** Keeps the reply that is being written, by the events of a stream. */
export class PartialKeeper {
  reply: PartialReply | null = null;
  #lastReplyMs = 0;

  /** Returns whether the reply changed. */
  take({ name, data }: StreamEvent): boolean {
    const before = this.reply;
    if (name === "hello") this.reply = null;
    if (name === "partial") this.#takeText(JSON.parse(data) as PartialJson);
    if (name === "record") this.#takeRecord(JSON.parse(data) as RecordEvent);
    if (name === "state" && (JSON.parse(data) as { readonly turn: unknown }).turn === null)
      if (this.reply?.untilSeq === null) this.reply = null;
    return this.reply !== before;
  }

  #takeText(partial: PartialJson): void {
    // The text of a reply may be on its way when the record of the reply is stored.
    if (partial.updatedMs > this.#lastReplyMs && partial.text !== "") this.reply = { ...partial, untilSeq: null };
  }

  #takeRecord({ seq, tsMs, storedAtMs, record }: RecordEvent): void {
    if (record.type !== "message" || record.message?.role !== "assistant") return;
    this.#lastReplyMs = Math.max(this.#lastReplyMs, tsMs ?? 0, storedAtMs ?? 0);
    if (this.reply !== null && this.reply.untilSeq === null) this.reply = { ...this.reply, untilSeq: seq };
  }
}
