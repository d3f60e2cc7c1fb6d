import { type FilesFacet, hasErrorCode } from "@throughline/core";
import type { FileScope } from "@throughline/core/internal";
import type { FileStore } from "./file-store.ts";
import { listFileObjects, listObjects } from "./list-objects.ts";
import type { ObjectFilesOptions } from "./object-files-options.ts";
import { deletionsOf, filesOf, keptObject } from "./object-names.ts";

/** A note of this age belongs to a process that ended. No purge takes as long. */
const noteEndsMs = 60 * 60 * 1000;

/** Stands between the commit of a deletion, and that of the objects which it makes useless. */
export interface PendingDeletion {
  /** Deletes the objects that the store no longer refers to, and then the note. */
  finish(): Promise<void>;
  /** Removes the note of a deletion that was refused. */
  cancel(): Promise<void>;
}

export type PendingDeletionsOptions = Pick<ObjectFilesOptions, "objects" | "inner" | "clock" | "newId">;

/**
 * Notes, before the store commits a purge or a redaction, the objects which that may make useless. The note is durable
 * before the commit, so that a process which is killed between the commit and the deletion leaves nothing behind for
 * good. An object of a later put of the same bytes has another name, so no note ever deletes it.
 * @returns null when none of the files has an object
 */
export async function beginDeletion(
  options: PendingDeletionsOptions,
  scope: FileScope,
  ids: readonly string[],
): Promise<PendingDeletion | null> {
  const { objects, newId } = options;
  const names: string[] = [];
  for (const id of ids)
    for await (const same of listFileObjects(objects, `${filesOf(scope)}${id}`))
      names.push(...same.map(({ name }) => name));
  if (names.length === 0) return null;
  const note = `${deletionsOf(scope)}${newId()}`;
  await objects.write(note, noteText(names));
  return {
    async finish() {
      await deleteUnreferred(options, scope, names);
      await objects.remove(note);
    },
    cancel: () => objects.remove(note),
  };
}

async function* noteText(names: readonly string[]): AsyncGenerator<Uint8Array> {
  yield Buffer.from(JSON.stringify({ v: 1, names }));
}

/**
 * Deletes what processes that were killed left: the objects of their notes, their uploads, and the parts of writes that
 * never ended. A note of a deletion that may still run stays.
 */
export async function finishDeletions(
  options: PendingDeletionsOptions,
  scope: FileScope,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { objects, clock } = options;
  for await (const { name, bytes, modifiedMs } of listObjects(objects, deletionsOf(scope), signal)) {
    const names = await readNote(objects, name, bytes);
    if (names === null) continue;
    await deleteUnreferred(options, scope, names);
    if (clock.nowMs() - modifiedMs > noteEndsMs) await objects.remove(name);
  }
}

/** Returns null when its own process finished the deletion meanwhile. */
async function readNote(objects: FileStore, name: string, bytes: number): Promise<readonly string[] | null> {
  try {
    const text = Buffer.concat(await Array.fromAsync(objects.read(name, { from: 0, to: bytes }))).toString();
    const { names } = JSON.parse(text) as { readonly names: readonly string[] };
    return names;
  } catch (error) {
    if (hasErrorCode(error, "FILE_NOT_FOUND")) return null;
    throw error;
  }
}

async function deleteUnreferred(
  { objects, inner }: PendingDeletionsOptions,
  scope: FileScope,
  names: readonly string[],
): Promise<void> {
  const idOf = (name: string): string => keptObject({ name, bytes: 0, modifiedMs: 0 })?.id ?? "";
  const referred = await referredOf(inner, scope, new Set(names.map(idOf)));
  for (const name of names) if (!referred.has(idOf(name))) await objects.remove(name);
}

/** Returns those of the files to which records refer. The list of a store is in order of id. */
async function referredOf(files: FilesFacet, scope: FileScope, ids: ReadonlySet<string>): Promise<ReadonlySet<string>> {
  const last = [...ids].toSorted().at(-1) ?? "";
  const referred = new Set<string>();
  for await (const page of files.list(scope)) {
    for (const { id, references } of page) if (references > 0 && ids.has(id)) referred.add(id);
    if ((page.at(-1)?.id ?? "") >= last) break;
  }
  return referred;
}
