import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

interface KeptFile {
  readonly bytes: Uint8Array;
  readonly inode: number;
  readonly modified: Date;
  readonly modifiedMs: number;
}

/** The files below a folder, relative to it. */
export function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** Gives every file a time of whole seconds, the only ones that can be given again exactly. True when all had one. */
export function setWholeTimes(folder: string, isDerived: (file: string) => boolean): boolean {
  let hadAll = true;
  for (const file of filesBelow(folder)) {
    const path = join(folder, file);
    const { mtimeNs } = statSync(path, { bigint: true });
    if (mtimeNs % 1_000_000_000n === 0n || isDerived(file)) continue;
    hadAll = false;
    const seconds = Number(mtimeNs / 1_000_000_000n) - 60;
    utimesSync(path, seconds, seconds);
  }
  return hadAll;
}

/** The files of a closed store, to be put back as they were after each flip: only those that changed are written. */
export class KeptFiles {
  readonly #folder: string;
  readonly #files: Map<string, KeptFile> = new Map();

  constructor(folder: string) {
    this.#folder = folder;
    for (const file of filesBelow(folder)) {
      const path = join(folder, file);
      const { ino: inode, mtime: modified, mtimeMs: modifiedMs } = statSync(path);
      this.#files.set(file, { bytes: readFileSync(path), inode, modified, modifiedMs });
    }
  }

  /** Changes one bit in place. The time of the file stays: a disk that loses a bit says nothing of it. */
  flip(file: string, at: number, bit: number): void {
    const kept = this.#files.get(file);
    if (kept === undefined) throw new Error(`no file ${file}`);
    const bytes = Uint8Array.from(kept.bytes);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << bit);
    this.#write(file, bytes, kept);
  }

  /** False where a file could only be made again: for the store it is another file. */
  restore(flipped: string): boolean {
    const present = new Set(filesBelow(this.#folder));
    for (const file of present) if (!this.#files.has(file)) rmSync(join(this.#folder, file));
    let areSame = true;
    for (const [file, kept] of this.#files) {
      const facts = present.has(file) ? statSync(join(this.#folder, file)) : null;
      const isSame = facts?.mtimeMs === kept.modifiedMs && facts.size === kept.bytes.length;
      if (facts?.ino === kept.inode && isSame && file !== flipped) continue;
      this.#write(file, kept.bytes, kept);
      areSame &&= facts?.ino === kept.inode;
    }
    return areSame;
  }

  #write(file: string, bytes: Uint8Array, { modified }: KeptFile): void {
    const path = join(this.#folder, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
    utimesSync(path, modified, modified);
  }
}
