import { type Clock, hasErrorCode, type RandomSource, sessionRef, type SessionStore } from "@throughline/core";
import { causeText, isFields, monotonicMs, systemClock, systemRandom } from "@throughline/core/internal";
import { type FolderPatterns, folderPatterns } from "../folder-patterns.ts";
import { HandOffSearch } from "../handed-off.ts";
import { importChanged } from "../import-paths.ts";
import { receiptOf } from "../import-receipt.ts";
import type { ImportOptions, ImportSource } from "../import-types.ts";
import { fileFacts } from "../node/source-files.ts";
import { KeptReadings } from "../kept-readings.ts";
import { FolderChanges } from "./folder-changes.ts";
import { type ChangedFolders, KnownFiles } from "./known-files.ts";
import { readMemory, writeMemory } from "./memory-file.ts";

/** Sets what a sync reads, and where it writes. */
export interface SourceSyncOptions {
  /** Opens the store for each pass, because it may be replaced meanwhile. The caller closes it. */
  readonly openStore: () => Promise<SessionStore>;
  /** Lists the folders and files to read. It is called for each search of all of them. */
  readonly places: () => readonly string[] | Promise<readonly string[]>;
  /** Sets how sources are read and where sessions get their place. */
  readonly options: Omit<ImportOptions, "signal" | "onProgress">;
  /** Lists the places that a person named. What cannot be read there is reported, also an empty folder. @default none */
  readonly named?: readonly string[];
  /** True if the memory holds files of other places, too. @default false */
  readonly isPartial?: boolean;
  /** Lists patterns of folders whose sessions are left out. @default none */
  readonly excludes?: readonly string[];
  /** Names the user's home, which `~` in a pattern stands for. */
  readonly userHome: string;
  /** Names the file that remembers what was read; null to remember it for the life of the sync only. */
  readonly memoryPath: string | null;
  /** Names the store and the settings. The memory of another store, or of other settings, is not used. */
  readonly identity: string;
  readonly clock?: Clock;
  readonly random?: RandomSource;
  /** Receives what went wrong without ending the sync, such as a home that cannot be written. */
  readonly onNote?: (message: string) => void;
  readonly progress?: PassProgress;
}

/** Receives what happens in each pass, before the caller of the pass does. */
export interface PassProgress {
  /** Reports that a pass begins. */
  readonly begin?: () => void;
  readonly step: NonNullable<ImportOptions["onProgress"]>;
  /** Receives the result of each source that was opened. */
  readonly end?: (source: ImportSource) => void;
}

/**
 * Names a session that the store held after a pass. A store without it, such as a new one in the same place or one that
 * came back from a backup, does not hold what the memory says.
 */
interface Witness {
  readonly agentId: string;
  readonly key: string;
  readonly sessionId: string;
  readonly sizeBytes: number;
}

/** Limits how often the memory is written while a sync goes on, because it may be a file of megabytes. */
const saveEveryMs = 10_000;

/**
 * Imports what is new at some places, again and again. A file that is as the last import left it is not opened.
 */
export class SourceSync implements AsyncDisposable {
  readonly #options: SourceSyncOptions;
  readonly #clock: Clock;
  readonly #excludes: FolderPatterns;
  readonly #changes: FolderChanges;
  readonly #known: KnownFiles;
  #handOffs: { readonly store: SessionStore; readonly search: HandOffSearch } | null = null;
  /** Only a sync that goes on sees a file grow. */
  #readings: KeptReadings | null = null;
  #witness: Witness | null = null;
  #isRead = false;
  #savedAtMs: number = monotonicMs();
  #hasTold = false;

  constructor(options: SourceSyncOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#excludes = folderPatterns(options.excludes ?? [], options);
    this.#changes = new FolderChanges(this.#clock);
    this.#known = new KnownFiles(
      () => this.#clock.nowMs(),
      (folder) => this.#changes.see(folder),
    );
  }

  /** Counts the files that the last pass did not open. */
  get unchanged(): number {
    return this.#known.unchanged;
  }

  /** Imports what is new, and yields one result for each source that was opened. */
  async *pass(signal?: AbortSignal, changed: ChangedFolders | null = null): AsyncGenerator<ImportSource> {
    const store = await this.#options.openStore();
    await this.#readMemory(store);
    this.#known.begin(changed);
    const { options, progress } = this.#options;
    progress?.begin?.();
    const given = { ...options, signal, onProgress: progress?.step };
    const readings = this.#readings === null ? {} : { readings: this.#readings };
    const memory = { look: this.#known, handOffs: this.#handOffsOf(store), excludes: this.#excludes, ...readings };
    let last: ImportSource | null = null;
    try {
      const places = await this.#options.places();
      for await (const source of importChanged(store, places, given, memory)) {
        if (this.#isEmptyPlace(source, places, changed)) continue;
        this.#known.took(source.path, source.state === "refused");
        progress?.end?.(source);
        last = laterWitness(last, source);
        yield source;
        if (monotonicMs() - this.#savedAtMs >= saveEveryMs) await this.#save(store, last);
      }
      this.#known.keep("all");
      if (changed === null && this.#options.isPartial !== true) this.#known.forgetMissing();
    } finally {
      await this.#save(store, last);
    }
  }

  /**
   * Yields a pass at once, and further ones when something changed, until the signal aborts. The caller reads each pass
   * to its end.
   */
  async *passes(signal: AbortSignal): AsyncGenerator<AsyncGenerator<ImportSource>> {
    this.#changes.begin();
    this.#readings ??= new KeptReadings();
    let changed: ChangedFolders | null = null;
    while (!signal.aborted) {
      const beganMs = monotonicMs();
      yield this.pass(signal, changed);
      // A search of all places is rare, and what was written meanwhile does not wait for it once more.
      this.#changes.tookMs(changed === null ? 0 : monotonicMs() - beganMs);
      changed = await this.#changes.next(this.#known, signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#changes[Symbol.dispose]();
    await this.#write();
  }

  /** A program whose folder has no sessions is no problem. */
  #isEmptyPlace({ path, error }: ImportSource, places: readonly string[], changed: ChangedFolders | null): boolean {
    if (!hasErrorCode(error, "FORMAT_UNKNOWN", "FILE_NOT_FOUND") || !places.includes(path)) return false;
    if (fileFacts(path)?.isFolder === false) return false;
    return changed !== null || this.#options.named?.includes(path) !== true;
  }

  async #readMemory(store: SessionStore): Promise<void> {
    const { memoryPath, identity } = this.#options;
    if (!this.#isRead && memoryPath !== null) {
      let isOurs: boolean | null = null;
      for await (const value of readMemory(memoryPath)) {
        if (isOurs === null) {
          isOurs = isFields(value) && value["v"] === memoryVersion && value["identity"] === identity;
          if (isOurs) this.#witness = witnessIn((value as { readonly witness?: unknown }).witness);
        } else if (isOurs) this.#known.take(value);
      }
    }
    this.#isRead = true;
    if (await this.#isHeldBy(store)) return;
    this.#known.clear();
    this.#witness = null;
  }

  /** True if the store still holds what the last pass has written. */
  async #isHeldBy(store: SessionStore): Promise<boolean> {
    if (this.#witness === null) return this.#known.isEmpty;
    const { sessionId, sizeBytes } = this.#witness;
    const held = await witnessOf(store, this.#witness, this.#options.options.namespace ?? "");
    return held?.sessionId === sessionId && held.sizeBytes >= sizeBytes;
  }

  async #save(store: SessionStore, last: ImportSource | null): Promise<void> {
    this.#known.keep("read");
    this.#savedAtMs = monotonicMs();
    // A session that was only looked at may be in a backup that lacks what was written last.
    const isLater = last !== null && (last.state !== "unchanged" || this.#witness === null);
    const witness = isLater ? await witnessOf(store, last, this.#options.options.namespace ?? "") : null;
    if (witness !== null) this.#witness = witness;
    await this.#write();
  }

  /** A memory that cannot be written costs time in the next run only, so the sync goes on. */
  async #write(): Promise<void> {
    const { memoryPath, identity, random = systemRandom, onNote, options } = this.#options;
    if (memoryPath === null || !this.#known.isChanged || options.dryRun === true) return;
    const head = JSON.stringify({ v: memoryVersion, identity, witness: this.#witness });
    const known = this.#known;
    try {
      await writeMemory(
        memoryPath,
        (function* () {
          yield head;
          yield* known.texts();
        })(),
        random,
      );
    } catch (error) {
      if (!this.#hasTold) onNote?.(`The list of read files cannot be written to ${memoryPath}: ${causeText(error)}`);
      this.#hasTold = true;
    }
  }

  #handOffsOf(store: SessionStore): HandOffSearch {
    if (this.#handOffs?.store !== store)
      this.#handOffs = { store, search: new HandOffSearch(store, this.#options.options.namespace ?? "") };
    return this.#handOffs.search;
  }
}

const memoryVersion = 1;

function witnessIn(value: unknown): Witness | null {
  if (!isFields(value)) return null;
  const { agentId, key, sessionId, sizeBytes } = value;
  if (typeof agentId !== "string" || typeof key !== "string" || typeof sessionId !== "string") return null;
  return typeof sizeBytes === "number" ? { agentId, key, sessionId, sizeBytes } : null;
}

/** A session that was written says more than one that was only looked at. */
function laterWitness(last: ImportSource | null, source: ImportSource): ImportSource | null {
  const { state, archived, key, agentId } = source;
  if (archived || key === null || agentId === null) return last;
  if (state === "imported" || state === "grown") return source;
  return state === "unchanged" && (last === null || last.state === "unchanged") ? source : last;
}

async function witnessOf(
  store: SessionStore,
  { agentId, key }: Pick<ImportSource, "agentId" | "key">,
  namespace: string,
): Promise<Witness | null> {
  if (agentId === null || key === null) return null;
  const state = await store.load(sessionRef({ key, agentId, namespace }));
  const receipt = state === null ? null : receiptOf(state.entry);
  if (state === null || receipt === null) return null;
  return { agentId, key, sessionId: state.sessionId, sizeBytes: receipt.sizeBytes };
}
