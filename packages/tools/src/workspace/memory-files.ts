import { Buffer } from "node:buffer";
import { splitPassages, type TextPassage } from "./split-passages.ts";
import { WorkspaceToolRefusal } from "./tool-refusal.ts";
import { assertText } from "./read-lines.ts";
import type { WorkspaceFolder } from "./workspace-folder.ts";
import { assertNotAborted } from "./workspace-tool.ts";

export interface MemoryPassage extends TextPassage {
  /** Holds the path of the file, relative to the workspace. */
  readonly path: string;
}

/** Limits the memory files that one search reads. */
export interface MemoryFileLimits {
  /** Limits the number of files. */
  readonly files: number;
  /** Limits the bytes of each file. The rest of a longer file is not searched. */
  readonly fileBytes: number;
  /** Limits the bytes of all files together. */
  readonly totalBytes: number;
}

export interface MemoryFiles {
  readonly passages: readonly MemoryPassage[];
  readonly fileCount: number;
  /** States the model which content was left out. */
  readonly notes: readonly string[];
}

/** Limits the depth of nested folders, so that one search stays short. */
const mostLevels = 8;
const mostEntries = 2000;

/**
 * Reads the text files at the given paths of the workspace. A missing path counts as empty, because memory files are
 * optional.
 */
export async function readMemoryFiles(
  folder: WorkspaceFolder,
  places: readonly string[],
  limits: MemoryFileLimits,
  signal: AbortSignal,
): Promise<MemoryFiles> {
  const reading = new MemoryReading(folder, limits, signal);
  for (const path of places) await reading.add(path, mostLevels);
  return { passages: reading.passages, fileCount: reading.fileCount, notes: [...reading.notes] };
}

class MemoryReading {
  readonly passages: MemoryPassage[] = [];
  readonly notes: Set<string> = new Set();
  fileCount = 0;
  #bytes = 0;
  readonly #folder: WorkspaceFolder;
  readonly #limits: MemoryFileLimits;
  readonly #signal: AbortSignal;

  constructor(folder: WorkspaceFolder, limits: MemoryFileLimits, signal: AbortSignal) {
    this.#folder = folder;
    this.#limits = limits;
    this.#signal = signal;
  }

  /** The path may be a file or a folder. A refusal for one path does not end the search of the other paths. */
  async add(path: string, levels: number): Promise<void> {
    assertNotAborted(this.#signal);
    try {
      await this.#addFile(path);
    } catch (error) {
      if (!(error instanceof WorkspaceToolRefusal)) throw error;
      if (error.reason === "not-a-file") await this.#addFolder(path, levels);
      else if (error.reason !== "missing" && error.reason !== "binary") this.notes.add(error.message);
    }
  }

  async #addFolder(path: string, levels: number): Promise<void> {
    if (levels === 0) {
      this.notes.add(`folders deeper than ${mostLevels} levels were not searched`);
      return;
    }
    try {
      const { entries, isWhole } = await this.#folder.list(await this.#folder.locate(path), mostEntries);
      if (!isWhole) this.notes.add(`of a folder with more than ${mostEntries} entries only those were searched`);
      // Dated notes sort by time, so the newest have the last names. The limit must not cut them off.
      for (const { name, kind, isDenied } of entries.toReversed()) {
        if (isDenied) this.notes.add("what is hidden or not for tools was not searched");
        if (isDenied || (kind !== "file" && kind !== "folder")) continue;
        if (kind === "folder") await this.#addFolder(`${path}/${name}`, levels - 1);
        else await this.add(`${path}/${name}`, levels - 1);
      }
    } catch (error) {
      if (!(error instanceof WorkspaceToolRefusal)) throw error;
      if (error.reason !== "missing" && error.reason !== "not-a-folder") this.notes.add(error.message);
    }
  }

  async #addFile(path: string): Promise<void> {
    const place = await this.#folder.locate(path);
    if (this.fileCount >= this.#limits.files || this.#bytes >= this.#limits.totalBytes) {
      if ((await this.#folder.stateOf(place)) !== null)
        this.notes.add(`not all memory files were searched: at most ${this.#limits.files} at once`);
      return;
    }
    const { handle, sizeBytes } = await this.#folder.openFile(place);
    try {
      const buffer = Buffer.alloc(Math.min(sizeBytes, this.#limits.fileBytes));
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
      const bytes = buffer.subarray(0, bytesRead);
      assertText(bytes, path, sizeBytes);
      this.fileCount += 1;
      this.#bytes += bytesRead;
      if (sizeBytes > this.#limits.fileBytes)
        this.notes.add(`of files over ${this.#limits.fileBytes} bytes only the beginning was searched`);
      for (const passage of splitPassages(bytes.toString("utf8"))) this.passages.push({ path, ...passage });
    } finally {
      await handle.close();
    }
  }
}
