import type { FileBackend, FileUpload, KeptFile } from "@throughline/store-kit/internal";
import type { KeptRecord } from "@throughline/store-kit";

type FileScope = FileUpload["scope"];

/** Holds the files of one namespace and agent. */
interface ScopeFiles {
  /** Maps an id to its file. */
  readonly files: Map<string, KeptFile>;
  /** Counts the records that refer to a file, whether the file is there or not. */
  readonly references: Map<string, number>;
}

/** Holds files in memory. */
export interface MemoryFiles {
  /** Maps the text of a namespace and an agent to their files. */
  readonly scopes: Map<string, ScopeFiles>;
  /** Maps the id of an upload to its chunks. */
  readonly chunks: Map<string, Uint8Array[]>;
}

export function createMemoryFiles(): MemoryFiles {
  return { scopes: new Map(), chunks: new Map() };
}

function scopeFiles({ scopes }: MemoryFiles, { namespace, agentId }: FileScope): ScopeFiles {
  const name = JSON.stringify([namespace, agentId]);
  const known = scopes.get(name) ?? { files: new Map(), references: new Map() };
  scopes.set(name, known);
  return known;
}

/** Keeps the chunks of files in arrays. */
export function createMemoryFileBackend(data: MemoryFiles): FileBackend {
  return {
    addChunk({ id }, number, bytes) {
      const chunks = data.chunks.get(id) ?? [];
      chunks[number] = bytes;
      data.chunks.set(id, chunks);
    },
    publish(upload, file) {
      const { files } = scopeFiles(data, upload.scope);
      const known = files.get(file.id);
      files.set(file.id, { ...file, upload: known?.upload ?? upload.id });
      return known === undefined;
    },
    drop: ({ id }) => void data.chunks.delete(id),
    find: (scope, id) => scopeFiles(data, scope).files.get(id) ?? null,
    chunk: ({ id }, number) => data.chunks.get(id)?.[number] ?? null,
    remove: (scope, id) => removeFile(data, scopeFiles(data, scope), id),
    list(scope, afterId, limit) {
      const { files, references } = scopeFiles(data, scope);
      const ids = [...new Set([...files.keys(), ...references.keys()])].filter((id) => id > afterId);
      return ids
        .toSorted()
        .slice(0, limit)
        .map((id) => {
          const { bytes = null, storedAtMs = null } = files.get(id) ?? {};
          return { id, bytes, storedAtMs, references: references.get(id) ?? 0 };
        });
    },
  };
}

function removeFile(data: MemoryFiles, { files }: ScopeFiles, id: string): boolean {
  const file = files.get(id);
  if (file === undefined) return false;
  data.chunks.delete(file.upload);
  return files.delete(id);
}

/** Counts what the records of a commit refer to, and deletes each file that lost its last reference. */
export function noteReferences(
  data: MemoryFiles,
  scope: FileScope,
  { added, removed }: { readonly added: readonly KeptRecord[]; readonly removed: readonly KeptRecord[] },
): void {
  if (![...added, ...removed].some(({ files }) => files !== undefined)) return;
  const found = scopeFiles(data, scope);
  const { references } = found;
  for (const { files = [] } of added) for (const id of files) references.set(id, (references.get(id) ?? 0) + 1);
  for (const { files = [] } of removed) {
    for (const id of files) {
      const left = (references.get(id) ?? 0) - 1;
      if (left > 0) references.set(id, left);
      else {
        references.delete(id);
        removeFile(data, found, id);
      }
    }
  }
}
