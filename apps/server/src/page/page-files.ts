import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { damaged, type ListedFile, listName, parseFileList } from "./file-list.ts";

/** Is a file of the page whose bytes are those of the list. */
export interface PageFile {
  readonly name: string;
  readonly type: string;
  readonly bytes: Buffer;
  /** Holds the same, compressed; null where the build left no such file. */
  readonly gzip: Buffer | null;
  readonly etag: string;
}

/** Has the files of the page, each read at its first request and kept in memory: all of them are under 1 MB. */
export interface PageFiles {
  /**
   * Returns a file by its exact name; null for a name that is not in the list.
   * @throws {ThroughlineError} INSTALLATION_DAMAGED for a file that is missing, or whose bytes are not the listed ones
   */
  read(name: string): Promise<PageFile | null>;
}

const mostListBytes = 1024 * 1024;
const unzip = promisify(gunzip);

/**
 * Reads the list of the files of a folder that the build of the page wrote.
 * @throws {ThroughlineError} INSTALLATION_DAMAGED
 */
export async function openPageFiles(folder: string): Promise<PageFiles> {
  const list = await readFile(join(folder, listName), mostListBytes);
  if (list === null) throw damaged(`${listName} is missing`);
  const files = parseFileList(list.toString("utf8"));
  const opened = new Map<string, Promise<PageFile>>();
  return {
    async read(name) {
      const listed = files.get(name);
      if (listed === undefined) return null;
      const file = opened.get(name) ?? openFile(folder, listed);
      opened.set(name, file);
      try {
        return await file;
      } catch (error) {
        // An installation that is repaired meanwhile needs no new start.
        opened.delete(name);
        throw error;
      }
    },
  };
}

/** A link, a swapped file and a half-written one differ from the list, which has the digest of every byte. */
async function openFile(folder: string, listed: ListedFile): Promise<PageFile> {
  const { name, type, bytes: size, sha256 } = listed;
  const path = join(folder, name);
  const bytes = await readFile(path, size);
  if (bytes === null) throw damaged(`${name} is missing`);
  if (bytes.length !== size || digestOf(bytes) !== sha256) throw damaged(`${name} is not the file that was built`);
  return { name, type, bytes, gzip: await compressedFile(path, listed), etag: `"${sha256.slice(0, 32)}"` };
}

async function compressedFile(path: string, { name, bytes: size, sha256 }: ListedFile): Promise<Buffer | null> {
  // gzip makes a file that it cannot compress a little larger.
  const packed = await readFile(`${path}.gz`, size + 1024);
  if (packed === null) return null;
  try {
    const plain = await unzip(packed, { maxOutputLength: Math.max(size, 1) });
    if (digestOf(plain) === sha256) return packed;
  } catch (error) {
    throw damaged(`${name}.gz cannot be decompressed`, error);
  }
  throw damaged(`${name}.gz holds another file than ${name}`);
}

function digestOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Returns null without the file. Reads no more than `mostBytes`, and waits for no pipe. */
async function readFile(path: string, mostBytes: number): Promise<Buffer | null> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw damaged("a file cannot be opened", error);
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > mostBytes)
      throw damaged("a file has another type or size than it was built with");
    return await file.readFile();
  } finally {
    await file.close();
  }
}
