import { appendFile, open, readFile, writeFile } from "node:fs/promises";

/** A file cut at one byte. */
interface FilePrefix {
  /** Where the file is cut, in bytes. */
  readonly sizeBytes: number;
  /** The content up to the cut. */
  readonly bytes: Uint8Array;
}

/** The content of a file cut at every byte from `fromBytes` on, the whole file last. The file itself is left alone. */
export async function* filePrefixes(path: string, fromBytes = 0): AsyncGenerator<FilePrefix> {
  const content = await readFile(path);
  for (let sizeBytes = fromBytes; sizeBytes <= content.byteLength; sizeBytes++) {
    yield { sizeBytes, bytes: Uint8Array.from(content.subarray(0, sizeBytes)) };
  }
}

/** Cuts a file in place. */
export async function cutFile(path: string, sizeBytes: number): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.truncate(sizeBytes);
  } finally {
    await file.close();
  }
}

/** Turns bits of one byte around, as a bad sector does. @throws {RangeError} when the file has no such byte */
export async function flipByte(path: string, byteOffset: number, mask = 0x01): Promise<void> {
  const content = await readFile(path);
  const byte = content[byteOffset];
  if (byte === undefined) throw new RangeError(`The file has ${content.byteLength} bytes, none at ${byteOffset}.`);
  content[byteOffset] = byte ^ mask;
  await writeFile(path, content);
}

/** Appends bytes no writer of ours wrote. */
export async function appendGarbage(path: string, garbage: string | Uint8Array): Promise<void> {
  await appendFile(path, garbage);
}

/** Appends a run of zero bytes: what some file systems leave after a power cut. */
export async function appendZeros(path: string, sizeBytes: number): Promise<void> {
  await appendFile(path, new Uint8Array(sizeBytes));
}
