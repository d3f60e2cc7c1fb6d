import { createFinding } from "@throughline/core/internal";
import type { AgentFolder } from "./agent-folder.ts";
import type { StoreContext } from "./store-context.ts";

/** Says what the file system of an agent's folder allows. */
export class AgentLocation {
  readonly #context: StoreContext;
  readonly #folder: AgentFolder;
  #isRemote: boolean | null = null;

  constructor(context: StoreContext, folder: AgentFolder) {
    this.#context = context;
    this.#folder = folder;
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
}
