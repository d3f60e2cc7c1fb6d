import type { FileScope, PutFileOptions } from "@throughline/core/internal";
import { fileOwner, receiveChunks } from "@throughline/store-kit/internal";
import type { FileStore } from "./file-store.ts";
import { listFileObjects } from "./list-objects.ts";
import type { ObjectFilesOptions } from "./object-files-options.ts";
import { filesOf, type KeptObject, objectName, uploadsOf } from "./object-names.ts";

/** A file up to this size is held in memory until its id is known, and is one request. */
const heldBytes = 4 * 1024 * 1024;

/**
 * Writes the content under a name that has its id. The id is known at the end of the content only: what is larger than
 * `heldBytes` is uploaded under another name first, and copied within the storage.
 */
export async function putObject(
  options: ObjectFilesOptions,
  scope: FileScope,
  content: AsyncIterable<Uint8Array>,
  { maxBytes = Infinity, signal }: PutFileOptions,
): Promise<KeptObject> {
  const { objects, isCoded } = options;
  const upload = options.newId();
  const chunks = codedChunks(options, { scope, upload }, content, {
    maxBytes: Math.min(maxBytes, options.maxBytes),
    signal,
  });
  const { held, end } = await hold(chunks);
  const nameOf = (received: { readonly id: string; readonly bytes: number }): string =>
    objectName(scope, { ...received, upload, isCoded });
  if (end !== null) {
    await objects.write(nameOf(end), inTurn(held), { signal });
    return settle(objects, scope, end.id, nameOf(end));
  }
  const passing = `${uploadsOf(scope)}${upload}`;
  try {
    const rest = restOf(held, chunks);
    await objects.write(passing, rest.content, { signal });
    const received = rest.received();
    await objects.copy(passing, nameOf(received), { signal });
    return await settle(objects, scope, received.id, nameOf(received));
  } finally {
    await dropUpload(objects, passing);
  }
}

/** A failed removal leaves an upload that is no file. A list of the files removes it a day later. */
async function dropUpload(objects: FileStore, name: string): Promise<void> {
  try {
    await objects.remove(name);
  } catch {
    // The error of the put says more.
  }
}

interface Received {
  readonly id: string;
  readonly bytes: number;
}

async function* codedChunks(
  { coder, isCoded }: ObjectFilesOptions,
  { scope, upload }: { readonly scope: FileScope; readonly upload: string },
  content: AsyncIterable<Uint8Array>,
  bounds: { readonly maxBytes: number; readonly signal: AbortSignal | undefined },
): AsyncGenerator<Uint8Array, Received> {
  const chunks = receiveChunks(content, bounds);
  let next = await chunks.next();
  for (let number = 0; next.done !== true; number += 1, next = await chunks.next()) {
    const coded = isCoded ? coder.encode(next.value, fileOwner({ id: upload, scope }, number)) : next.value;
    // A codec may return any length, so each chunk has its own before it.
    if (isCoded) yield lengthOf(coded);
    yield coded;
  }
  return next.value;
}

function lengthOf(coded: Uint8Array): Uint8Array {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(coded.byteLength);
  return length;
}

/** Reads up to `heldBytes`. `end` is what the whole file is, or null when more follows. */
async function hold(
  chunks: AsyncGenerator<Uint8Array, Received>,
): Promise<{ readonly held: readonly Uint8Array[]; readonly end: Received | null }> {
  const held: Uint8Array[] = [];
  for (let size = 0; size <= heldBytes;) {
    const next = await chunks.next();
    if (next.done === true) return { held, end: next.value };
    held.push(next.value);
    size += next.value.byteLength;
  }
  return { held, end: null };
}

async function* inTurn(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

function restOf(
  held: readonly Uint8Array[],
  chunks: AsyncGenerator<Uint8Array, Received>,
): { readonly content: AsyncGenerator<Uint8Array>; readonly received: () => Received } {
  let end: Received | null = null;
  async function* content(): AsyncGenerator<Uint8Array> {
    yield* held;
    end = yield* chunks;
  }
  return {
    content: content(),
    received() {
      if (end === null) throw new Error("a file store wrote an object without reading all of its content");
      return end;
    },
  };
}

/**
 * Removes what earlier puts of the same bytes wrote. Of two puts at the same time none removes the other's object, as the
 * storage states its times; the next put or the deletion removes both.
 */
async function settle(objects: FileStore, scope: FileScope, id: string, name: string): Promise<KeptObject> {
  for await (const same of listFileObjects(objects, `${filesOf(scope)}${id}.`)) {
    const own = same.find((each) => each.name === name);
    if (own === undefined) break;
    for (const each of same) if (each.modifiedMs < own.modifiedMs) await objects.remove(each.name);
    return own;
  }
  throw new Error(`the file store does not list ${name}, which it wrote`);
}
