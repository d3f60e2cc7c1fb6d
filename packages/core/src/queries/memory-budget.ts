import { builtinModule } from "../builtin-module.ts";
import { ThroughlineError } from "../throughline-error.ts";
import type { ReadOptions, SessionStore } from "../session-store.ts";
import type { ReadPayload, RecordPage } from "../stored-records.ts";
import type { SessionRef } from "../session-ref.ts";

/** A record in memory takes about this much in addition to the bytes of its line. */
const overheadBytes = 500;
/** The records may fill this share of the heap, because the results computed from them need the rest. */
const share = 0.35;
/** V8's limit includes the space of new objects, which holds no records. */
const youngBytes = 192 * 1024 * 1024;

interface HeapModule {
  getHeapStatistics(): { readonly heap_size_limit: number };
}

/** The module is loaded on use, because it costs each start of the command line 2 ms. A runtime without it has no bound. */
function heapBytes(): number {
  const v8 = builtinModule("node:v8") as HeapModule | undefined;
  const limit = v8?.getHeapStatistics().heap_size_limit ?? Number.POSITIVE_INFINITY;
  return Math.max(limit - youngBytes, limit / 4);
}

/** Adds up the memory of a session's records, and throws before the process runs out of memory. */
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

/**
 * Wraps a store for a caller that keeps every record it reads: `read` throws before the process runs out of memory.
 * @throws {ThroughlineError} MEMORY_SHORT, from `read`
 */
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
