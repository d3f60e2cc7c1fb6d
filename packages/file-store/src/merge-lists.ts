import type { ListedFile } from "@throughline/core/internal";

/** Merges the list of a store, which has the references, with that of the objects. Both are in order of id. */
export async function* mergeLists(
  stored: AsyncIterable<readonly ListedFile[]>,
  objects: AsyncIterator<ListedFile>,
): AsyncGenerator<ListedFile, void, void> {
  let next = await objects.next();
  for await (const page of stored)
    for (const file of page) {
      for (; next.done !== true && next.value.id < file.id; next = await objects.next()) yield next.value;
      if (next.done !== true && next.value.id === file.id) {
        yield { ...next.value, references: file.references };
        next = await objects.next();
      } else yield file;
    }
  for (; next.done !== true; next = await objects.next()) yield next.value;
}
