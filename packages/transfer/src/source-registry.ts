import { type RandomSource, type SessionRef, type SessionState, type SessionStore } from "@throughline/core";
import { handedOffOf } from "./handed-off.ts";
import { createImportedSources, type ImportedSources } from "./imported-sources.ts";
import { receiptOf } from "./import-receipt.ts";
import type { ImportReceipt } from "./receipt-types.ts";
import { createScratchMap, type ScratchMap } from "./scratch-map.ts";
import type { TranscriptSource } from "./transcript-source.ts";
import { archivedMark, receiptMarks, sourceMarks, type MarkedSource } from "./source-marks.ts";

/** A session that was made of a source, as its receipt has it; without the session itself, which may be large. */
export interface MadeSession {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly path: string;
  /** The session's id in the source. */
  readonly sourceId: string;
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly sourceKey: string | null;
  readonly askedKey: string | null;
}

/** A source that has been given a session in this import. */
interface SourceClaim {
  readonly path: string;
  readonly key: string | null;
  readonly isArchived: boolean;
}

/**
 * Which sessions came from where, wherever they lie by now, and what has been imported and is gone. The sessions of the
 * store are gone through once, and only when something is looked for that does not lie where it was put. What is known of
 * them is kept outside of the heap: there may be a hundred thousand.
 */
export interface SourceRegistry extends Disposable {
  /** To be called before anything is imported: sessions whose marks may be missing get them. */
  look(): Promise<void>;
  /** Every session that came from that path, or from a source with that id. */
  candidates(path: string, sourceId: string): Promise<readonly MadeSession[]>;
  /** Whether the source was imported, and no session is left of it. */
  isGone(source: MarkedSource): Promise<boolean>;
  /** The session that was handed off in this file, which is still as it was written; null for any other file. */
  handedOffFrom(source: Pick<TranscriptSource, "sessionId" | "sizeBytes">): Promise<string | null>;
  /** Whether an import has archived the session of this source before. */
  wasArchived(path: string, agentId: string): Promise<boolean>;
  /** Call it before a session is created. */
  begin(): Promise<void>;
  /** Call it for each session that an import has created, archived or given another source. */
  made(state: SessionState, receipt: ImportReceipt): Promise<void>;
  claim(agentId: string, sessionId: string, claim: SourceClaim): void;
  claimOf(agentId: string, sessionId: string): SourceClaim | null;
  /** What was made in this import is in the store's list. */
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
    // What is listed later has it as it is then.
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

  /** Gives the marks of it. */
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
