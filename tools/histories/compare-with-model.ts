import { isDeepStrictEqual, inspect } from "node:util";
import {
  type ListQuery,
  type ReadOptions,
  type SessionRef,
  type SessionState,
  type SessionStore,
  ThroughlineError,
} from "../../packages/core/src/index.ts";
import type { ReadPayload, RecordHead, SourcedRecord } from "../../packages/core/src/stored-records.ts";
import {
  findSession,
  type ModelRecord,
  ModelRefusal,
  type SessionModel,
  stateOf,
} from "../../packages/store-conformance/src/model/session-model.ts";
import { lineOf } from "../../packages/store-conformance/src/model/append-to-model.ts";
import { listInModel, readInModel } from "../../packages/store-conformance/src/model/change-model.ts";

/** A store that is not what the model says. */
export class HistoryProblem extends Error {
  override readonly name: string = "HistoryProblem";
}

/** Either a value or a refusal by its codes, of which any is right. */
export type Outcome<Value> = { readonly value: Value } | { readonly codes: readonly string[]; readonly about: unknown };

/** The model's answer, or its refusal. */
export function modelOutcome<Value>(work: () => Value): Outcome<Value> {
  try {
    return { value: work() };
  } catch (error) {
    if (error instanceof ModelRefusal) return { codes: error.codes, about: null };
    throw error;
  }
}

/** The store's answer, or its refusal. @throws {HistoryProblem} when it throws anything without a code */
export async function storeOutcome<Value>(work: () => Promise<Value>): Promise<Outcome<Value>> {
  try {
    return { value: await work() };
  } catch (error) {
    if (error instanceof ThroughlineError) return { codes: [error.code], about: [error.message, error.details] };
    throw new HistoryProblem(`an error without a code: ${inspect(error)}`);
  }
}

/** Compares what stores say with what the model says, and counts how often. */
export interface ModelComparison {
  /** Comparisons made so far. */
  count(): number;
  same(what: string, got: unknown, expected: unknown): void;
  /** True when both have a value, false when both refuse, in a way the model knows. */
  isAnswered<Got, Expected>(
    what: string,
    got: Outcome<Got>,
    expected: Outcome<Expected>,
  ): got is { readonly value: Got };
  load(what: string, store: SessionStore, ref: SessionRef): Promise<void>;
  read(what: string, store: SessionStore, ref: SessionRef, options: ReadOptions<ReadPayload>): Promise<void>;
  list(what: string, store: SessionStore, query: ListQuery): Promise<void>;
  /** Every session with every record, and nothing beside them. */
  all(what: string, store: SessionStore): Promise<void>;
  /** Takes over what the model leaves to the store where other programs changed a session. */
  adopt(got: SessionState | null): void;
}

export function createModelComparison(model: SessionModel): ModelComparison {
  let count = 0;
  const same = (what: string, got: unknown, expected: unknown): void => {
    count++;
    if (!isDeepStrictEqual(got, expected))
      throw new HistoryProblem(`${what}\n  got      ${show(got)}\n  expected ${show(expected)}`);
  };
  const self: ModelComparison = {
    count: () => count,
    same,
    isAnswered<Got, Expected>(
      what: string,
      got: Outcome<Got>,
      expected: Outcome<Expected>,
    ): got is { readonly value: Got } {
      count++;
      const [told, wanted] = ["codes" in got ? got.codes : null, "codes" in expected ? expected.codes : null];
      const isRight = told === null ? wanted === null : (wanted?.includes(told[0] ?? "") ?? false);
      if (!isRight)
        throw new HistoryProblem(`${what}\n  got      ${show(got)}\n  expected ${wanted?.join(" or ") ?? "an answer"}`);
      return told === null;
    },
    adopt(got) {
      const session = got === null ? undefined : findSession(model, got.ref);
      if (got === null || session?.isTouchedByOthers !== true) return;
      if (got.revision < session.revision || got.updatedAtMs < session.updatedAtMs)
        throw new HistoryProblem(`revision or time went back: ${show(got)}, was ${show(stateOf(session))}`);
      session.revision = got.revision;
      session.updatedAtMs = got.updatedAtMs;
    },
    async load(what, store, ref) {
      const got = await store.load(ref);
      self.adopt(got);
      const session = findSession(model, ref);
      same(`${what}: the state of ${show(ref)}`, got, session === undefined ? null : stateOf(session));
    },
    async read(what, store, ref, options) {
      const got = await storeOutcome(() => readAll(store, ref, options));
      const expected = modelOutcome(() => readInModel(model, ref, options));
      const which = `${what}: the records of ${show(ref)} with ${show(options)}`;
      if (!self.isAnswered(which, got, expected) || "codes" in expected) return;
      const seqs = got.value.map(({ seq, id }) => [seq, id]);
      same(
        `${which}, their ids`,
        seqs,
        expected.value.map(([seq, { record }]) => [seq, record.id]),
      );
      for (const [index, [seq, held]] of expected.value.entries())
        same(
          `${which}, record ${seq}`,
          comparable(got.value[index], held),
          recordAs(seq, held, options.payload ?? "record"),
        );
    },
    async list(what, store, query) {
      const pages = await readList(store, query);
      const isTouched = model.sessions.some(({ isTouchedByOthers }) => isTouchedByOthers);
      for (const state of pages.flat()) self.adopt(state);
      const expected = listInModel(model, query).map(stateOf);
      const got = pages.flat();
      const which = `${what}: the list ${show(query)}`;
      // The time of a session that nobody looked at since another program wrote to it is not known before.
      if (isTouched && (query.sinceMs !== undefined || query.untilMs !== undefined)) return;
      same(`${which}, its sessions`, got.map(addressOf), expected.map(addressOf));
      same(which, got, expected);
      const limit = query.limit ?? 50;
      const { pageBytes } = store.capabilities.limits;
      same(
        `${which}, its full pages`,
        pages.slice(0, -1).filter((page) => page.length !== limit && entryBytes(page) < pageBytes),
        [],
      );
    },
    async all(what, store) {
      await self.list(what, store, { state: "any", limit: 1000 });
      for (const { ref } of model.sessions) {
        await self.load(what, store, ref);
        await self.read(what, store, ref, { payload: "source" });
      }
    },
  };
  return self;
}

async function readAll(
  store: SessionStore,
  ref: SessionRef,
  options: ReadOptions<ReadPayload>,
): Promise<readonly RecordHead[]> {
  const records: RecordHead[] = [];
  for await (const page of store.read(ref, options)) {
    const { length } = page.records;
    if (length === 0 || length > store.capabilities.limits.pageRecords)
      throw new HistoryProblem(`a page of ${length} records`);
    records.push(...page.records);
  }
  return records;
}

/** More pages than there are sessions in any history: a cursor that leads nowhere ends there. */
const maxPages = 1000;

async function readList(store: SessionStore, query: ListQuery): Promise<readonly (readonly SessionState[])[]> {
  const pages: (readonly SessionState[])[] = [];
  for (let cursor: string | null = null; pages.length < maxPages;) {
    const page = await store.list(cursor === null ? query : { ...query, cursor });
    pages.push(page.sessions);
    cursor = page.nextCursor;
    if (cursor === null) return pages;
  }
  throw new HistoryProblem(`a list of more than ${maxPages} pages`);
}

/** A record as the model gives it; of a record without a line of its own the store's line is compared by what it says. */
function recordAs(seq: number, held: ModelRecord, payload: ReadPayload): unknown {
  const { record, source, isSourceCanonical, bytes, side, tsMs, storedAtMs } = held;
  const { id, parentId, type } = record;
  const head = { seq, id, parentId, type, side, tsMs, storedAtMs, bytes };
  if (payload === "head") return { ...head, ...columnsOf(record) };
  if (payload === "record") return { ...head, record };
  const line = source === null ? (JSON.parse(lineOf(record)) as unknown) : sourceOf(source);
  return { ...head, record, source: line, isSourceCanonical };
}

/** The columns of a message's head: short text that every store can keep in a column, or null. */
function columnsOf({ type, message }: ModelRecord["record"]): Readonly<Record<"role" | "toolName", string | null>> {
  const fields = (type === "message" ? (message ?? {}) : {}) as { readonly [name: string]: unknown };
  const column = (name: string): string | null => {
    const value = Object.hasOwn(fields, name) ? fields[name] : null;
    return typeof value === "string" &&
      value.length <= 256 &&
      Buffer.from(value).toString() === value &&
      !value.includes("\0")
      ? value
      : null;
  };
  return { role: column("role"), toolName: column("toolName") };
}

/** A checksum is of what is kept, which a model does not know; `verify` compares it. */
function comparable(got: RecordHead | undefined, { source }: ModelRecord): unknown {
  const { crc: _crc, ...rest } = { crc: null, ...got } as Partial<SourcedRecord>;
  if (rest.source === undefined) return rest;
  const isOwn = source === null && typeof rest.source === "string";
  return { ...rest, source: isOwn ? (JSON.parse(rest.source as string) as unknown) : sourceOf(rest.source) };
}

function sourceOf(source: string | Uint8Array): string | readonly number[] {
  return typeof source === "string" ? source : [...source];
}

function addressOf({ ref, sessionId }: SessionState): readonly unknown[] {
  return [ref.agentId, ref.key, ref.archiveId ?? null, sessionId];
}

/** For people: whole where it can be, and never a megabyte. */
export function show(value: unknown): string {
  return inspect(value, { depth: 8, maxStringLength: 200, maxArrayLength: 60, breakLength: 160 });
}

/** A page may be short where its entries fill the bytes of a page. */
function entryBytes(page: readonly SessionState[]): number {
  return page.reduce((sum, { entry }) => sum + Buffer.byteLength(JSON.stringify(entry)), 0);
}
