import { TranscriptFile, type TranscriptFileOptions } from "./transcript-file.ts";

/** Each open transcript holds a file handle and the ids of its records. */
const maxOpen = 64;
/** Transcripts in use are always among this many most recently used ones. */
const keptInNeed = 4;

/** The transcripts of one agent that are open, those used last at the end. */
export class OpenTranscripts {
  readonly #options: TranscriptFileOptions;
  readonly #files: Map<string, TranscriptFile> = new Map();

  constructor(options: TranscriptFileOptions) {
    this.#options = options;
  }

  /** Null where it is not open. */
  peek(sessionId: string): TranscriptFile | null {
    return this.#files.get(sessionId) ?? null;
  }

  of(sessionId: string): TranscriptFile {
    const file = this.#files.get(sessionId) ?? new TranscriptFile(this.#options);
    this.#files.delete(sessionId);
    this.#files.set(sessionId, file);
    if (this.#files.size > maxOpen) this.#closeOldest();
    return file;
  }

  /** Lets go of transcripts: the process has no descriptor left. */
  makeRoom(): void {
    for (const [sessionId, file] of [...this.#files].slice(0, -keptInNeed)) if (!file.isPinned) this.letGo(sessionId);
  }

  letGo(sessionId: string): void {
    this.#files.get(sessionId)?.forget();
    this.#files.delete(sessionId);
  }

  clear(): void {
    for (const file of this.#files.values()) file.forget();
    this.#files.clear();
  }

  #closeOldest(): void {
    const oldest = this.#files.entries().find(([, file]) => !file.isPinned);
    if (oldest !== undefined) this.letGo(oldest[0]);
  }
}
