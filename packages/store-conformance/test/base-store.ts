import { withFacets } from "./base-facets.ts";
import type { StoreUnderTest } from "@throughline/store-conformance";
import { ThroughlineError } from "@throughline/core";
import type { PayloadCodec, SessionEvent, SessionStore } from "@throughline/core";
import type { StoreLimits, WriteOutcome } from "@throughline/core/internal";
import { sessionRefText, systemClock } from "@throughline/core/internal";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";

/** Small, so that a thousand runs at the limits take no time. */
const limits: StoreLimits = {
  recordBytes: 256 * 1024,
  batchRecords: 30,
  batchBytes: 512 * 1024,
  pageRecords: 12,
  pageBytes: 64 * 1024,
};

export interface BaseStoreOptions {
  readonly codec?: PayloadCodec;
  /** Stands before every handle that is opened. @default the handle itself */
  readonly wrap?: (handle: SessionStore) => SessionStore;
}

/** The memory store as a persistent store that several handles share, with every ability the kit knows. */
export function openBaseStore({ codec, wrap = (handle) => handle }: BaseStoreOptions = {}): StoreUnderTest {
  const data = createMemoryData();
  const events: SessionEvent[] = [];
  const opened: SessionStore[] = [];
  let aheadMs = 0;
  let fault: WriteOutcome | null = null;
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs };
  const takeFault = (): WriteOutcome | null => {
    const taken = fault;
    fault = null;
    return taken;
  };
  const openHandle = (): SessionStore => {
    const memory = createMemoryStore({
      data,
      clock,
      limits,
      onEvent: (event) => events.push(event),
      ...(codec === undefined ? {} : { codec }),
    });
    const handle = wrap(faceted(withFaults(memory, takeFault)));
    opened.push(handle);
    return handle;
  };
  const store = openHandle();
  let newest = store;
  return {
    store,
    reopen: async () => {
      await newest.close();
      newest = openHandle();
      return newest;
    },
    another: async () => openHandle(),
    files: async () => keptBytes(data),
    events: () => events,
    advanceClock: (deltaMs) => {
      aheadMs += deltaMs;
    },
    failNextAppend: (outcome) => {
      fault = outcome;
    },
    damageEntry: (ref) => {
      const session = data.sessions.get(sessionRefText(ref));
      if (session !== undefined) session.entry = "{";
    },
    // The base store has no processes: a handle of its own stands for one.
    holdElsewhere: async (agent) => {
      const begun = Promise.withResolvers<void>();
      const ending = Promise.withResolvers<void>();
      const elsewhere = createMemoryStore({ data });
      const work = (): Promise<void> => (begun.resolve(), ending.promise);
      const done = elsewhere.exclusively?.(agent, work, { timeoutMs: 5000, pollIntervalMs: 5 });
      await begun.promise;
      return { kill: async () => (ending.resolve(), done) };
    },
    dispose: async () => {
      for (const handle of opened) await handle.close();
    },
  };
}

function faceted(handle: SessionStore): SessionStore {
  return delegate(handle, withFacets(handle));
}

/** A handle whose way to the storage can fail: before the write, or after it when only the answer is lost. */
function withFaults(memory: SessionStore, takeFault: () => WriteOutcome | null): SessionStore {
  return delegate(memory, {
    capabilities: Object.freeze({ ...memory.capabilities, writers: "one-host" as const }),
    append: async (ref, drafts, options) => {
      const fault = takeFault();
      if (fault === null) return memory.append(ref, drafts, options);
      if (fault === "unknown") await memory.append(ref, drafts, options);
      throw new ThroughlineError("STORE_IO", `The storage failed on purpose, outcome ${fault}.`, { outcome: fault });
    },
  });
}

/** A store that does what another does, but for the members given. */
export function delegate(inner: SessionStore, members: Partial<SessionStore>): SessionStore {
  return {
    capabilities: inner.capabilities,
    append: (ref, drafts, options) => inner.append(ref, drafts, options),
    read: (ref, options) => inner.read(ref, options),
    load: (ref, options) => inner.load(ref, options),
    save: (ref, entry, options) => inner.save(ref, entry, options),
    list: (query) => inner.list(query),
    move: (ref, action) => inner.move(ref, action),
    remove: (ref, options) => inner.remove(ref, options),
    redact: (ref, ids, options) => inner.redact(ref, ids, options),
    ...(inner.exclusively === undefined ? {} : { exclusively: inner.exclusively.bind(inner) }),
    ...(inner.readWindow === undefined ? {} : { readWindow: inner.readWindow.bind(inner) }),
    ...(inner.search === undefined ? {} : { search: inner.search }),
    ...(inner.fork === undefined ? {} : { fork: inner.fork }),
    ...(inner.watch === undefined ? {} : { watch: inner.watch }),
    ...(inner.partials === undefined ? {} : { partials: inner.partials }),
    ...(inner.files === undefined ? {} : { files: inner.files }),
    ...(inner.vectors === undefined ? {} : { vectors: inner.vectors }),
    close: () => inner.close(),
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
    ...members,
  };
}

/** Every piece of bytes and text that is kept, wherever it lies. */
function keptBytes(value: unknown): Uint8Array[] {
  if (value instanceof Uint8Array) return [value];
  // Encoded content is base64 behind "="; a codec that encodes nothing must not hide in it.
  if (typeof value === "string") return [Buffer.from(value), Buffer.from(value.slice(1), "base64")];
  if (value instanceof Map || value instanceof Set) return [...value].flatMap(keptBytes);
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(keptBytes) : [];
}
