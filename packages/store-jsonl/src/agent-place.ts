import { createFinding } from "@throughline/core/internal";
import type { AgentFolder } from "./agent-folder.ts";
import { fileError, withFileErrors } from "./file-work.ts";
import type { StoreContext } from "./store-context.ts";

export class AgentPlace {
  readonly #context: StoreContext;
  readonly #folder: AgentFolder;
  readonly #logChanges: () => number;
  #hasMark = false;
  /** Counts the log's changes up to the last check for the mark, so that an unchanged log needs no new check. */
  #lookedAt = -1;
  #isRemote: boolean | null = null;

  /** `logChanges` returns a number that grows with every change of the entries log, by any process. */
  constructor(context: StoreContext, folder: AgentFolder, logChanges: () => number) {
    this.#context = context;
    this.#folder = folder;
    this.#logChanges = logChanges;
  }

  /**
   * Tests whether other machines may share any part of the folder. Each part is checked, because each may be a mount
   * point.
   */
  get isRemote(): boolean {
    const { files } = this.#context;
    const { agent, sessions, own } = this.#folder;
    if (this.#isRemote !== null) return this.#isRemote;
    if (files.facts(agent) === null) return false;
    const present = [sessions, own].filter((path) => files.facts(path) !== null);
    return (this.#isRemote = [agent, ...present].some((path) => files.fileSystem(path) !== "local"));
  }

  get isWritable(): boolean {
    const { files } = this.#context;
    const { agent, own } = this.#folder;
    return files.isWritable(agent) && (files.facts(own) === null || files.isWritable(own));
  }

  warn(): void {
    if (!this.isRemote || !this.#context.locks.isKernels) return;
    const message =
      "The folder is on a network file system, or may be: its server decides whether locks exclude other hosts.";
    const finding = createFinding("FILE_SYSTEM_REMOTE", message, { path: this.#folder.agent });
    this.#context.emit({ name: "finding", ref: null, finding });
  }

  locksFor(sessionIds: readonly string[], fileNames: readonly string[], isEntriesToo: boolean): readonly string[] {
    const { entriesLock } = this.#folder;
    const own = sessionIds.map((sessionId) => this.#folder.sessionLock(sessionId));
    const theirs = this.isOpenclaws ? fileNames.map((name) => `${this.#folder.session(name)}.lock`) : [];
    return [...own, ...(isEntriesToo ? [entriesLock] : []), ...theirs];
  }

  /**
   * Returns the locks for writing sessions.json. OpenClaw's lock is always included, because OpenClaw may start to use
   * any folder.
   */
  viewLocks(): readonly string[] {
    return [this.#folder.entriesLock, this.sessionsLock];
  }

  get sessionsLock(): string {
    return `${this.#folder.sessionsJson}.lock`;
  }

  /**
   * Makes every process take OpenClaw's lock files from now on. The caller must write to the entries log afterwards,
   * because other processes check for the mark only when the log changes.
   */
  markOpenclaw(): void {
    const { files } = this.#context;
    if (this.isOpenclaws) return;
    try {
      files.close(files.open(this.#folder.openclawMark, "create"));
    } catch (error) {
      // Another process has created the mark already, which has the same effect.
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw fileError(error, this.#folder.openclawMark);
    }
    this.#hasMark = true;
  }

  /**
   * Is true once OpenClaw has used the folder. The mark is read again only after a change of the log, because every
   * process that sets it also writes to the log.
   */
  get isOpenclaws(): boolean {
    const changes = this.#logChanges();
    if (this.#hasMark || changes === this.#lookedAt) return this.#hasMark;
    this.#lookedAt = changes;
    const { openclawMark } = this.#folder;
    return (this.#hasMark = withFileErrors(openclawMark, () => this.#context.files.facts(openclawMark) !== null));
  }
}
