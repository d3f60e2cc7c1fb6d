import { createFinding } from "@throughline/core/internal";
import type { AgentFolder } from "./agent-folder.ts";
import { fileError, withFileErrors } from "./file-work.ts";
import type { StoreContext } from "./store-context.ts";

/** What an agent's folder lies on and who else uses it: both decide how it is locked. */
export class AgentPlace {
  readonly #context: StoreContext;
  readonly #folder: AgentFolder;
  readonly #logChanges: () => number;
  #hasMark = false;
  /** How often the entries log had changed when the mark was looked for last. */
  #lookedAt = -1;
  #isRemote: boolean | null = null;

  /** `logChanges`: grows with every change of the entries log, by whichever process. */
  constructor(context: StoreContext, folder: AgentFolder, logChanges: () => number) {
    this.#context = context;
    this.#folder = folder;
    this.#logChanges = logChanges;
  }

  /** Whether other machines may have the folder too, or a part of it: each may be a mount of its own. */
  get isRemote(): boolean {
    const { files } = this.#context;
    const { agent, sessions, own } = this.#folder;
    if (this.#isRemote !== null) return this.#isRemote;
    if (files.facts(agent) === null) return false;
    const present = [sessions, own].filter((path) => files.facts(path) !== null);
    return (this.#isRemote = [agent, ...present].some((path) => files.fileSystem(path) !== "local"));
  }

  /** Whether this process may write here. */
  get isWritable(): boolean {
    const { files } = this.#context;
    const { agent, own } = this.#folder;
    return files.isWritable(agent) && (files.facts(own) === null || files.isWritable(own));
  }

  /** Says what the kernel's locks cannot promise here. */
  warn(): void {
    if (!this.isRemote || !this.#context.locks.isKernels) return;
    const message =
      "The folder is on a network file system, or may be: its server decides whether locks exclude other hosts.";
    const finding = createFinding("FILE_SYSTEM_REMOTE", message, { path: this.#folder.agent });
    this.#context.emit({ name: "finding", ref: null, finding });
  }

  /** The locks for writing to sessions' files, and to the entries where they change too. */
  locksFor(sessionIds: readonly string[], fileNames: readonly string[], isEntriesToo: boolean): readonly string[] {
    const { entriesLock } = this.#folder;
    const own = sessionIds.map((sessionId) => this.#folder.sessionLock(sessionId));
    const theirs = this.isOpenclaws ? fileNames.map((name) => `${this.#folder.session(name)}.lock`) : [];
    return [...own, ...(isEntriesToo ? [entriesLock] : []), ...theirs];
  }

  /** The locks for writing sessions.json: OpenClaw may begin to use any folder, and its lock is how it says so. */
  viewLocks(): readonly string[] {
    return [this.#folder.entriesLock, this.sessionsLock];
  }

  /** OpenClaw's lock of sessions.json. */
  get sessionsLock(): string {
    return `${this.#folder.sessionsJson}.lock`;
  }

  /** From now on OpenClaw's lock files are taken too, by every process. Who marks it writes to the entries log then. */
  markOpenclaw(): void {
    const { files } = this.#context;
    if (this.isOpenclaws) return;
    try {
      files.close(files.open(this.#folder.openclawMark, "create"));
    } catch (error) {
      // Another process has met it too.
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw fileError(error, this.#folder.openclawMark);
    }
    this.#hasMark = true;
  }

  /** A folder that OpenClaw has used stays one. Who marks it changes the log too, so that nobody need look for nothing. */
  get isOpenclaws(): boolean {
    const changes = this.#logChanges();
    if (this.#hasMark || changes === this.#lookedAt) return this.#hasMark;
    this.#lookedAt = changes;
    const { openclawMark } = this.#folder;
    return (this.#hasMark = withFileErrors(openclawMark, () => this.#context.files.facts(openclawMark) !== null));
  }
}
