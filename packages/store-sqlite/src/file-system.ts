import { refused } from "@throughline/core/internal";
import { remoteFileSystem } from "./file-facts.ts";
import { fileSystemFacts } from "./store-file.ts";

/** Whether the file lies on a network file system, as far as the system reports it. */
export function fileSystemOf(path: string): string | null {
  const facts = fileSystemFacts(path);
  return facts === null ? null : remoteFileSystem(facts.type);
}

/** SQLite makes the index of a log longer by one byte in each of these. */
const extensionBytes = 4096;
/** A new index takes 32 KiB. */
const openingBytes = 64 * 1024;
const writingBytes = 1024 * 1024;

/**
 * Keeps SQLite from a full disk whose blocks are smaller than the steps in which it extends the index of a log. The index
 * then has bytes without a block. The system ends a process that writes such a byte through its map when no block is left.
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

/** The same before each write; nothing is asked on a file system of larger blocks. */
export function roomCheck(path: string): () => void {
  const facts = fileSystemFacts(path);
  if (facts === null || facts.blockBytes >= extensionBytes) return () => undefined;
  return () => assertRoom(path, "write");
}
