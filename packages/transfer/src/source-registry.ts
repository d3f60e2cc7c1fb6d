import type { RandomSource, SessionRef, SessionState, SessionStore } from "@throughline/core";
import { handedOffOf } from "./handed-off.ts";
import { createImportedSources, type ImportedSources } from "./imported-sources.ts";
import { receiptOf } from "./import-receipt.ts";
import type { ImportReceipt } from "./receipt-types.ts";
import { createScratchMap, type ScratchMap } from "./scratch-map.ts";
import type { TranscriptSource } from "./transcript-source.ts";
import { archivedMark, receiptMarks, sourceMarks, type MarkedSource } from "./source-marks.ts";

/** Holds the receipt's facts about an imported session, without the session, which may be large. */
export interface MadeSession {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly path: string;
  readonly sourceId: string;
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly sourceKey: string | null;
  readonly askedKey: string | null;
}

interface SourceClaim {
  readonly path: string;
  readonly key: string | null;
  readonly isArchived: boolean;
}

/**
 * Maps sources to the sessions they became, even after a move, and remembers sources whose sessions were purged.
 * The store's sessions are listed once, and only if a source is not where an import put it. The results stay outside of
 * the heap, because a store may hold 100,000 sessions.
 */
export interface SourceRegistry extends Disposable {
  /** Must be called before the import; sessions whose marks may be missing get them. */
  look(): Promise<void>;
  /** Returns every session from that path, or from a source with that id. */
  candidates(path: string, sourceId: string): Promise<readonly MadeSession[]>;
  /** True if the source was imported and no session of it remains. */
  isGone(source: MarkedSource): Promise<boolean>;
  /**
   * Returns the key of the session that was handed off in this file; null for any other file, and once the file has
   * grown.
   */
  handedOffFrom(source: Pick<TranscriptSource, "sessionId" | "sizeBytes">): Promise<string | null>;
  /** True if an earlier import archived the session of this source. */
  wasArchived(path: string, agentId: string): Promise<boolean>;
  /** Must be called before a session is created. */
  begin(): Promise<void>;
  /** Must be called for each session that an import creates, archives or moves to another source. */
  made(state: SessionState, receipt: ImportReceipt): Promise<void>;
  claim(agentId: string, sessionId: string, claim: SourceClaim): void;
  claimOf(agentId: string, sessionId: string): SourceClaim | null;
  /** Resolves once the store holds the marks of this import. */
  finish(): Promise<void>;
}

const pageSessions = 200;

export interface RegistryOptions {
  readonly namespace: string;
  readonly isDryRun: boolean;
  readonly random: RandomSource;
}

export function createSourceRegistry(store: SessionStore, options: RegistryOptions): SourceRegistry {
  return new StoreSources(store, options);
}

class StoreSources implements SourceRegistry {
  readonly #store: SessionStore;
  readonly #namespace: string;
  readonly #isDryRun: boolean;
  readonly #kept: ImportedSources;
  readonly #map: ScratchMap = createScratchMap();
  #opened: Promise<void> | null = null;

  constructor(store: SessionStore, { namespace, isDryRun, random }: RegistryOptions) {
    this.#store = store;
    this.#namespace = namespace;
    this.#isDryRun = isDryRun;
    this.#kept = createImportedSources(store, namespace, random);
  }

  async candidates(path: string, sourceId: string): Promise<readonly MadeSession[]> {
    await this.#open();
    const names = [
      ...this.#map.startingWith(`path\0${path}\0`),
      ...this.#map.startingWith(`id\0${sourceId.toLowerCase()}\0`),
    ];
    return [...new Set(names)].map((name) => JSON.parse(this.#map.get(name) ?? "null") as MadeSession);
  }

  async isGone(source: MarkedSource): Promise<boolean> {
    await this.#open();
    return sourceMarks(source).some((mark) => this.#map.has(`kept\0${mark}`) && !this.#map.has(`there\0${mark}`));
  }

  async handedOffFrom({
    sessionId,
    sizeBytes,
  }: Pick<TranscriptSource, "sessionId" | "sizeBytes">): Promise<string | null> {
    await this.#open();
    return this.#map.get(`handed\0${sessionId.toLowerCase()}\0${sizeBytes}`) ?? null;
  }

  async wasArchived(path: string, agentId: string): Promise<boolean> {
    await this.#open();
    return this.#map.has(`kept\0${archivedMark(path, agentId)}`);
  }

  async begin(): Promise<void> {
    if (!this.#isDryRun) await this.#kept.begin();
  }

  async made(state: SessionState, receipt: ImportReceipt): Promise<void> {
    // A scan in progress must end first, because it could overwrite this newer receipt.
    if (this.#opened !== null) await this.#opened;
    await this.#keep(this.#put(state, receipt));
  }

  claim(agentId: string, sessionId: string, claim: SourceClaim): void {
    this.#map.set(`claim\0${agentId}\0${sessionId}`, JSON.stringify(claim));
  }

  claimOf(agentId: string, sessionId: string): SourceClaim | null {
    return JSON.parse(this.#map.get(`claim\0${agentId}\0${sessionId}`) ?? "null") as SourceClaim | null;
  }

  async look(): Promise<void> {
    if (await this.#kept.isInDoubt()) await this.#open();
  }

  async finish(): Promise<void> {
    if (!this.#isDryRun) await this.#kept.finish();
  }

  [Symbol.dispose](): void {
    this.#map[Symbol.dispose]();
  }

  #open(): Promise<void> {
    return (this.#opened ??= this.#readAll());
  }

  async #readAll(): Promise<void> {
    await this.#kept.each((mark) => this.#map.set(`kept\0${mark}`, ""));
    let cursor: string | null = null;
    do {
      const query = { namespace: this.#namespace, state: "any", sort: "key", limit: pageSessions } as const;
      const page = await this.#store.list(cursor === null ? query : { ...query, cursor });
      for (const state of page.sessions) {
        for (const { sessionId, sizeBytes } of handedOffOf(state.entry))
          this.#map.set(`handed\0${sessionId.toLowerCase()}\0${sizeBytes}`, state.ref.key);
        const receipt = receiptOf(state.entry);
        if (receipt !== null) await this.#keep(this.#put(state, receipt));
      }
      cursor = page.nextCursor;
    } while (cursor !== null);
  }

  /** Returns the session's marks. */
  #put({ ref, sessionId }: SessionState, receipt: ImportReceipt): readonly string[] {
    const { path, sessionId: sourceId, sizeBytes, sha256, sourceKey = null, askedKey = null } = receipt;
    const name = `made\0${ref.agentId}\0${sessionId}`;
    const made: MadeSession = { ref, sessionId, path, sourceId, sizeBytes, sha256, sourceKey, askedKey };
    const before = JSON.parse(this.#map.get(name) ?? "null") as MadeSession | null;
    if (before !== null && before.path !== path) this.#map.delete(`path\0${before.path}\0${name}`);
    this.#map.set(name, JSON.stringify(made));
    this.#map.set(`path\0${path}\0${name}`, name);
    this.#map.set(`id\0${sourceId.toLowerCase()}\0${name}`, name);
    const marks = receiptMarks(receipt, ref.agentId);
    for (const mark of marks) this.#map.set(`there\0${mark}`, "");
    const isPutAside = ref.archiveId !== undefined && receipt.archivedAt !== undefined;
    return isPutAside ? [...marks, archivedMark(path, ref.agentId)] : marks;
  }

  async #keep(marks: readonly string[]): Promise<void> {
    const fresh = marks.filter((mark) => !this.#map.has(`kept\0${mark}`));
    for (const mark of fresh) this.#map.set(`kept\0${mark}`, "");
    if (!this.#isDryRun) await this.#kept.add(fresh);
  }
}
