import type { FileObject, FileStore } from "./file-store.ts";
import { keptObject, type KeptObject } from "./object-names.ts";

const listedAtOnce = 1000;

/** Yields all objects below a prefix, by name. */
export async function* listObjects(
  objects: FileStore,
  prefix: string,
  signal?: AbortSignal,
): AsyncGenerator<FileObject, void, void> {
  let after: string | undefined;
  for (;;) {
    const page = await objects.list(prefix, { after, limit: listedAtOnce, signal });
    yield* page;
    if (page.length < listedAtOnce) return;
    after = page.at(-1)?.name;
  }
}

/** Yields the objects below a prefix that hold files, each file once with all its objects, by id. */
export async function* listFileObjects(
  objects: FileStore,
  prefix: string,
  signal?: AbortSignal,
): AsyncGenerator<readonly [KeptObject, ...KeptObject[]], void, void> {
  let same: [KeptObject, ...KeptObject[]] | null = null;
  for await (const object of listObjects(objects, prefix, signal)) {
    const kept = keptObject(object);
    if (kept === null) continue;
    if (same !== null && same[0].id === kept.id) same.push(kept);
    else {
      if (same !== null) yield same;
      same = [kept];
    }
  }
  if (same !== null) yield same;
}

/** Returns the object that was written last. */
export function newest(same: readonly [KeptObject, ...KeptObject[]]): KeptObject {
  return same.reduce((best, each) => (each.modifiedMs > best.modifiedMs ? each : best));
}
