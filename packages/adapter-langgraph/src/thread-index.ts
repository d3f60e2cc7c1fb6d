import type { SourcedRecord } from "@throughline/core/internal";
import { isFields, throughlineKind } from "@throughline/core/internal";
import type { LogView } from "@throughline/foreign-formats/internal";
import {
  checkpointIn,
  checkpointKey,
  copyFormat,
  isTyped,
  messageIdsIn,
  writeIn,
  type StoredCheckpoint,
  type StoredWrite,
  type TypedText,
} from "./thread-records.ts";

export interface StoredMessage {
  /** Names the record whose source is this message. */
  readonly holderId: string;
  readonly text: string;
  /** Lists the records of the conversation that represent it. */
  readonly recordIds: readonly string[];
}

interface Mentions {
  /** Lists the records that are the message. */
  readonly records: string[];
  /** Lists the records beside the conversation that repeat it. */
  readonly copies: string[];
}

/** Indexes the records of a thread, so that a read of a grown log costs only the new records. */
export class ThreadIndex {
  readonly checkpoints: Map<string, StoredCheckpoint> = new Map();
  /** Holds the last stored checkpoint of the root graph, whose namespace is "". */
  lastRoot: StoredCheckpoint | null = null;
  readonly #records = new Map<string, SourcedRecord>();
  readonly #derived = new Map<string, string[]>();
  readonly #newest = new Map<string, StoredCheckpoint>();
  readonly #writes = new Map<string, Map<string, StoredWrite>>();
  readonly #byText = new Map<string, string>();
  readonly #mentions = new Map<string, Mentions>();
  #sessionId = "";
  #last: SourcedRecord | undefined;
  #count = 0;
  /** Increases when cached results may be outdated. */
  generation = 0;

  /** Adds the records that arrived since the last call. Another session or a changed log starts the index again. */
  update({ records, sessionId }: LogView): void {
    if (sessionId !== this.#sessionId || records[this.#count - 1] !== this.#last) this.#forget(sessionId);
    for (let at = this.#count; at < records.length; at++) this.#add(records[at] as SourcedRecord);
    this.#count = records.length;
    this.#last = records.at(-1);
  }

  checkpoint(ns: string, id: string | null): StoredCheckpoint | undefined {
    return id === null ? undefined : this.checkpoints.get(checkpointKey(ns, id));
  }

  newest(ns: string): StoredCheckpoint | undefined {
    return this.#newest.get(ns);
  }

  /** Returns the pending writes of a checkpoint by task id and index. */
  writes(ns: string, checkpointId: string): ReadonlyMap<string, StoredWrite> {
    return this.#writes.get(checkpointKey(ns, checkpointId)) ?? new Map<string, StoredWrite>();
  }

  record(id: string): SourcedRecord | undefined {
    return this.#records.get(id);
  }

  /** Returns the message that a record keeps; null when it was redacted. */
  message(holderId: string): StoredMessage | null {
    const stored = this.#records.get(holderId);
    if (stored === undefined || stored.isSourceCanonical || typeof stored.source !== "string") return null;
    const { record, source: text } = stored;
    const target = record.type === "context_edit" ? record["targetId"] : null;
    if (typeof target === "string") return { holderId, text, recordIds: [target] };
    const { data } = record;
    if (record["sourceFormat"] === copyFormat) {
      const of = isFields(data) && Array.isArray(data["of"]) ? (data["of"] as readonly string[]) : [];
      return { holderId, text, recordIds: of };
    }
    return { holderId, text, recordIds: [holderId, ...(this.#derived.get(holderId) ?? [])] };
  }

  /** Returns the channel value that a record keeps; null when it was redacted. */
  value(recordId: string): TypedText | null {
    const data = this.#records.get(recordId)?.record["data"];
    const value = isFields(data) ? data["value"] : null;
    return isTyped(value) ? value : null;
  }

  /** Returns a record whose source is exactly this text. */
  holderOf(text: string): string | undefined {
    return this.#byText.get(text);
  }

  mentionsOf(messageId: string): Mentions {
    return this.#mentions.get(messageId) ?? { records: [], copies: [] };
  }

  #forget(sessionId: string): void {
    for (const map of [this.checkpoints, this.#records, this.#derived, this.#newest, this.#writes]) map.clear();
    this.#byText.clear();
    this.#mentions.clear();
    this.lastRoot = null;
    this.#sessionId = sessionId;
    this.#count = 0;
    this.#last = undefined;
    this.generation += 1;
  }

  #add(stored: SourcedRecord): void {
    const { id, record } = stored;
    this.#records.set(id, stored);
    if (throughlineKind(record) === "redaction") return;
    const { derivedFrom, sourceFormat } = record;
    if (isFields(derivedFrom)) {
      const first = String(derivedFrom["id"]);
      this.#derived.set(first, [...(this.#derived.get(first) ?? []), id]);
    }
    if (sourceFormat === "langgraph" || sourceFormat === copyFormat) this.#addMessage(stored);
    this.#mention(stored);
    const checkpoint = checkpointIn(stored);
    if (checkpoint !== null) this.#addCheckpoint(checkpoint);
    const write = writeIn(stored);
    if (write !== null) this.#addWrite(write);
  }

  #addMessage({ id, source, isSourceCanonical }: SourcedRecord): void {
    if (typeof source === "string" && !isSourceCanonical) this.#byText.set(source, id);
  }

  #mention({ id, record }: SourcedRecord): void {
    const isMessage = record.type === "message" && record["sourceFormat"] === "langgraph";
    const native = isMessage ? record["native"] : null;
    const own = isFields(native) && typeof native["id"] === "string" ? [native["id"]] : [];
    for (const messageId of [...own, ...messageIdsIn(record)]) {
      const known = this.#mentions.get(messageId) ?? { records: [], copies: [] };
      this.#mentions.set(messageId, known);
      (isMessage ? known.records : known.copies).push(id);
    }
  }

  #addCheckpoint(checkpoint: StoredCheckpoint): void {
    const { ns, id } = checkpoint;
    const key = checkpointKey(ns, id);
    // Descendants may have been resolved without this checkpoint, or with its earlier version.
    if (this.checkpoints.has(key) || id <= (this.#newest.get(ns)?.id ?? "")) this.generation += 1;
    this.checkpoints.set(key, checkpoint);
    const newest = this.#newest.get(ns);
    if (newest === undefined || id >= newest.id) this.#newest.set(ns, checkpoint);
    if (ns === "") this.lastRoot = checkpoint;
  }

  #addWrite(write: StoredWrite): void {
    const key = checkpointKey(write.ns, write.checkpointId);
    const writes = this.#writes.get(key) ?? new Map<string, StoredWrite>();
    this.#writes.set(key, writes);
    const place = `${write.taskId}\n${write.idx}`;
    // LangGraph gives special channels negative indexes, and a later write replaces an earlier one there. For all other
    // channels the first write counts.
    if (write.idx < 0 || !writes.has(place)) writes.set(place, write);
  }
}
