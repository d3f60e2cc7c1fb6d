import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type { RandomSource } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";

/** A larger file is no memory of this program, and is not read. */
const mostBytes = 256 * 1024 * 1024;

/**
 * Yields the JSON values of a file, one a line. A missing file has none. The values end at the first line that is no
 * JSON, because a memory may be lost without harm.
 */
export async function* readMemory(path: string): AsyncGenerator<unknown> {
  const facts = await stat(path).catch(() => null);
  if (facts === null || !facts.isFile() || facts.size > mostBytes) return;
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Infinity });
  try {
    for await (const line of lines) yield JSON.parse(line) as unknown;
  } catch {
    // A damaged line, or a file that cannot be read: what follows is read from the sources again.
  } finally {
    lines.close();
  }
}

/** Replaces the file in one step, with one text a line. */
export async function writeMemory(path: string, texts: Iterable<string>, random: RandomSource): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await removeLeftovers(path);
  const temporary = `${path}.${random.uuid()}.tmp`;
  const file = await open(temporary, "wx", 0o600);
  try {
    for (const text of texts) await file.write(`${text}\n`);
    await file.close();
    await rename(temporary, path);
  } catch (error) {
    await file.close().catch(() => undefined);
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}

/** Removes what killed processes left. A file that another process is writing is younger. */
async function removeLeftovers(path: string): Promise<void> {
  const folder = dirname(path);
  for (const name of await readdir(folder)) {
    if (!name.startsWith(`${basename(path)}.`) || !name.endsWith(".tmp")) continue;
    const facts = await stat(join(folder, name)).catch(() => null);
    if (facts !== null && systemClock.nowMs() - facts.mtimeMs > 60_000)
      await unlink(join(folder, name)).catch(() => undefined);
  }
}
