import { createFinding, ThroughlineError, type Finding, type SessionRef } from "@throughline/core";
import { quote } from "@throughline/core/store";
import { createLineSplitter, type SplitLine } from "@throughline/openclaw-format";
import type { AgentFolder } from "./agent-folder.ts";
import { appendAll, fileError, openIfThere, readRange, replaceFile, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { GroupFlush } from "./group-flush.ts";
import { decodeRowChange, encodeRowChange, type RowChange, type SessionRow } from "./session-row.ts";
import type { LineCodec } from "./stored-line.ts";

export interface EntriesLogOptions {
  readonly files: Files;
  readonly folder: AgentFolder;
  readonly agent: Pick<SessionRef, "namespace" | "agentId">;
  readonly codec: LineCodec;
  readonly nowMs: () => number;
  readonly onFinding: (finding: Finding) => void;
}

interface OpenLog {
  readonly handle: number;
  readonly identity: string;
  readonly flush: GroupFlush;
  isDead: boolean;
}

const scanChunkBytes = 1024 * 1024;

/** The truth about an agent's sessions: lines that are appended and never changed, and what they add up to. */
export class EntriesLog {
  readonly rows: Map<string, SessionRow> = new Map();
  /** Active sessions by key. */
  readonly idByKey: Map<string, string> = new Map();
  /** Sessions that were purged and whose bytes may still have to go. */
  readonly removed: Set<string> = new Set();
  readonly #options: EntriesLogOptions;
  #open: OpenLog | null = null;
  #endBytes = 0;
  #lineCount = 0;
  #tornAt: number | null = null;
  #needsLineFeed = false;

  constructor(options: EntriesLogOptions) {
    this.#options = options;
  }

  /** Reads what others have written since. Cheap when they have not. */
  refresh(): void {
    const { files, folder } = this.#options;
    const path = folder.entriesLog;
    const facts = withFileErrors(path, () => files.facts(path));
    if (facts === null) return this.#reset();
    if (this.#open?.identity !== facts.identity || facts.sizeBytes < this.#endBytes) {
      this.#reset();
      this.#open = this.#openLog();
    }
    if (this.#open !== null && facts.sizeBytes > this.#endBytes) this.#scan(this.#open, facts.sizeBytes);
  }

  /** As `refresh`, under the entries lock: nobody is in the middle of a line, so an end that was cut off is put right. */
  refreshHeld(): void {
    this.refresh();
    const open = this.#open;
    if (open !== null && this.#tornAt !== null)
      withFileErrors(this.#options.folder.entriesLog, () => this.#repairTail(open));
  }

  /** The active session of a key, or the archived one with the id. */
  find(key: string, archiveId: string | undefined): SessionRow | null {
    const row = this.rows.get(archiveId ?? this.idByKey.get(key) ?? "");
    return row === undefined || row.key !== key || row.isArchived !== (archiveId !== undefined) ? null : row;
  }

  /** Commits a change, under the entries lock. */
  write(change: RowChange): void {
    const { files, folder, codec, agent } = this.#options;
    const path = folder.entriesLog;
    this.refreshHeld();
    withFileErrors(path, () => {
      this.#open ??= this.#createLog();
      const bytes = Buffer.from(`${encodeRowChange(change, codec, agent)}\n`);
      appendAll(files, this.#open.handle, bytes, this.#endBytes, path);
      this.#endBytes += bytes.length;
      this.#lineCount++;
    });
    this.apply(change);
  }

  /** Takes a change into the image alone: for a store that cannot be written. */
  apply({ rows, removed = [] }: RowChange): void {
    for (const sessionId of removed) {
      this.#forgetKey(sessionId);
      this.rows.delete(sessionId);
      this.removed.add(sessionId);
    }
    for (const row of rows) this.#forgetKey(row.sessionId);
    for (const row of rows) {
      this.rows.set(row.sessionId, row);
      this.removed.delete(row.sessionId);
      if (!row.isArchived) this.idByKey.set(row.key, row.sessionId);
    }
  }

  /** Writes the log anew with the rows as they are now, so that nothing of what is gone stays in it. Under the entries lock. */
  rewrite(): void {
    const { files, folder, codec, agent } = this.#options;
    const rows = [...this.rows.values()];
    const temporary = folder.temporary("entries.log");
    files.remove(temporary);
    replaceFile(files, temporary, folder.entriesLog, (append) => {
      for (const row of rows) append(Buffer.from(`${encodeRowChange({ op: "save", rows: [row] }, codec, agent)}\n`));
    });
    this.#reset();
    this.refresh();
  }

  /** Resolves when everything written before the call is on the disk. */
  async flushed(): Promise<void> {
    const open = this.#open;
    const path = this.#options.folder.entriesLog;
    if (open === null) throw fileError(new Error("the log was closed before it was flushed"), path, "unknown");
    try {
      await open.flush.flushed();
    } catch (error) {
      open.isDead = true;
      if (this.#open === open) this.#reset();
      throw fileError(error, path, "unknown");
    }
  }

  async close(): Promise<void> {
    await this.#open?.flush.idle();
    this.#reset();
  }

  #forgetKey(sessionId: string): void {
    const old = this.rows.get(sessionId);
    if (old !== undefined && this.idByKey.get(old.key) === sessionId) this.idByKey.delete(old.key);
  }

  #reset(): void {
    const open = this.#open;
    this.#open = null;
    this.#endBytes = 0;
    this.#lineCount = 0;
    this.#tornAt = null;
    this.#needsLineFeed = false;
    this.rows.clear();
    this.idByKey.clear();
    this.removed.clear();
    if (open === null) return;
    const close = (): void => this.#options.files.close(open.handle);
    // A handle's number must not go to another file while a flush still uses it.
    if (open.flush.isRunning) void open.flush.idle().then(close);
    else close();
  }

  #openLog(): OpenLog | null {
    const { files, folder } = this.#options;
    try {
      return this.#opened(openIfThere(files, folder.entriesLog, "append"));
    } catch (error) {
      if (!ThroughlineError.isInstance(error) || error.code !== "STORE_READ_ONLY") throw error;
      return this.#opened(openIfThere(files, folder.entriesLog));
    }
  }

  #createLog(): OpenLog {
    const { files, folder } = this.#options;
    const handle = files.open(folder.entriesLog, "create");
    files.flushFolder(folder.own);
    return this.#opened(handle) as OpenLog;
  }

  #opened(handle: number | null): OpenLog | null {
    if (handle === null) return null;
    const { files } = this.#options;
    const open: OpenLog = {
      handle,
      identity: files.factsOf(handle).identity,
      isDead: false,
      flush: new GroupFlush(async () => {
        if (open.isDead) throw new Error("an earlier flush of the log failed");
        await files.flush(handle);
      }),
    };
    return open;
  }

  #scan(open: OpenLog, sizeBytes: number): void {
    const { files, folder } = this.#options;
    withFileErrors(folder.entriesLog, () => {
      const splitter = createLineSplitter({ byteOffset: this.#endBytes, maxLineBytes: Number.MAX_SAFE_INTEGER });
      let position = this.#endBytes;
      this.#tornAt = null;
      this.#needsLineFeed = false;
      while (position < sizeBytes) {
        const bytes = readRange(files, open.handle, position, Math.min(position + scanChunkBytes, sizeBytes));
        if (bytes.length === 0) break;
        for (const line of splitter.push(bytes)) this.#take(line);
        position += bytes.length;
      }
      const last = splitter.end();
      // Its writer may be in the middle of it, or dead: whoever writes next, under the lock, finds out.
      if (last !== null) {
        this.#tornAt = last.byteOffset;
        this.#needsLineFeed =
          decodeRowChange(Buffer.from(last.bytes).toString(), this.#options.codec, this.#options.agent)
            ?.isChecksumRight === true;
      }
    });
  }

  #take(line: SplitLine): void {
    const { codec, agent, folder, onFinding } = this.#options;
    this.#lineCount++;
    this.#endBytes = line.byteOffset + line.sizeBytes + 1;
    const place = { path: folder.entriesLog, line: this.#lineCount, byteOffset: line.byteOffset };
    const decoded = decodeRowChange(Buffer.from(line.bytes).toString(), codec, agent);
    if (decoded === null)
      return onFinding(createFinding("ENTRY_UNREADABLE", "A line of the entries log cannot be read.", place));
    if (!decoded.isChecksumRight)
      onFinding(createFinding("CHECKSUM_MISMATCH", `A line of the entries log does not fit its checksum.`, place));
    this.apply(decoded.change);
  }

  #repairTail(open: OpenLog): void {
    if (this.#tornAt === null) return;
    const { files, folder, nowMs, onFinding } = this.#options;
    const sizeBytes = files.factsOf(open.handle).sizeBytes;
    if (this.#needsLineFeed) {
      appendAll(files, open.handle, Buffer.from("\n"), sizeBytes, folder.entriesLog);
      this.#scan(open, sizeBytes + 1);
      return;
    }
    const keptAt = `${folder.torn}/entries.log.${nowMs()}.${this.#tornAt}`;
    const copy = files.open(keptAt, "create");
    try {
      appendAll(files, copy, readRange(files, open.handle, this.#tornAt, sizeBytes), 0, keptAt);
      files.flushNow(copy);
    } finally {
      files.close(copy);
    }
    files.truncate(open.handle, this.#tornAt);
    const message = `${sizeBytes - this.#tornAt} bytes at the end were never acknowledged; they are kept in ${quote(keptAt)}.`;
    onFinding(
      createFinding("TAIL_TORN", message, { path: folder.entriesLog, byteOffset: this.#tornAt, repaired: true }),
    );
    this.#tornAt = null;
  }
}
