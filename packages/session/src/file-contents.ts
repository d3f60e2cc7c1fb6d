import { type FilesFacet, hasErrorCode, type SessionStore, type StoredRecord } from "@throughline/core";
import { createWorkSlices, type FileReference, fileReferencesOf, type FileScope } from "@throughline/core/internal";
import { needsBytes, providerMappings } from "@throughline/history/internal";

/** The files of one session's window in memory. The requests of every provider are smaller. */
const mostSessionBytes = 256_000_000;

/** The files that a process keeps for the next session or turn that sends them. */
const mostKeptBytes = 64_000_000;

/** Keeps the bytes of files that were read last, so that sessions which send the same file read it once. */
export class FileCache {
  readonly #kept = new Map<string, Uint8Array>();
  #bytes = 0;

  /** Returns the bytes, or null when the store does not have the file, or it is damaged. */
  async read(files: FilesFacet, scope: FileScope, id: string): Promise<Uint8Array | null> {
    const name = nameOf(scope, id);
    const known = this.#kept.get(name);
    if (known !== undefined) {
      // The entry moves to the end, because the first one goes first.
      this.#kept.delete(name);
      this.#kept.set(name, known);
      return known;
    }
    const bytes = await readFile(files, scope, id);
    if (bytes !== null) this.#keep(name, bytes);
    return bytes;
  }

  forget(scope: FileScope, id: string): void {
    this.#drop(nameOf(scope, id));
  }

  #keep(name: string, bytes: Uint8Array): void {
    this.#drop(name);
    if (bytes.byteLength > mostKeptBytes) return;
    this.#kept.set(name, bytes);
    this.#bytes += bytes.byteLength;
    for (const first of this.#kept.keys()) {
      if (this.#bytes <= mostKeptBytes) return;
      this.#drop(first);
    }
  }

  #drop(name: string): void {
    this.#bytes -= this.#kept.get(name)?.byteLength ?? 0;
    this.#kept.delete(name);
  }
}

function nameOf({ namespace, agentId }: FileScope, id: string): string {
  return JSON.stringify([namespace, agentId, id]);
}

async function readFile(files: FilesFacet, scope: FileScope, id: string): Promise<Uint8Array | null> {
  const pieces: Uint8Array[] = [];
  try {
    for await (const piece of files.get(scope, id)) pieces.push(piece);
    return Buffer.concat(pieces);
  } catch (error) {
    // A file that was deleted or damaged must not end every later turn of its session.
    if (hasErrorCode(error, "FILE_NOT_FOUND", "STORE_CORRUPT", "CODEC_FAILED")) return null;
    throw error;
  }
}

type FileRules = Parameters<typeof needsBytes>[1];

/** Holds the rules of a reader that may send a file to any provider: what one of them takes is read. */
const rulesOfAny: FileRules = Object.values(providerMappings)
  .map((mapping) => mapping({}).rules)
  .reduce<FileRules>(
    (any, rules) => ({
      imageTypes: new Set([...any.imageTypes, ...rules.imageTypes]),
      fileTypes: new Set([...any.fileTypes, ...rules.fileTypes]),
      maxImageLength: null,
      maxFileBytes: Math.max(any.maxFileBytes, rules.maxFileBytes),
    }),
    { imageTypes: new Set(), fileTypes: new Set(), maxImageLength: null, maxFileBytes: 0 },
  );

interface FileContentsOptions {
  /** Is undefined for a store that keeps no files. */
  readonly files: FilesFacet | undefined;
  readonly scope: FileScope;
  readonly cache: FileCache;
}

/** Holds the bytes of the files to which the records of a window refer. */
export class FileContents {
  readonly #options: FileContentsOptions;
  readonly #bytes = new Map<string, Uint8Array | null>();
  #size = 0;

  constructor(options: FileContentsOptions) {
    this.#options = options;
  }

  /** Returns the bytes of a file, null when it is not there, or undefined when it was not read. */
  get(id: string): Uint8Array | null | undefined {
    return this.#options.files === undefined ? null : this.#bytes.get(id);
  }

  /**
   * Reads what the records need and was not read before. Returns null when that is nothing. `isWhole` states that no
   * other record needs a file. Without `rules`, each file is read that any provider takes.
   */
  load(
    records: readonly StoredRecord[],
    { isWhole, rules = () => rulesOfAny }: { readonly isWhole: boolean; readonly rules?: () => FileRules },
  ): Promise<void> | null {
    let wanted: FileReference[] | null = null;
    for (const { record } of records) for (const reference of fileReferencesOf(record)) (wanted ??= []).push(reference);
    if (isWhole) this.#keepOnly(new Set(wanted?.map(({ fileId }) => fileId)));
    // Nearly all records have no file.
    return wanted === null ? null : this.#read(wanted, rules());
  }

  #keepOnly(ids: ReadonlySet<string>): void {
    for (const [id, bytes] of this.#bytes) {
      if (ids.has(id)) continue;
      this.#bytes.delete(id);
      this.#size -= bytes?.byteLength ?? 0;
    }
  }

  async #read(wanted: readonly FileReference[], rules: FileRules): Promise<void> {
    const { files, scope, cache } = this.#options;
    if (files === undefined) return;
    for (const reference of wanted) {
      const { fileId } = reference;
      // A file that was missing may have been put since.
      if ((this.#bytes.get(fileId) ?? null) !== null || !needsBytes(reference, rules)) continue;
      if (this.#size >= mostSessionBytes) continue;
      const bytes = await cache.read(files, scope, fileId);
      this.#bytes.set(fileId, bytes);
      this.#size += bytes?.byteLength ?? 0;
    }
  }
}

/** A long session is looked through in steps, so that other work can run between them. */
const stepRecords = 100;

/** Reads the files of these records, and returns the function that a history asks for them. */
export async function readFilesOf(
  { store, ref }: { readonly store: SessionStore; readonly ref: FileScope },
  records: readonly StoredRecord[],
  rules: FileRules,
): Promise<(fileId: string) => Uint8Array | null | undefined> {
  const contents = new FileContents({ files: store.files, scope: ref, cache: new FileCache() });
  const slices = createWorkSlices();
  for (let from = 0; from < records.length; from += stepRecords) {
    await contents.load(records.slice(from, from + stepRecords), { isWhole: false, rules: () => rules });
    await slices.next(stepRecords);
  }
  return (fileId) => contents.get(fileId);
}
