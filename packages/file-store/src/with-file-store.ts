import {
  assertKnownOptions,
  createFinding,
  fileIdsOf,
  optionKinds,
  type OptionTable,
  storeFiles,
  systemClock,
  systemRandom,
} from "@throughline/core/internal";
import {
  type FilesFacet,
  type Finding,
  hasErrorCode,
  type MaintenanceFacet,
  type PayloadCodec,
  type SessionRef,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import { createHandleLife, createPayloadCoder, isFileIntact } from "@throughline/store-kit/internal";
import type { FileStore } from "./file-store.ts";
import { createObjectFiles } from "./files-in-objects.ts";
import { listFileObjects } from "./list-objects.ts";
import { scopeOf } from "./object-names.ts";
import { beginDeletion, type PendingDeletion, type PendingDeletionsOptions } from "./pending-deletions.ts";

/** Configures `withFileStore`. */
export interface WithFileStoreOptions {
  /** Keeps the bytes. */
  readonly files: FileStore;
  /** Encodes the bytes. Pass the codec of the store. @default the bytes stay plain */
  readonly codec?: PayloadCodec | undefined;
  /** Limits the bytes of one file. @default `limits.fileBytes` of the store */
  readonly maxFileBytes?: number | undefined;
}

const table: OptionTable<WithFileStoreOptions> = {
  files: optionKinds.required(optionKinds.objectWith("write", "copy", "read", "list", "remove")),
  codec: optionKinds.objectWith("encode", "decode"),
  maxFileBytes: optionKinds.integer({ min: 0 }),
};

/**
 * Returns the store with the bytes of its files in object storage. The store keeps the references; purges, redactions
 * and unused files follow its rules. Files that the store kept before stay readable. Closing it closes the store.
 *
 * Every program that purges or redacts sessions of the store must open it in this way. Another one leaves the objects.
 * @throws {ThroughlineError} INPUT_INVALID, CAPABILITY_UNSUPPORTED for a store that keeps no files
 * @example
 * const files = createS3FileStore({ bucket: "sessions", region: "eu-central-1", credentials });
 * const store = withFileStore(createPostgresStore({ url }), { files });
 */
export function withFileStore<Store extends SessionStore>(store: Store, options: WithFileStoreOptions): Store {
  assertKnownOptions<WithFileStoreOptions>("withFileStore", options, table);
  const { files: objects, codec, maxFileBytes = store.capabilities.limits.fileBytes ?? 0 } = options;
  const life = createHandleLife(undefined);
  const pending = { objects, inner: storeFiles(store), clock: systemClock, newId: () => systemRandom.uuid() };
  const coder = createPayloadCoder(codec);
  const files = createObjectFiles({
    ...pending,
    coder,
    isCoded: codec !== undefined,
    life,
    maxBytes: maxFileBytes,
  });
  const { capabilities, maintenance } = store;
  const close = (): Promise<void> => life.close(() => store.close());
  const own: Partial<SessionStore> = {
    capabilities: Object.freeze({
      ...capabilities,
      limits: Object.freeze({ ...capabilities.limits, fileBytes: maxFileBytes }),
    }),
    files,
    remove: async (ref, given) => {
      // The store refuses options that are none.
      if ((given as { readonly purge?: unknown } | null | undefined)?.purge !== true) return store.remove(ref, given);
      await erasing(store, pending, { ref, ids: null }, () => store.remove(ref, given));
    },
    redact: (ref, ids, given) => {
      const redact = (): ReturnType<SessionStore["redact"]> => store.redact(ref, ids, given);
      // The store refuses ids that are no list.
      return Array.isArray(ids) ? erasing(store, pending, { ref, ids }, redact) : redact();
    },
    ...(maintenance === undefined ? {} : { maintenance: withVerifiedObjects(maintenance, objects, files) }),
    close,
    [Symbol.asyncDispose]: close,
  };
  return overlay<SessionStore>(store, own) as Store;
}

/** Shows some members instead of those of an object. All others stay those of the object, also its private ones. */
function overlay<Value extends object>(value: Value, own: Partial<Value>): Value {
  return new Proxy(own as Value, {
    get(target, name) {
      if (Object.hasOwn(target, name)) return target[name as keyof Value];
      const member: unknown = Reflect.get(value, name, value);
      return typeof member === "function" ? member.bind(value) : member;
    },
    has: (target, name) => name in target || name in value,
  });
}

/** Runs a purge or a redaction between the note of the objects which it may make useless, and their deletion. */
async function erasing<Result>(
  store: SessionStore,
  pending: PendingDeletionsOptions,
  { ref, ids }: { readonly ref: SessionRef; readonly ids: readonly string[] | null },
  erase: () => Promise<Result>,
): Promise<Result> {
  const fileIds = await fileIdsIn(store, ref, ids);
  const scope = { namespace: ref.namespace, agentId: ref.agentId };
  const deletion = fileIds.length === 0 ? null : await beginDeletion(pending, scope, fileIds);
  let result: Result;
  try {
    result = await erase();
  } catch (error) {
    if (ThroughlineError.isInstance(error) && error.outcome === "not-applied") await deletion?.cancel();
    throw error;
  }
  if (deletion !== null) await finish(deletion, ref);
  return result;
}

async function finish(deletion: PendingDeletion, ref: SessionRef): Promise<void> {
  try {
    await deletion.finish();
  } catch (cause) {
    throw new ThroughlineError(
      "STORE_UNREACHABLE",
      "The records were erased, but not yet their files in object storage.",
      {
        outcome: "unknown",
        details: { namespace: ref.namespace, agentId: ref.agentId, key: ref.key },
        cause,
        remedy: "List the files of the agent once the storage answers, as `throughline doctor` does: it deletes them.",
      },
    );
  }
}

/** Returns the ids of the files to which records of a session refer; null means all records. */
async function fileIdsIn(
  store: SessionStore,
  ref: SessionRef,
  ids: readonly string[] | null,
): Promise<readonly string[]> {
  const found = new Set<string>();
  const wanted = ids === null ? null : new Set(ids);
  try {
    for await (const { records } of store.read(ref))
      for (const { id, record } of records)
        if (wanted?.has(id) !== false) for (const fileId of fileIdsOf(record)) found.add(fileId);
  } catch (error) {
    // The operation itself states what a session that is missing means.
    if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
  }
  return [...found];
}

function withVerifiedObjects(maintenance: MaintenanceFacet, objects: FileStore, files: FilesFacet): MaintenanceFacet {
  return overlay(maintenance, {
    async *verify(given = {}) {
      yield* maintenance.verify(given);
      if (given.full === true) yield* damagedObjects(objects, files, given.signal);
    },
  });
}

async function* damagedObjects(objects: FileStore, files: FilesFacet, signal?: AbortSignal): AsyncGenerator<Finding> {
  for await (const [{ name, id }] of listFileObjects(objects, "", signal)) {
    const scope = scopeOf(name);
    if (scope !== null && !(await isFileIntact(files, scope, id, signal)))
      yield createFinding("STORE_DAMAGED", `The object ${name} is damaged: its bytes are not those that were put.`, {});
  }
}
