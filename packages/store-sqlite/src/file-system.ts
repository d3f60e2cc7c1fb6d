import { refused } from "@throughline/core/internal";
import { remoteFileSystem } from "./file-facts.ts";
import { fileSystemFacts } from "./store-file.ts";

/** Returns the name of the network file system that holds the file, or null, as far as the system reports it. */
export function fileSystemOf(path: string): string | null {
  const facts = fileSystemFacts(path);
  return facts === null ? null : remoteFileSystem(facts.type);
}

/** SQLite extends the index of a log by one byte in each step of this size. */
const extensionBytes = 4096;
/** Leaves twice the 32 KiB that a new index takes. */
const openingBytes = 64 * 1024;
const writingBytes = 1024 * 1024;

/**
 * Keeps SQLite from a full disk whose blocks are smaller than the steps in which it extends the index of a log. The
 * index then has bytes without a block. The system ends a process that writes such a byte through its map when no block
 * is left.
 * @throws {ThroughlineError} STORE_FULL
 */
export function assertRoom(path: string, use: "open" | "write"): void {
  const facts = fileSystemFacts(path);
  if (facts === null || facts.blockBytes >= extensionBytes) return;
  const { blockBytes, freeBytes } = facts;
  const neededBytes = use === "open" ? openingBytes : writingBytes;
  if (freeBytes >= neededBytes) return;
  const message = `The disk of ${path} has less than ${neededBytes / 1024} KiB left, which SQLite needs on blocks of ${blockBytes} bytes.`;
  throw refused("STORE_FULL", message, { path, blockBytes, freeBytes, neededBytes });
}

/** Returns the same check for each write. On a file system with larger blocks the check does nothing. */
export function roomCheck(path: string): () => void {
  const facts = fileSystemFacts(path);
  if (facts === null || facts.blockBytes >= extensionBytes) return () => undefined;
  return () => assertRoom(path, "write");
}
