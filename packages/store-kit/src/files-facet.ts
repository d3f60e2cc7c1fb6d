import { createHash } from "node:crypto";
import {
  abortedBefore,
  assertKnownOptions,
  type FileScope,
  type GetFileOptions,
  isFileId,
  type ListedFile,
  type PutFileOptions,
  quote,
  refused,
  type StoredFile,
  type StoreLimits,
} from "@throughline/core/internal";
import { type Clock, type FilesFacet, hasErrorCode } from "@throughline/core";
import { assertObjects } from "./assert-arguments.ts";
import { ask } from "./backend-sessions.ts";
import { assertFileRange, beginFileWork, getFileTable, listFilesTable, putFileTable } from "./file-arguments.ts";
import type { FileBackend, FileUpload, KeptFile } from "./file-backend.ts";
import type { HandleLife } from "./handle-life.ts";
import type { PayloadCoder } from "./payload-coder.ts";
import { fileChunkBytes, receiveChunks } from "./receive-file.ts";

interface FilesFacetOptions {
  readonly backend: FileBackend;
  readonly coder: PayloadCoder;
  readonly life: HandleLife;
  readonly limits: StoreLimits;
  readonly clock: Clock;
  /** Creates the ids of uploads. */
  readonly newId: () => string;
}

const listedAtOnce = 500;

/** Creates the facet over the chunks of a backend. Every store has the same checks, hashes, bounds and codec. */
export function createFilesFacet(options: FilesFacetOptions): FilesFacet {
  const { backend, life } = options;
  return {
    async put(scope, content, given = {}) {
      assertKnownOptions<PutFileOptions>("put", given, putFileTable);
      beginFileWork(life, scope, given.signal);
      return life.track(() => put(options, scope, content, given));
    },
    async *get(scope, id, given = {}) {
      assertKnownOptions<GetFileOptions>("get", given, getFileTable);
      beginFileWork(life, scope, given.signal);
      yield* get(options, scope, id, given);
    },
    async stat(scope, id) {
      beginFileWork(life, scope);
      const found = await life.track(async () => (isFileId(id) ? ask(() => backend.find(scope, id), null) : null));
      return found === null ? null : publicFile(found);
    },
    async delete(scope, id) {
      beginFileWork(life, scope);
      return life.track(async () => isFileId(id) && ask(() => backend.remove(scope, id), "unknown"));
    },
    async *list(scope, given = {}) {
      assertKnownOptions<{ readonly signal?: AbortSignal | undefined }>("list", given, listFilesTable);
      let afterId = "";
      for (;;) {
        beginFileWork(life, scope, given.signal);
        const from = afterId;
        const page: readonly ListedFile[] = await life.track(async () =>
          ask(() => backend.list(scope, from, listedAtOnce), null),
        );
        if (page.length > 0) yield page;
        if (page.length < listedAtOnce) return;
        afterId = page.at(-1)?.id ?? "";
      }
    },
  };
}

function publicFile({ id, bytes, storedAtMs }: StoredFile): StoredFile {
  return { id, bytes, storedAtMs };
}

async function put(
  { backend, coder, limits, clock, newId }: FilesFacetOptions,
  { namespace, agentId }: FileScope,
  content: AsyncIterable<Uint8Array>,
  { maxBytes = Infinity, signal }: PutFileOptions,
): Promise<StoredFile> {
  assertObjects({ "the content of a file": content });
  const upload = { id: newId(), scope: { namespace, agentId } };
  let isKept = false;
  try {
    const bound = Math.min(maxBytes, limits.fileBytes ?? 0);
    const chunks = receiveChunks(content, { maxBytes: bound, signal });
    let next = await chunks.next();
    for (let number = 0; next.done !== true; number += 1, next = await chunks.next()) {
      const coded = coder.encode(next.value, fileOwner(upload, number));
      const at = number;
      await ask(() => backend.addChunk(upload, at, coded), "not-applied");
    }
    const file = { ...next.value, storedAtMs: clock.nowMs() };
    isKept = await ask(() => backend.publish(upload, file), "unknown");
    // The time may be that of the file system.
    return publicFile((await ask(() => backend.find(upload.scope, file.id), "unknown")) ?? file);
  } finally {
    if (!isKept) await dropUpload(backend, upload);
  }
}

/** A failed removal leaves chunks that are not visible. A later upload removes them. */
async function dropUpload(backend: FileBackend, upload: FileUpload): Promise<void> {
  try {
    await backend.drop(upload);
  } catch {
    // The error of the upload says more.
  }
}

/** Binds a chunk under a codec to its place in its upload. */
export function fileOwner({ id, scope }: FileUpload, number: number): Parameters<PayloadCoder["encode"]>[1] {
  return { ref: { ...scope, key: "" }, sessionId: "", id: `${id}/${number}`, part: "file" };
}

async function* get(
  { backend, coder, life }: FilesFacetOptions,
  scope: FileScope,
  id: string,
  { from = 0, to, signal }: GetFileOptions,
): AsyncGenerator<Uint8Array> {
  const file = await life.track(async () => (isFileId(id) ? ask(() => backend.find(scope, id), null) : null));
  if (file === null) throw fileNotFound(id);
  const end = to ?? file.bytes;
  assertFileRange(file.bytes, from, end);
  // A part of a file of one chunk reads all of it, unless the part ends before the first byte.
  const isAllRead = (from === 0 && end === file.bytes) || (file.bytes <= fileChunkBytes && end > 0);
  const hash = isAllRead ? createHash("sha256") : null;
  for (let number = Math.floor(from / fileChunkBytes); number * fileChunkBytes < end; number++) {
    life.begin(signal);
    const chunk = await life.track(() => readChunk(backend, coder, { scope, id: file.upload }, { file, number }));
    hash?.update(chunk);
    const start = number * fileChunkBytes;
    yield chunk.subarray(Math.max(0, from - start), Math.min(chunk.byteLength, end - start));
  }
  if (hash !== null && hash.digest("hex") !== id) throw damagedFile(id);
  if (signal?.aborted === true) throw abortedBefore("the file was read", signal);
}

async function readChunk(
  backend: FileBackend,
  coder: PayloadCoder,
  upload: FileUpload,
  { file, number }: { readonly file: KeptFile; readonly number: number },
): Promise<Uint8Array> {
  const coded = await ask(() => backend.chunk(upload, number), null);
  if (coded === null) {
    // Either the file was deleted meanwhile, or a part of it is missing.
    if ((await ask(() => backend.find(upload.scope, file.id), null))?.upload !== upload.id) throw fileNotFound(file.id);
    throw damagedFile(file.id);
  }
  const chunk = coder.decode(coded, fileOwner(upload, number));
  const expected = Math.min(fileChunkBytes, file.bytes - number * fileChunkBytes);
  if (chunk.byteLength !== expected) throw damagedFile(file.id);
  return chunk;
}

/** Creates the error of an id that the scope has no file with. */
export function fileNotFound(id: unknown): Error {
  return refused("FILE_NOT_FOUND", `There is no file ${quote(id)}.`, { fileId: id });
}

/** Creates the error of a file whose bytes do not fit its id or its size. */
export function damagedFile(id: string): Error {
  return refused("STORE_CORRUPT", `The file ${quote(id)} is damaged: its bytes are not those that were put.`, {
    fileId: id,
  });
}

/** Reads a file to its end, which compares it with its id. Returns whether the comparison found no damage. */
export async function isFileIntact(
  files: FilesFacet,
  scope: FileScope,
  id: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  try {
    for await (const _piece of files.get(scope, id, { signal }));
    return true;
  } catch (error) {
    if (hasErrorCode(error, "STORE_CORRUPT", "CODEC_FAILED")) return false;
    // The file may be deleted between any two reads.
    if (hasErrorCode(error, "FILE_NOT_FOUND")) return true;
    throw error;
  }
}
