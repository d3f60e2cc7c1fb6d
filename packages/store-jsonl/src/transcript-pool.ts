import { TranscriptFile, type TranscriptFileOptions } from "./transcript-file.ts";

/** Limits the open transcripts, because each holds a file descriptor and the ids of its records. */
const maxOpen = 64;
/** This many recently used transcripts stay open even without descriptors, because they may be in use. */
const keptInNeed = 4;

export class TranscriptPool {
  readonly #options: TranscriptFileOptions;
  /** Is called before an idle transcript is closed. */
  readonly #onClose: (sessionId: string, file: TranscriptFile) => void;
  readonly #files: Map<string, TranscriptFile> = new Map();

  constructor(options: TranscriptFileOptions, onClose: (sessionId: string, file: TranscriptFile) => void) {
    this.#options = options;
    this.#onClose = onClose;
  }

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

  makeRoom(): void {
    for (const [sessionId, file] of [...this.#files].slice(0, -keptInNeed))
      if (!file.isPinned) this.#close(sessionId, file);
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
    if (oldest !== undefined) this.#close(...oldest);
  }

  #close(sessionId: string, file: TranscriptFile): void {
    this.#onClose(sessionId, file);
    this.letGo(sessionId);
  }
}
