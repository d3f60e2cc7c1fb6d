import { loadExisting } from "@throughline/core/internal";
import type { SessionState, StoredRecord } from "@throughline/core";
import { FileCache, FileContents } from "./file-contents.ts";
import { WindowLog, type WindowLogOptions } from "./window-log.ts";

/** Holds a session's window with its records, for a turn of a program that builds its messages itself. */
export class TurnLog extends WindowLog {
  #records: StoredRecord[] = [];
  /** Holds the files of the records, for whichever provider the program asks. */
  readonly #files: FileContents;

  private constructor(options: WindowLogOptions, state: SessionState) {
    super(options, state);
    this.#files = new FileContents({ files: options.store.files, scope: options.ref, cache: new FileCache() });
  }

  /** Reads the window. @throws {ThroughlineError} SESSION_NOT_FOUND */
  static async load(options: WindowLogOptions, signal?: AbortSignal): Promise<TurnLog> {
    const log = new TurnLog(options, await loadExisting(options.store, options.ref));
    await log.readFirst(signal);
    return log;
  }

  /**
   * Returns the records up to now, in order of seq, without the records of abandoned branches. The log releases the
   * records to save memory, because the caller keeps them now.
   */
  takeRecords(): readonly StoredRecord[] {
    const records = this.#records;
    this.#records = [];
    const branch = new Set<string>();
    let wantedId = this.head.headId;
    for (const { id, parentId, side } of records.toReversed()) {
      if (side || id !== wantedId) continue;
      branch.add(id);
      wantedId = parentId;
    }
    return records.filter(({ id, side }) => side || branch.has(id));
  }

  /** Returns the bytes of a file, null when it is not there, or undefined when it was not read. */
  fileOf(fileId: string): Uint8Array | null | undefined {
    return this.#files.get(fileId);
  }

  /** Reads the files of records that are not in the window, such as those of a turn that was executed before. */
  async loadFiles(records: readonly StoredRecord[]): Promise<void> {
    await this.#files.load(records, { isWhole: false });
  }

  protected override beforeTake(records: readonly StoredRecord[], isWhole: boolean): Promise<void> | null {
    return this.#files.load(records, { isWhole });
  }

  protected override begin(): void {
    this.#records = [];
  }

  protected override take(stored: StoredRecord): void {
    this.#records.push(stored);
  }
}
