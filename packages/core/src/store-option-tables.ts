import type { PayloadCodec } from "./codec.ts";
import { portKinds } from "./port-kinds.ts";
import type { Clock, RandomSource, RecordIds } from "./ports.ts";
import type { SessionEventListener } from "./session-event.ts";
import { assertKnownOptions, optionKinds, type OptionKind, type OptionTable } from "./option-checks.ts";
import type {
  AppendOptions,
  ListQuery,
  LoadOptions,
  ReadOptions,
  RedactOptions,
  RemoveOptions,
  SaveOptions,
  StoreLockOptions,
} from "./session-store.ts";
import type { ReadPayload } from "./stored-records.ts";
import type { ForkFacet, MaintenanceFacet, PurgesOptions, SearchQuery, WatchFacet } from "./store-facets.ts";
import type { StoreLimits } from "./store-capabilities.ts";

const { any, callback, flag, listOf, number, object, objectOf, objectWith, oneOf, orNull, required, signal, text } =
  optionKinds;
const { integer, filledText } = optionKinds;

/** A store compares these numbers, so Infinity stands for no bound. */
const bound: OptionKind = number();

const pause: OptionKind = {
  expected: "a number of milliseconds above 0",
  accepts: (value) => typeof value === "number" && value > 0 && Number.isFinite(value),
};

const turn: OptionKind = objectOf<Readonly<Record<"action" | "fence" | "turnId" | "owner" | "leaseUntilMs", unknown>>>({
  action: required(oneOf(["open", "renew", "within", "close"])),
  fence: required(number()),
  turnId: any,
  owner: any,
  leaseUntilMs: any,
});

export const appendTable: OptionTable<AppendOptions> = {
  // An unknown durability passes here, because it throws CAPABILITY_UNSUPPORTED like a durability that this store
  // lacks.
  durability: text,
  expect: objectOf<NonNullable<AppendOptions["expect"]>>({ head: required(orNull(text)) }),
  idempotencyKey: text,
  isNewKey: flag,
  entry: object,
  windowFromSeq: integer({ min: 0 }),
  rewindTo: orNull(text),
  return: oneOf(["stored"]),
  turn,
  signal,
};

const read: OptionTable<ReadOptions<ReadPayload>> = {
  afterSeq: bound,
  beforeSeq: bound,
  order: oneOf(["ascending", "descending"]),
  limit: bound,
  payload: oneOf(["record", "source", "head"]),
  signal,
};

const save: OptionTable<SaveOptions> = {
  ifRevision: required(orNull(number())),
  durability: text,
  createdAtMs: integer({ min: 0 }),
};

const list: OptionTable<ListQuery> = {
  namespace: text,
  agentId: text,
  state: oneOf(["active", "archived", "any"]),
  keyPrefix: text,
  sinceMs: bound,
  untilMs: bound,
  importedFrom: objectOf<NonNullable<ListQuery["importedFrom"]>>({ format: required(text), sourceId: required(text) }),
  sort: oneOf(["updated", "key"]),
  limit: integer({ min: 1 }),
  cursor: text,
  signal,
};

const exclusively: OptionTable<StoreLockOptions> = {
  timeoutMs: required(number({ min: 0 })),
  pollIntervalMs: required(pause),
  signal,
};

const search: OptionTable<SearchQuery> = {
  text: { ...text, expected: "a text of at most 1,000 characters", accepts: isQuestion },
  anyOf: {
    ...text,
    expected: "a list of at most 64 words with at most 1,000 characters altogether",
    accepts: areWords,
  },
  namespace: text,
  agentId: text,
  key: text,
  sessionId: text,
  state: oneOf(["active", "archived", "any"]),
  role: text,
  tool: text,
  sinceMs: bound,
  untilMs: bound,
  limit: integer({ min: 1, max: 1000 }),
  signal,
};

function isQuestion(value: unknown): boolean {
  return typeof value === "string" && value.length <= 1000;
}

function areWords(value: unknown): boolean {
  if (!Array.isArray(value) || value.length > 64) return false;
  const words: readonly unknown[] = value;
  return words.every((word) => typeof word === "string") && words.join("").length <= 1000;
}

const signalOnly: OptionTable<LoadOptions> = { signal };

const remove: OptionTable<RemoveOptions> = { purge: flag };
export const redactTable: OptionTable<RedactOptions> = {
  reason: required(text),
  entryFields: listOf(text),
  texts: listOf(filledText),
};
const watch: OptionTable<Parameters<WatchFacet["watch"]>[1]> = { afterSeq: required(bound), signal: required(signal) };
const fork: OptionTable<Parameters<ForkFacet["fork"]>[2]> = { atSeq: bound, sessionId: required(text) };
const verify: OptionTable<NonNullable<Parameters<MaintenanceFacet["verify"]>[0]>> = { full: flag, signal };
const purges: OptionTable<PurgesOptions> = { namespace: text, agentId: text, signal };

/** Names a method of a store that takes options. */
export type StoreMethodName =
  | "append"
  | "read"
  | "readWindow"
  | "load"
  | "save"
  | "list"
  | "remove"
  | "redact"
  | "exclusively"
  | "watch"
  | "fork"
  | "search"
  | "rebuild"
  | "fill"
  | "verify"
  | "repair"
  | "backup"
  | "purges";

/** Holds the options of each method of a store, with their kinds. */
export const storeOptionTables: Readonly<Record<StoreMethodName, Readonly<Record<string, OptionKind>>>> = {
  append: appendTable,
  read,
  readWindow: signalOnly,
  load: signalOnly,
  save,
  list,
  remove,
  redact: redactTable,
  exclusively,
  watch,
  fork,
  search,
  rebuild: signalOnly,
  fill: signalOnly,
  verify,
  repair: signalOnly,
  backup: signalOnly,
  purges,
};

/**
 * Refuses an option that a method of a store does not know, that has another type, or that is out of range.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function assertStoreOptions(method: StoreMethodName, options: unknown): void {
  assertKnownOptions<Readonly<Record<string, unknown>>>(method, options, storeOptionTables[method], argumentOf(method));
}

function argumentOf(method: StoreMethodName): string {
  return method === "list" || method === "search" ? "query" : "options";
}

interface CommonFactoryOptions {
  /** @default the system's clock */
  readonly clock?: Clock;
  /** @default by the clock and the randomness */
  readonly ids?: RecordIds;
  /** @default the system's */
  readonly random?: RandomSource;
  /** The callback receives the events of this handle, and its errors are ignored. @default none */
  readonly onEvent?: SessionEventListener;
  /**
   * The codec encodes the stored content. A store that was written with a codec opens with the same codec only.
   * @default none
   */
  readonly codec?: PayloadCodec;
  readonly limits?: Partial<StoreLimits>;
}

/** Holds the kinds of the options that factories of stores have in common. */
export const storeFactoryKinds: OptionTable<CommonFactoryOptions> = {
  clock: portKinds.clock,
  ids: portKinds.ids,
  random: portKinds.random,
  onEvent: callback,
  codec: objectWith("encode", "decode"),
  limits: objectOf<Partial<StoreLimits>>({
    recordBytes: integer({ min: 1 }),
    batchRecords: integer({ min: 1 }),
    batchBytes: integer({ min: 1 }),
    pageRecords: integer({ min: 1 }),
    pageBytes: integer({ min: 1 }),
    fileBytes: integer({ min: 1 }),
  }),
};
