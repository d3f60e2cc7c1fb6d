import { fileIdsOf, type FileScope, type ListedFile } from "@throughline/core/internal";
import type { SessionRecord } from "@throughline/core";
import {
  type FileBackend,
  fileChunkBytes,
  type FileUpload,
  type KeptFile,
  uploadEndsMs,
} from "@throughline/store-kit/internal";
import type { AgentFolder } from "./agent-folder.ts";
import { ageMsOf, appendAll, flushFolder, makeFolders, openIfThere, readRange, withFileErrors } from "./file-work.ts";
import { FileReferences, LostReferences } from "./file-references.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";

const partEnd = ".part";
const codedEnd = ".coded";

/** The last bytes of a coded file: the id of its upload, and its size before it was coded. */
const uploadLength = 36;
const sizeLength = 16;
const trailerLength = uploadLength + sizeLength;

/** Holds what the files need of their agent. */
interface FilesAgent {
  readonly folder: AgentFolder;
  readonly exists: boolean;
  readonly log: { refresh(): void; row(sessionId: string): SessionRow | null };
  prepareWriting(): void;
  prepare(row: SessionRow): Promise<void> | null;
  open(row: SessionRow): { readonly transcript: { readonly head: { readonly lastSeq: number } } } | null;
}

/** Reads the records of a session behind a seq, page by page. */
export type ReadRecords = (row: SessionRow, afterSeq: number) => AsyncIterable<readonly SessionRecord[]>;

/**
 * Keeps the files of an agent in `throughline/files`, each under its id. Without a codec the content is the file
 * itself. Under a codec each chunk is coded, with its length before it.
 */
export class StoredFiles implements FileBackend {
  readonly #context: StoreContext;
  readonly #agent: FilesAgent;
  readonly #references: FileReferences;
  readonly #records: ReadRecords;
  /** Maps the upload of a coded file to its id. */
  readonly #ids = new Map<string, string>();
  /** Holds where the next chunk of a coded file begins, because the chunks before it have any length. */
  #next: { readonly upload: string; readonly number: number; readonly offset: number } | null = null;

  constructor(context: StoreContext, agent: FilesAgent, records: ReadRecords) {
    this.#context = context;
    this.#agent = agent;
    this.#references = new FileReferences(context.files, agent.folder.fileReferences);
    this.#records = records;
  }

  addChunk(upload: FileUpload, number: number, bytes: Uint8Array): void {
    const { isCoded } = this.#context.codec;
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.byteLength);
    this.#append(upload, isCoded ? Buffer.concat([length, bytes]) : bytes, number === 0);
  }

  #append(upload: FileUpload, bytes: Uint8Array, isFirst: boolean): void {
    const { files } = this.#context;
    const { folder } = this.#agent;
    const path = this.#partOf(upload);
    if (isFirst) {
      this.#agent.prepareWriting();
      if (files.facts(folder.files) === null) makeFolders(files, folder.files);
    }
    withFileErrors(path, () => {
      const handle = files.open(path, isFirst ? "create" : "append");
      try {
        appendAll(files, handle, bytes, files.factsOf(handle).sizeBytes, path);
      } finally {
        files.close(handle);
      }
    });
  }

  async publish(upload: FileUpload, { id, bytes }: Pick<KeptFile, "id" | "bytes">): Promise<boolean> {
    const { files, codec } = this.#context;
    const { folder } = this.#agent;
    const part = this.#partOf(upload);
    if (bytes === 0) this.#append(upload, new Uint8Array(), true);
    if (codec.isCoded) this.#append(upload, Buffer.from(upload.id + String(bytes).padStart(sizeLength, "0")), false);
    await this.#flush(part);
    return this.#locked(() => {
      // A reader may have begun with the upload that is there.
      if (codec.isCoded && files.facts(this.#pathOf(id)) !== null) return false;
      files.rename(part, this.#pathOf(id));
      flushFolder(files, folder.files);
      return true;
    });
  }

  async #flush(path: string): Promise<void> {
    const { files } = this.#context;
    const handle = withFileErrors(path, () => files.open(path, "append"));
    try {
      await files.flush(handle);
    } finally {
      files.close(handle);
    }
  }

  drop(upload: FileUpload): void {
    const { files } = this.#context;
    if (files.facts(this.#partOf(upload)) !== null) files.remove(this.#partOf(upload));
  }

  find(_scope: FileScope, id: string): KeptFile | null {
    const { files, codec } = this.#context;
    const path = this.#pathOf(id);
    const handle = this.#agent.exists ? openIfThere(files, path) : null;
    if (handle === null) return null;
    try {
      const { sizeBytes, modifiedNs } = files.factsOf(handle);
      const storedAtMs = Number(modifiedNs / 1_000_000n);
      if (!codec.isCoded) return { id, bytes: sizeBytes, storedAtMs, upload: id };
      const trailer = Buffer.from(readRange(files, handle, sizeBytes - trailerLength, sizeBytes)).toString();
      const upload = trailer.slice(0, uploadLength);
      this.#ids.set(upload, id);
      return { id, bytes: Number(trailer.slice(uploadLength)), storedAtMs, upload };
    } finally {
      files.close(handle);
    }
  }

  chunk({ id: upload }: FileUpload, number: number): Uint8Array | null {
    const { files, codec } = this.#context;
    const handle = openIfThere(files, this.#pathOf(codec.isCoded ? (this.#ids.get(upload) ?? upload) : upload));
    if (handle === null) return null;
    try {
      if (codec.isCoded) return this.#codedChunk(handle, upload, number);
      const bytes = readRange(files, handle, number * fileChunkBytes, (number + 1) * fileChunkBytes);
      return bytes.byteLength === 0 ? null : bytes;
    } finally {
      files.close(handle);
    }
  }

  #codedChunk(handle: number, upload: string, number: number): Uint8Array | null {
    const { files } = this.#context;
    const known = this.#next;
    let { number: at, offset } = known?.upload === upload && known.number <= number ? known : { number: 0, offset: 0 };
    for (;;) {
      const head = Buffer.from(readRange(files, handle, offset, offset + 4));
      if (head.length < 4) return null;
      const end = offset + 4 + head.readUInt32BE();
      if (at === number) {
        this.#next = { upload, number: number + 1, offset: end };
        return readRange(files, handle, offset + 4, end);
      }
      at += 1;
      offset = end;
    }
  }

  async remove(_scope: FileScope, id: string): Promise<boolean> {
    if (!this.#agent.exists) return false;
    return this.#locked(() => this.#removeFile(id));
  }

  #removeFile(id: string): boolean {
    const { files } = this.#context;
    const path = this.#pathOf(id);
    if (files.facts(path) === null) return false;
    files.remove(path);
    flushFolder(files, this.#agent.folder.files);
    return true;
  }

  async list(scope: FileScope, afterId: string, limit: number): Promise<readonly ListedFile[]> {
    if (!this.#agent.exists) return [];
    const counts = await this.#counts();
    const ids = [...new Set([...counts.keys(), ...this.#storedIds()])].filter((id) => id > afterId).toSorted();
    return ids.slice(0, limit).map((id) => {
      const { bytes = null, storedAtMs = null } = this.find(scope, id) ?? {};
      return { id, bytes, storedAtMs, references: counts.get(id) ?? 0 };
    });
  }

  /** Counts the records that refer to each file. Only sessions that ever referred to a file are read. */
  async #counts(): Promise<ReadonlyMap<string, number>> {
    const counts = new Map<string, number>();
    this.#agent.log.refresh();
    for (const sessionId of this.#references.sessions()) {
      const row = this.#agent.log.row(sessionId);
      if (row === null) continue;
      for await (const records of this.#records(row, 0))
        for (const record of records) for (const id of fileIdsOf(record)) counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    return counts;
  }

  #storedIds(): readonly string[] {
    const { files, codec } = this.#context;
    const { folder } = this.#agent;
    const names = withFileErrors(folder.files, () =>
      files.facts(folder.files) === null ? [] : files.names(folder.files),
    );
    const end = codec.isCoded ? codedEnd : "";
    return names.flatMap((name) =>
      /^[0-9a-f]{64}$/.test(name.slice(0, 64)) && name.slice(64) === end ? [name.slice(0, 64)] : [],
    );
  }

  /** Notes what records are about to refer to, and runs their append. The note is durable before the append. */
  async referring<Result>(sessionId: string, ids: readonly string[], append: () => Promise<Result>): Promise<Result> {
    this.#agent.prepareWriting();
    await this.#locked(() => this.#references.add(sessionId, ids));
    return append();
  }

  /**
   * Makes sure, under the lock of the session, that no redaction of another process has taken the note back.
   * @throws {LostReferences}
   */
  assertReferred(sessionId: string, ids: readonly string[]): void {
    if (ids.length === 0) return;
    const noted = this.#references.of(sessionId);
    if (!ids.every((id) => noted.includes(id))) throw new LostReferences();
  }

  /**
   * Makes the references of a session those of its records, and deletes files to which nothing refers any more. The
   * records are read without a lock. Under the lock of the session only those are missing that were appended since, and
   * then the rest is read first.
   */
  async recount(row: SessionRow): Promise<void> {
    const ids = new Set<string>();
    for (let reachedSeq = 0, isDone = false; !isDone;) {
      await this.#agent.prepare(row);
      const lastSeq = this.#lastSeq(row);
      for await (const records of this.#records(row, reachedSeq))
        for (const record of records) for (const id of fileIdsOf(record)) ids.add(id);
      reachedSeq = lastSeq;
      isDone = await this.#locked(() => {
        if (this.#lastSeq(row) !== lastSeq) return false;
        const gone = this.#references.of(row.sessionId).filter((id) => !ids.has(id));
        this.#references.set(row.sessionId, [...ids]);
        this.#collect(gone);
        return true;
      }, this.#agent.folder.sessionLock(row.sessionId));
    }
  }

  #lastSeq(row: SessionRow): number {
    return this.#agent.open(row)?.transcript.head.lastSeq ?? 0;
  }

  has(id: string): boolean {
    return this.#context.files.facts(this.#pathOf(id)) !== null;
  }

  refersToFiles(sessionId: string): boolean {
    return this.#references.of(sessionId).length > 0;
  }

  /** Deletes the files of purged sessions, also of purges that another process did not finish. */
  async collectPurged(): Promise<void> {
    if (this.#references.sessions().length === 0) return;
    await this.#locked(() => {
      this.#agent.log.refresh();
      const purged = this.#references.sessions().filter((sessionId) => this.#agent.log.row(sessionId) === null);
      const ids = new Set(purged.flatMap((sessionId) => this.#references.of(sessionId)));
      for (const sessionId of purged) this.#references.set(sessionId, []);
      this.#collect([...ids]);
    });
  }

  /** Deletes each of these files to which no session refers any more, and uploads that have ended long ago. */
  #collect(ids: readonly string[]): void {
    const { files } = this.#context;
    const { folder } = this.#agent;
    const used = new Set(this.#references.sessions().flatMap((sessionId) => this.#references.of(sessionId)));
    for (const id of ids) if (!used.has(id)) this.#removeFile(id);
    for (const name of files.facts(folder.files) === null ? [] : files.names(folder.files)) {
      const path = `${folder.files}/${name}`;
      const facts = name.endsWith(partEnd) ? files.facts(path) : null;
      if (facts !== null && ageMsOf(facts) > uploadEndsMs) files.remove(path);
    }
  }

  /** Returns the paths of all files and references, for a backup. */
  paths(): readonly string[] {
    const { folder } = this.#agent;
    const stored = this.#storedIds().map((id) => this.#pathOf(id));
    return [...stored, ...this.#references.sessions().map((name) => `${folder.fileReferences}/${name}`)];
  }

  #locked<Result>(work: () => Result, ...more: readonly string[]): Promise<Result> {
    const { folder } = this.#agent;
    return this.#context.locks.hold([...more, folder.filesLock], () => withFileErrors(folder.files, work));
  }

  #partOf({ id }: FileUpload): string {
    return `${this.#agent.folder.files}/${id}${partEnd}`;
  }

  #pathOf(id: string): string {
    return `${this.#agent.folder.files}/${id}${this.#context.codec.isCoded ? codedEnd : ""}`;
  }
}
