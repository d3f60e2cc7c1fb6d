import { setImmediate as nextTurn } from "node:timers/promises";
import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { ThroughlineError, type SessionStore } from "@throughline/core";
import { monotonicMs } from "@throughline/core/internal";
import { createMetrics, type Metrics } from "./metrics.ts";

export interface ServerMetrics {
  readonly registry: Metrics;
  request(labels: { readonly route: string; readonly method: string; readonly status: number }, ms: number): void;
  streamEnded(reason: string): void;
  authFailed(reason: string): void;
  rateLimited(): void;
  /** Is true when the newest write failed because the store accepts no writes, for example with a full disk. */
  readonly isUnwritable: boolean;
  /** Wraps a store so that its operations are counted and timed. */
  counted(store: SessionStore): SessionStore;
  close(): void;
}

const seconds: readonly number[] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function createServerMetrics(streams: () => number): ServerMetrics {
  const registry = createMetrics();
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  const requests = registry.counter("throughline_http_requests_total", "Requests by route, method and status.");
  const durations = registry.histogram("throughline_http_request_duration_seconds", "Time to the answer.", seconds);
  const ended = registry.counter("throughline_sse_closed_total", "Event streams that ended, by reason.");
  const failures = registry.counter("throughline_auth_failures_total", "Requests without a valid token.");
  const limited = registry.counter("throughline_rate_limited_total", "Requests and streams above a limit.");
  const operations = new StoreOperations(registry);
  registry.gauge("throughline_sse_streams", "Event streams that are open.", streams);
  addProcessGauges(registry, delay);
  return {
    registry,
    request: ({ route, method, status }, ms) => {
      requests({ route, method, status: String(status) });
      durations({ route }, ms / 1000);
    },
    streamEnded: (reason) => ended({ reason }),
    authFailed: (reason) => failures({ reason }),
    rateLimited: () => limited(),
    get isUnwritable() {
      return operations.isUnwritable;
    },
    counted: (store) => countedStore(store, (operation, work) => operations.timed(operation, work)),
    close: () => delay.disable(),
  };
}

function addProcessGauges(registry: Metrics, delay: ReturnType<typeof monitorEventLoopDelay>): void {
  registry.gauge("nodejs_eventloop_lag_seconds", "Mean delay of the event loop.", () => {
    const mean = Number.isFinite(delay.mean) ? delay.mean / 1e9 : 0;
    delay.reset();
    return mean;
  });
  registry.gauge("process_resident_memory_bytes", "Memory of the process.", () => process.memoryUsage.rss());
  registry.gauge("nodejs_heap_size_used_bytes", "Heap in use.", () => process.memoryUsage().heapUsed);
  registry.gauge("nodejs_heap_size_total_bytes", "Heap, used or not.", () => process.memoryUsage().heapTotal);
  registry.gauge("nodejs_external_memory_bytes", "Memory of objects outside the heap.", () => {
    return process.memoryUsage().external;
  });
  registry.gauge("process_cpu_seconds_total", "CPU time of the process.", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  registry.gauge("process_start_time_seconds", "When the process began.", () => performance.timeOrigin / 1000);
}

/** Counts and times the operations of the store. */
class StoreOperations {
  isUnwritable = false;
  readonly #operations: ReturnType<Metrics["counter"]>;
  readonly #waits: ReturnType<Metrics["histogram"]>;

  constructor(registry: Metrics) {
    this.#operations = registry.counter(
      "throughline_store_operations_total",
      "Operations of the store by their outcome.",
    );
    this.#waits = registry.histogram(
      "throughline_store_operation_duration_seconds",
      "Time of store operations.",
      seconds,
    );
  }

  async timed<Result>(operation: string, work: () => Promise<Result>): Promise<Result> {
    const beganMs = monotonicMs();
    let code = "ok";
    try {
      return await work();
    } catch (error) {
      code = ThroughlineError.isInstance(error) ? error.code : "INTERNAL";
      throw error;
    } finally {
      this.#operations({ operation, code });
      if (writes.has(operation) && (code === "ok" || unwritable.has(code))) this.isUnwritable = code !== "ok";
      this.#waits({ operation }, (monotonicMs() - beganMs) / 1000);
    }
  }
}

const writes: ReadonlySet<string> = new Set(["append", "save", "move", "remove", "redact"]);
const unwritable: ReadonlySet<string> = new Set(["STORE_FULL", "STORE_IO", "STORE_READ_ONLY"]);

type Timed = <Result>(operation: string, work: () => Promise<Result>) => Promise<Result>;

/** Reads are counted per page, because a read is a stream of pages. */
function countedStore(store: SessionStore, timed: Timed): SessionStore {
  const { readWindow } = store;
  return {
    capabilities: store.capabilities,
    ...(store.search === undefined ? {} : { search: store.search }),
    ...(store.watch === undefined ? {} : { watch: store.watch }),
    ...(store.fork === undefined ? {} : { fork: store.fork }),
    ...(store.partials === undefined ? {} : { partials: store.partials }),
    ...(store.files === undefined ? {} : { files: store.files }),
    ...(store.vectors === undefined ? {} : { vectors: store.vectors }),
    ...(store.maintenance === undefined ? {} : { maintenance: store.maintenance }),
    ...(readWindow === undefined
      ? {}
      : { readWindow: (ref, options) => timed("readWindow", () => readWindow.call(store, ref, options)) }),
    append: (ref, drafts, options) => timed("append", () => store.append(ref, drafts, options)),
    read: (ref, options) => countedPages(store.read(ref, options), timed),
    load: (ref, options) => timed("load", () => store.load(ref, options)),
    save: (ref, entry, options) => timed("save", () => store.save(ref, entry, options)),
    list: (query) => timed("list", () => store.list(query)),
    move: (ref, action) => timed("move", () => store.move(ref, action)),
    remove: (ref, options) => timed("remove", () => store.remove(ref, options)),
    redact: (ref, ids, options) => timed("redact", () => store.redact(ref, ids, options)),
    close: () => store.close(),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

/**
 * Yields after each page, because a store in this process may return all pages of a long session without yielding to
 * the event loop.
 */
async function* countedPages<Page>(pages: AsyncIterable<Page>, timed: Timed): AsyncGenerator<Page, void, void> {
  const iterator = pages[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await timed("read", () => Promise.resolve(iterator.next()));
      if (next.done === true) return;
      yield next.value;
      await nextTurn();
    }
  } finally {
    await iterator.return?.();
  }
}
