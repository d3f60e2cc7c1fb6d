import { createHash } from "node:crypto";
import {
  abortedBefore,
  assertKnownOptions,
  type FileScope,
  type GetFileOptions,
  isFileId,
  type ListedFile,
  type PutFileOptions,
  type StoredFile,
} from "@throughline/core/internal";
import { type FilesFacet, hasErrorCode } from "@throughline/core";
import {
  assertFileRange,
  beginFileWork,
  damagedFile,
  fileNotFound,
  getFileTable,
  listFilesTable,
  putFileTable,
  uploadEndsMs,
} from "@throughline/store-kit/internal";
import type { FileStore } from "./file-store.ts";
import { listFileObjects, listObjects, newest } from "./list-objects.ts";
import { mergeLists } from "./merge-lists.ts";
import { filesOf, type KeptObject, uploadsOf } from "./object-names.ts";
import type { ObjectFilesOptions } from "./object-files-options.ts";
import { finishDeletions } from "./pending-deletions.ts";
import { putObject } from "./put-object.ts";
import { readObject } from "./read-object.ts";

/** Creates the facet of a store whose files are objects. */
export function createObjectFiles(options: ObjectFilesOptions): FilesFacet {
  const { objects, inner, life } = options;
  return {
    async put(scope, content, given = {}) {
      assertKnownOptions<PutFileOptions>("put", given, putFileTable);
      beginFileWork(life, scope, given.signal);
      return life.track(async () => {
        const kept = await putObject(options, scope, content, given);
        return storedFile(kept);
      });
    },
    async *get(scope, id, given = {}) {
      assertKnownOptions<GetFileOptions>("get", given, getFileTable);
      beginFileWork(life, scope, given.signal);
      yield* getFile(options, scope, id, given);
    },
    async stat(scope, id) {
      beginFileWork(life, scope);
      const found = await life.track(() => findObject(objects, scope, id));
      return found === null ? inner.stat(scope, id) : storedFile(found);
    },
    async delete(scope, id) {
      beginFileWork(life, scope);
      return life.track(() => deleteFile(options, scope, id));
    },
    async *list(scope, given = {}) {
      assertKnownOptions<{ readonly signal?: AbortSignal | undefined }>("list", given, listFilesTable);
      beginFileWork(life, scope, given.signal);
      await life.track(() => cleanScope(options, scope, given.signal));
      for await (const page of listFiles(options, scope, given.signal)) {
        beginFileWork(life, scope, given.signal);
        yield page;
      }
    },
  };
}

function storedFile({ id, fileBytes, modifiedMs }: KeptObject): StoredFile {
  return { id, bytes: fileBytes, storedAtMs: modifiedMs };
}

async function findObject(objects: FileStore, scope: FileScope, id: string): Promise<KeptObject | null> {
  if (!isFileId(id)) return null;
  for await (const same of listFileObjects(objects, `${filesOf(scope)}${id}.`)) return newest(same);
  return null;
}

async function* getFile(
  { objects, inner, coder, life }: ObjectFilesOptions,
  scope: FileScope,
  id: string,
  given: GetFileOptions,
): AsyncGenerator<Uint8Array> {
  let found = await life.track(() => findObject(objects, scope, id));
  if (found === null) return yield* inner.get(scope, id, given);
  const { from = 0, to: end = found.fileBytes } = given;
  assertFileRange(found.fileBytes, from, end);
  const hash = from === 0 && end === found.fileBytes ? createHash("sha256") : null;
  for (let at = from; at < end;) {
    const object: KeptObject = found;
    try {
      for await (const piece of readObject(objects, coder, {
        scope,
        object,
        from: at,
        to: end,
        signal: given.signal,
      })) {
        hash?.update(piece);
        at += piece.byteLength;
        yield piece;
        life.begin(given.signal);
      }
    } catch (error) {
      // The same bytes were put again meanwhile, and are under another name now; or the file was deleted.
      const next = hasErrorCode(error, "FILE_NOT_FOUND") ? await findObject(objects, scope, id) : null;
      if (next === null || next.name === object.name)
        throw hasErrorCode(error, "FILE_NOT_FOUND") ? fileNotFound(id) : error;
      found = next;
    }
  }
  if (hash !== null && hash.digest("hex") !== id) throw damagedFile(id);
  // The storage goes on sending an object that is deleted while it is read.
  if ((await life.track(() => findObject(objects, scope, id))) === null) throw fileNotFound(id);
  if (given.signal?.aborted === true) throw abortedBefore("the file was read", given.signal);
}

async function deleteFile({ objects, inner }: ObjectFilesOptions, scope: FileScope, id: string): Promise<boolean> {
  if (!isFileId(id)) return false;
  let isDeleted = await inner.delete(scope, id);
  for await (const same of listFileObjects(objects, `${filesOf(scope)}${id}.`))
    for (const { name } of same) {
      await objects.remove(name);
      isDeleted = true;
    }
  return isDeleted;
}

/** Removes what killed processes left in a scope. */
async function cleanScope(options: ObjectFilesOptions, scope: FileScope, given?: AbortSignal): Promise<void> {
  const { objects, clock } = options;
  await finishDeletions(options, scope, given);
  const beforeMs = clock.nowMs() - uploadEndsMs;
  for await (const { name, modifiedMs } of listObjects(objects, uploadsOf(scope), given))
    if (modifiedMs < beforeMs) await objects.remove(name);
  await objects.removeUnfinished?.(uploadsOf(scope), beforeMs);
}

const listedAtOnce = 500;

async function* listFiles(
  { objects, inner }: ObjectFilesOptions,
  scope: FileScope,
  given?: AbortSignal,
): AsyncGenerator<readonly ListedFile[]> {
  let page: ListedFile[] = [];
  for await (const file of mergeLists(inner.list(scope, { signal: given }), objectList(objects, scope, given))) {
    page.push(file);
    if (page.length < listedAtOnce) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

async function* objectList(objects: FileStore, scope: FileScope, given?: AbortSignal): AsyncGenerator<ListedFile> {
  for await (const same of listFileObjects(objects, filesOf(scope), given))
    yield { ...storedFile(newest(same)), references: 0 };
}
