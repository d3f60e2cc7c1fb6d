import { fileIdsOf, type FileScope, type ListedFile } from "@throughline/core/internal";
import type { FilesFacet, SessionRef } from "@throughline/core";
import { broken, type BrokenHandle, only } from "./file-mutants.ts";
import { noted, type Mutant } from "./mutant.ts";

/** A store whose list of files is wrong. */
function listing(change: (files: readonly ListedFile[], scope: FileScope) => readonly ListedFile[]): BrokenHandle {
  return broken((facet) => ({
    list: async function* (scope, options) {
      for await (const page of facet.list(scope, options)) yield change(page, scope);
    },
  }));
}

/** All files of a scope with their bytes, as a store has them that forgets to delete some. */
async function savedFiles(facet: FilesFacet, scope: FileScope): Promise<readonly Uint8Array[]> {
  const saved: Uint8Array[] = [];
  for await (const page of facet.list(scope))
    for (const { id, bytes } of page)
      if (bytes !== null) saved.push(Buffer.concat(await Array.fromAsync(facet.get(scope, id))));
  return saved;
}

/** Brings back what an operation deleted. */
function keepingFiles(operation: "remove" | "redact"): BrokenHandle {
  return (inner) => {
    const facet = inner.files as FilesFacet;
    const own = inner[operation].bind(inner) as (ref: SessionRef, ...rest: unknown[]) => Promise<unknown>;
    return {
      [operation]: async (ref: SessionRef, ...rest: unknown[]) => {
        const saved = await savedFiles(facet, ref);
        const result = await own(ref, ...rest);
        for (const bytes of saved) await facet.put(ref, only(bytes));
        return result;
      },
    };
  };
}

/** Deletes more than an operation may: every file that the session refers to. */
function deletingAll(operation: "remove" | "redact" | "save", isMeant: (ref: SessionRef) => boolean): BrokenHandle {
  return (inner) => {
    const own = inner[operation].bind(inner) as (ref: SessionRef, ...rest: unknown[]) => Promise<unknown>;
    return {
      [operation]: async (ref: SessionRef, ...rest: unknown[]) => {
        const ids = new Set<string>();
        if ((await inner.load(ref)) !== null)
          for await (const { records } of inner.read(ref))
            for (const { record } of records) for (const id of fileIdsOf(record)) ids.add(id);
        const result = await own(ref, ...rest);
        if (isMeant(ref)) for (const id of ids) await inner.files?.delete(ref, id);
        return result;
      },
    };
  };
}

export const fileReferenceMutants: readonly Mutant[] = [
  {
    name: "counts files and not the records that refer to them",
    foundBy: "files/references",
    handle: listing((files) => files.map((file) => ({ ...file, references: Math.min(file.references, 1) }))),
  },
  {
    name: "refers to a file before the append is checked",
    foundBy: "files/refused-append",
    handle: (inner, world) => {
      const facet = inner.files as FilesFacet;
      const refusals = noted(world, "refused references", () => new Map<string, number>());
      return {
        append: async (ref, drafts, options) =>
          inner.append(ref, drafts, options).catch((error: unknown) => {
            for (const draft of drafts)
              if ("type" in draft)
                for (const id of fileIdsOf(draft as never)) refusals.set(id, (refusals.get(id) ?? 0) + 1);
            throw error;
          }),
        files: {
          ...facet,
          list: async function* (scope, options) {
            for await (const page of facet.list(scope, options))
              yield page.map((file) => ({ ...file, references: file.references + (refusals.get(file.id) ?? 0) }));
          },
        },
      };
    },
  },
  {
    name: "lists only files that are there",
    foundBy: "files/missing",
    handle: listing((files) => files.filter(({ bytes }) => bytes !== null)),
  },
  { name: "a purge leaves the files", foundBy: "files/purge", handle: keepingFiles("remove") },
  {
    name: "a purge deletes a file that another session refers to",
    foundBy: "files/purge-shared",
    handle: deletingAll("remove", ({ key }) => key === "agent:main:a"),
  },
  {
    name: "a purge deletes the file of another namespace",
    foundBy: "files/purge-other-scope",
    handle: (inner) => ({
      remove: async (ref, options) => {
        const ids = (await Array.fromAsync(inner.files?.list(ref) ?? [])).flat().map(({ id }) => id);
        await inner.remove(ref, options);
        for (const id of ids) await inner.files?.delete({ ...ref, namespace: "tenant" }, id);
      },
    }),
  },
  {
    name: "a reset deletes the files of the session",
    foundBy: "files/archived",
    handle: deletingAll("save", () => true),
  },
  { name: "a redaction leaves the files", foundBy: "files/redact", handle: keepingFiles("redact") },
  {
    name: "a redaction of texts deletes the files",
    foundBy: "files/redact-texts",
    handle: deletingAll("redact", () => true),
  },
  {
    name: "a fork refers to no files",
    foundBy: "files/fork",
    handle: deletingAll("remove", ({ key }) => key === "agent:main:a"),
  },
  { name: "a redaction leaves the files of forks", foundBy: "files/redact-fork", handle: keepingFiles("redact") },
];
