import { createFinding } from "@throughline/core";
import type { AgentFolder } from "./agent-folder.ts";
import type { StoreContext } from "./store-context.ts";

/** What an agent's folder lies on and who else uses it: both decide how it is locked. */
export class AgentPlace {
  readonly #context: StoreContext;
  readonly #folder: AgentFolder;
  #hasMark: boolean | null = null;
  #isRemote: boolean | null = null;

  constructor(context: StoreContext, folder: AgentFolder) {
    this.#context = context;
    this.#folder = folder;
  }

  /** Whether other machines may have the folder too. */
  get isRemote(): boolean {
    const { files, root } = this.#context;
    if (this.#isRemote !== null) return this.#isRemote;
    if (files.facts(root) === null) return false;
    return (this.#isRemote = files.fileSystem(root) === "network");
  }

  /** Says what the kernel's locks cannot promise here. */
  warn(): void {
    if (!this.isRemote || !this.#context.locks.isKernels) return;
    const message = "The folder is on another machine: whether its locks exclude other hosts is for its server to say.";
    const finding = createFinding("FILE_SYSTEM_REMOTE", message, { path: this.#folder.agent });
    this.#context.emit({ name: "finding", ref: null, finding });
  }

  /** The locks for writing to sessions' files, and to the entries where they change too. */
  locksFor(sessionIds: readonly string[], fileNames: readonly string[], isEntriesToo: boolean): readonly string[] {
    const { entriesLock } = this.#folder;
    const own = sessionIds.map((sessionId) => this.#folder.sessionLock(sessionId));
    const theirs = this.#isOpenclaws() ? fileNames.map((name) => `${this.#folder.session(name)}.lock`) : [];
    return [...own, ...(isEntriesToo ? [entriesLock] : []), ...theirs];
  }

  /** From now on OpenClaw's lock files are taken too. Under the entries lock. */
  markOpenclaw(): void {
    const { files } = this.#context;
    if (this.#isOpenclaws()) return;
    files.close(files.open(this.#folder.openclawMark, "create"));
    this.#hasMark = true;
  }

  /** Looked for once: a folder that OpenClaw has used stays one. */
  #isOpenclaws(): boolean {
    return (this.#hasMark ??= this.#context.files.facts(this.#folder.openclawMark) !== null);
  }
}
