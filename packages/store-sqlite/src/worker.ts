// A door of its own: whoever does not want a thread does not load what starts one.
import type { SharedRecords, ReadPayload } from "@throughline/core/internal";
import type * as core from "@throughline/core";
import {
  assertStoreOptions,
  optionKinds,
  type OptionTable,
  type StoreMethodName,
  systemClock,
} from "@throughline/core/internal";
import { createHandleLife } from "@throughline/store-kit";
import { lockedAgent } from "@throughline/store-kit/internal";
import { holdAgentLock } from "./agent-lock.ts";
import { checkedOptions, sqliteStoreTable } from "./sqlite-store-options.ts";
import { defaultDriver } from "./connection.ts";
import { createWorkerLink, type WorkerLink } from "./worker-link.ts";
import { sqliteCapabilities } from "./sqlite-store.ts";
import type { SqliteStoreOptions } from "./sqlite-store-options.ts";

/** What can be sent to another thread; clock, ids and randomness are the system's there. */
export interface SqliteWorkerStoreOptions extends Pick<
  SqliteStoreOptions,
  "path" | "create" | "defaultDurability" | "lockTimeoutMs" | "limits" | "recover" | "searchFill" | "onEvent"
> {
  /**
   * The file of the thread, for a bundle: what was made of the entry `@throughline/store-sqlite/worker-thread`, as a `file:` URL.
   * @default the file beside this module
   */
  readonly threadUrl?: string | URL;
}

const {
  path,
  create,
  defaultDurability,
  lockTimeoutMs,
  limits,
  recover,
  searchFill,
  onEvent: onEventKind,
} = sqliteStoreTable;

/** The kinds of the options of `createSqliteWorkerStore`. */
export const workerStoreTable: OptionTable<SqliteWorkerStoreOptions> = {
  path,
  create,
  defaultDurability,
  lockTimeoutMs,
  limits,
  recover,
  searchFill,
  onEvent: onEventKind,
  threadUrl: optionKinds.either(optionKinds.text, optionKinds.object),
};

/**
 * The same store in a thread of its own, for servers: commits, flushes, searches and checks do not hold the event loop.
 * A round trip costs a tenth of a millisecond, so one writer is slower and many are as fast. Drafts are copied to the
 * other thread: they are plain data, a `toJSON` of theirs is not called. Without a codec.
 * @throws {ThroughlineError} CONFIG_INVALID for an option that is not known, has another type, or is out of range
 */
export function createSqliteWorkerStore(options: SqliteWorkerStoreOptions): core.SessionStore {
  const { onEvent, threadUrl, ...sent } = checkedOptions("createSqliteWorkerStore", options, workerStoreTable);
  const life = createHandleLife(onEvent);
  const link = createWorkerLink(threadUrl, sent, (event) => life.announce(event));
  const capabilities = sqliteCapabilities({ ...sent, hasSearch: true });
  /** Checked here: what cannot be sent to another thread would fail on the way. */
  const begun = (method?: StoreMethodName, asked?: unknown): WorkerLink => {
    life.begin();
    if (method !== undefined) assertStoreOptions(method, asked);
    return link;
  };
  const close = (): Promise<void> => life.close(() => link.end());
  const facets = {
    search: {
      search: (query) => begun("search", query).stream<core.SearchHit>("search.search", [query]),
      lag: async () => begun().call<number>("search.lag", []),
      fill: (asked = {}) => begun("fill", asked).stream<number>("search.fill", [asked]),
      rebuild: async (asked = {}) => begun("rebuild", asked).call<void>("search.rebuild", [asked]),
    },
    watch: { watch: (ref, asked) => begun("watch", asked).stream<core.RecordPage>("watch.watch", [ref, asked]) },
    fork: {
      fork: async (ref, target, asked) =>
        begun("fork", asked).call<core.SessionState>("fork.fork", [ref, target, asked]),
      sharers: async (ref, seqs) => begun().call<readonly SharedRecords[]>("fork.sharers", [ref, seqs]),
    },
    partials: {
      write: async (ref, partial) => begun().call<void>("partials.write", [ref, partial]),
      read: async (ref) => begun().call<core.PartialReply | null>("partials.read", [ref]),
      remove: async (ref, fence) => begun().call<void>("partials.remove", [ref, fence]),
    },
    maintenance: {
      verify: (asked = {}) => begun("verify", asked).stream<core.Finding>("maintenance.verify", [asked]),
      repair: (asked = {}) => begun("repair", asked).stream<core.Finding>("maintenance.repair", [asked]),
      backup: async (path, asked = {}) =>
        begun("backup", asked).call<{ sizeBytes: number }>("maintenance.backup", [path, asked]),
    },
  } satisfies Partial<core.SessionStore>;
  return {
    capabilities,
    ...facets,
    append: async (ref, drafts, asked = {}) => begun("append", asked).call("append", [ref, drafts, asked]),
    read: <Payload extends ReadPayload = "record">(ref: core.SessionRef, asked?: core.ReadOptions<Payload>) =>
      link.stream<core.RecordPage<Payload>>("read", [ref, asked ?? {}], () => {
        life.begin(asked?.signal);
        assertStoreOptions("read", asked ?? {});
      }),
    load: async (ref, asked = {}) => begun("load", asked).call("load", [ref, asked]),
    save: async (ref, entry, asked) => begun("save", asked).call("save", [ref, entry, asked]),
    list: async (query = {}) => begun("list", query).call("list", [query]),
    move: async (ref, action) => begun().call("move", [ref, action]),
    remove: async (ref, asked = {}) => begun("remove", asked).call("remove", [ref, asked]),
    exclusively: async (agent, work, asked) => {
      const address = lockedAgent(agent);
      // Opens the store in its thread. The lock is taken here, where the work runs.
      await begun().call("list", [{ limit: 1 }]);
      return holdAgentLock({ path: sent.path, driver: defaultDriver, clock: systemClock, ...address }, work, asked);
    },
    redact: async (ref, ids, asked) => begun("redact", asked).call("redact", [ref, ids, asked]),
    close,
    [Symbol.asyncDispose]: close,
  };
}
