import type { AppendOptions, PayloadCodec, ReadOptions, RecordPage, SessionRef, SessionStore } from "@throughline/core";
import type { ReadPayload } from "@throughline/core/internal";
import type { ConformanceSetup } from "../../src/store-under-test.ts";
import type { StoreUnderTest } from "@throughline/store-conformance";
import { delegate, openBaseStore } from "../base-store.ts";

/** What the handles of one broken store share. */
export interface MutantWorld {
  /** Handles opened so far, this one included. */
  handles: number;
  readonly notes: Map<string, unknown>;
}

/** A store with one defect. */
export interface Mutant {
  readonly name: string;
  /** The case that must find it; others may too. */
  readonly foundBy: string;
  /** The members of a handle that are wrong. */
  readonly handle?: (inner: SessionStore, world: MutantWorld) => Partial<SessionStore>;
  /** The codec as the store calls it. */
  readonly codec?: (codec: PayloadCodec) => PayloadCodec | undefined;
  /** What is wrong outside the handles. */
  readonly under?: (under: StoreUnderTest) => Partial<StoreUnderTest>;
}

export function mutantSetup({ handle, codec, under }: Mutant): ConformanceSetup {
  const open = async (given?: PayloadCodec): Promise<StoreUnderTest> => {
    const world: MutantWorld = { handles: 0, notes: new Map() };
    const wrap = (inner: SessionStore): SessionStore => {
      world.handles++;
      return handle === undefined ? inner : delegate(inner, handle(inner, world));
    };
    const used = given === undefined || codec === undefined ? given : codec(given);
    const base = openBaseStore({ wrap, ...(used === undefined ? {} : { codec: used }) });
    return under === undefined ? base : { ...base, ...under(base) };
  };
  return { open: () => open(), openWithCodec: (given) => open(given) };
}

type AnyPage = RecordPage<ReadPayload>;

/** A read whose pages go through `change`; pages that become empty are left out. */
export function readThrough(
  inner: SessionStore,
  change: (page: AnyPage, ref: SessionRef, options: ReadOptions<ReadPayload>) => AnyPage | Promise<AnyPage>,
): SessionStore["read"] {
  const read = async function* (ref: SessionRef, options: ReadOptions<ReadPayload> = {}): AsyncGenerator<AnyPage> {
    for await (const page of inner.read(ref, options)) {
      const changed = await change(page, ref, options);
      if (changed.records.length > 0) yield changed;
    }
  };
  return read as SessionStore["read"];
}

/** Read options changed before the store sees them. */
export function readWith(
  inner: SessionStore,
  change: (options: ReadOptions<ReadPayload>) => ReadOptions<ReadPayload>,
): SessionStore["read"] {
  return ((ref, options) => inner.read(ref, change(options ?? {}) as typeof options)) as SessionStore["read"];
}

/** Append options without some of them. */
export function without(options: AppendOptions | undefined, ...names: readonly (keyof AppendOptions)[]): AppendOptions {
  return Object.fromEntries(
    Object.entries(options ?? {}).filter(([name]) => !names.includes(name as keyof AppendOptions)),
  );
}

/** Operations that address a session, with the address changed. */
export function addressed(inner: SessionStore, change: (ref: SessionRef) => SessionRef): Partial<SessionStore> {
  return {
    append: (ref, drafts, options) => inner.append(change(ref), drafts, options),
    read: (ref, options) => inner.read(change(ref), options),
    load: (ref, options) => inner.load(change(ref), options),
    save: (ref, entry, options) => inner.save(change(ref), entry, options),
    move: (ref, action) => inner.move(change(ref), action),
    remove: (ref, options) => inner.remove(change(ref), options),
    redact: (ref, ids, options) => inner.redact(change(ref), ids, options),
  };
}

/** A list value kept under a name in the world. */
export function noted<Value>(world: MutantWorld, name: string, initial: () => Value): Value {
  if (!world.notes.has(name)) world.notes.set(name, initial());
  return world.notes.get(name) as Value;
}
