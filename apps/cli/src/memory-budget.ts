import { getHeapStatistics } from "node:v8";
import { ThroughlineError } from "@throughline/core";
import type { ReadOptions, ReadPayload, RecordPage, SessionRef, SessionStore } from "@throughline/core";

/** What a record takes in memory beside its line. */
const overheadBytes = 500;
/** Of the heap; the rest is for what is made of the records. */
const share = 0.35;
/** V8 counts in its limit what it keeps for new objects, which holds no records. */
const youngBytes = 192 * 1024 * 1024;

function heapBytes(): number {
  const { heap_size_limit: limit } = getHeapStatistics();
  return Math.max(limit - youngBytes, limit / 4);
}

/** Adds up what records take in memory, and refuses before the process dies of it. */
export class MemoryBudget {
  readonly #mostBytes: number = heapBytes() * share;
  readonly #ref: SessionRef;
  #bytes = 0;
  #records = 0;

  constructor(ref: SessionRef) {
    this.#ref = ref;
  }

  /** @throws {ThroughlineError} MEMORY_SHORT */
  add(records: readonly { readonly bytes: number }[]): void {
    this.#records += records.length;
    for (const { bytes } of records) this.#bytes += bytes + overheadBytes;
    if (this.#bytes <= this.#mostBytes) return;
    const mebibytes = Math.floor(this.#mostBytes / 1024 / 1024);
    const message = `${this.#records} records of ${JSON.stringify(this.#ref.key)} already fill the ${mebibytes} MiB this process may use for them, and there are more.`;
    throw new ThroughlineError("MEMORY_SHORT", message, {
      details: { ...this.#ref, records: this.#records, bytes: this.#bytes, mostBytes: this.#mostBytes },
    });
  }
}

/** The same store, for whoever keeps everything of one session that is read: ends with MEMORY_SHORT in good time. */
export function withinMemory(store: SessionStore): SessionStore {
  async function* read<Payload extends ReadPayload = "record">(
    ref: SessionRef,
    options?: ReadOptions<Payload>,
  ): AsyncGenerator<RecordPage<Payload>> {
    const budget = new MemoryBudget(ref);
    for await (const page of store.read(ref, options)) {
      budget.add(page.records);
      yield page;
    }
  }
  return new Proxy(store, {
    get(target, name) {
      if (name === "read") return read;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
}
