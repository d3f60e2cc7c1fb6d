import { appendFile, open, readFile, writeFile } from "node:fs/promises";

/** Holds the content of a file that was cut at one byte. */
interface FilePrefix {
  /** States where the file is cut, in bytes. */
  readonly sizeBytes: number;
  /** Holds the content up to the cut. */
  readonly bytes: Uint8Array;
}

/**
 * Yields the content of a file cut at every byte from `fromBytes` on, and the whole content last. The file is not
 * changed.
 */
export async function* filePrefixes(path: string, fromBytes = 0): AsyncGenerator<FilePrefix> {
  const content = await readFile(path);
  for (let sizeBytes = fromBytes; sizeBytes <= content.byteLength; sizeBytes++) {
    yield { sizeBytes, bytes: Uint8Array.from(content.subarray(0, sizeBytes)) };
  }
}

/** Truncates a file in place to this size, in bytes. */
export async function cutFile(path: string, sizeBytes: number): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.truncate(sizeBytes);
  } finally {
    await file.close();
  }
}

/** Flips bits of one byte, as a bad sector does. @throws {RangeError} when the file has no such byte */
export async function flipByte(path: string, byteOffset: number, mask = 0x01): Promise<void> {
  const content = await readFile(path);
  const byte = content[byteOffset];
  if (byte === undefined) throw new RangeError(`The file has ${content.byteLength} bytes, none at ${byteOffset}.`);
  content[byteOffset] = byte ^ mask;
  await writeFile(path, content);
}

/** Appends bytes that no store wrote. */
export async function appendGarbage(path: string, garbage: string | Uint8Array): Promise<void> {
  await appendFile(path, garbage);
}

/** Appends zero bytes, as some file systems leave them after a power cut. */
export async function appendZeros(path: string, sizeBytes: number): Promise<void> {
  await appendFile(path, new Uint8Array(sizeBytes));
}
