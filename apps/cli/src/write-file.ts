import { link, mkdir, open, rename, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { systemRandom } from "@throughline/core/node";
import { fileError } from "./transcript-files.ts";

/**
 * Writes a file so that it is there whole or not at all: beside its place first, flushed, then named. Nothing that
 * exists is overwritten. Gives the number of bytes.
 * @throws {ThroughlineError} EXPORT_EXISTS, FILE_UNREADABLE, STORE_FULL, and what the source of the bytes throws
 */
export async function writeNewFile(path: string, chunks: AsyncIterable<Uint8Array>): Promise<number> {
  // Not made of the file's own name, which may be as long as a name can be.
  const temporary = join(dirname(path), `.throughline-${systemRandom.uuid()}.tmp`);
  let sizeBytes = 0;
  try {
    await mkdir(dirname(path), { recursive: true });
    const file = await open(temporary, "wx", 0o600);
    try {
      for await (const chunk of chunks) {
        await file.appendFile(chunk);
        sizeBytes += chunk.length;
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await nameFile(temporary, path);
    return sizeBytes;
  } catch (error) {
    await removeQuietly(temporary);
    throw fileError(error, path);
  }
}

/** A rename would replace what is there, a link refuses to. */
async function nameFile(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path);
    await unlink(temporary);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "ENOSYS" && code !== "EOPNOTSUPP") throw error;
    // A file system without links: taking the name first refuses as well, only a crash in between leaves it empty.
    await (await open(path, "wx", 0o600)).close();
    await rename(temporary, path);
  }
}

async function removeQuietly(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch {
    // Never made, or beyond reach: the caller hears of the failure that led here, which is the one that matters.
  }
}
