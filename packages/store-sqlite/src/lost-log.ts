import { createFinding } from "@throughline/core/internal";
import { inOneThread } from "@throughline/core/internal/node";
import type { Finding } from "@throughline/core";
import { frameHeaderBytes, headerBytes, sumsOf } from "./log-damage.ts";
import { isInUse, isThere, keepCopy, lookInto, lostLogEnding, sizeOf } from "./store-file.ts";

/** Describes a log that is gone or was cut, from what its index states. */
export interface LostLog {
  /** Counts pages of commits that are not in the database. */
  readonly pages: number;
  /** Identifies the log, because SQLite draws a new value whenever it restarts the log. */
  readonly salts: string;
  /** Holds the part of the index that proves the loss. */
  readonly proof: Uint8Array;
}

/** The index holds its header twice, then the number of log pages that are in the database. */
const indexHeaderBytes = 48;
const isBigEndianHost = new Uint8Array(Uint32Array.of(1).buffer)[0] === 0;

/**
 * Returns whether a killed process had committed more than its log holds now. SQLite removes the index of a log before
 * the log, so an index without a log means that another program removed the log. The index still counts its pages. It
 * must be called before the first connection, which restarts both. Returns null while a process uses the database.
 */
export function lostLogOf(path: string): LostLog | null {
  return inOneThread(() => {
    // Closing a file drops the locks that this process has on it, so a file in use must not be opened.
    if (!isThere(`${path}-shm`) || isInUse(path)) return null;
    const view = new DataView(new ArrayBuffer(2 * indexHeaderBytes + 4));
    const length = lookInto(`${path}-shm`, (read) => read(new Uint8Array(view.buffer), 0));
    if (length !== view.byteLength || !isIndex(view)) return null;
    const little = !isBigEndianHost;
    const frames = view.getUint32(16, little);
    const pages = frames - view.getUint32(2 * indexHeaderBytes, little);
    const stated = view.getUint16(14, little);
    const frameBytes = frameHeaderBytes + ((stated & 0xfe00) + ((stated & 1) << 16));
    if (pages <= 0 || sizeOf(`${path}-wal`) >= headerBytes + frames * frameBytes) return null;
    const salts = [32, 36].map((at) => view.getUint32(at, little).toString(16).padStart(8, "0")).join("");
    return { pages, salts, proof: new Uint8Array(view.buffer) };
  });
}

/** Returns whether both copies of the header are equal and match their checksum. */
function isIndex(view: DataView): boolean {
  const [one, other] = sumsOf(view, 0, 40, [0, 0], isBigEndianHost);
  const isWhole = view.getUint32(40, !isBigEndianHost) === one && view.getUint32(44, !isBigEndianHost) === other;
  const first = new Uint8Array(view.buffer, 0, indexHeaderBytes);
  const second = new Uint8Array(view.buffer, indexHeaderBytes, indexHeaderBytes);
  return isWhole && view.getUint8(12) === 1 && first.every((byte, at) => byte === second[at]);
}

/** Keeps the proof of the loss beside the store, and returns a finding about it. */
export function keepLostLog(path: string, { pages, salts, proof }: LostLog): Finding {
  const kept = `${path}${lostLogEnding}${salts}-${pages}`;
  keepCopy(proof, kept);
  return lostLogFinding(path, kept);
}

/** Returns the finding for a loss, which is reported until its proof is removed. */
export function lostLogFinding(path: string, kept: string): Finding {
  const message =
    `The log of ${path} was deleted or cut while it held ${kept.slice(kept.lastIndexOf("-") + 1)} pages of commits that ` +
    `were not in the database yet: they are lost. The proof is kept as ${kept}.`;
  return createFinding("LOG_MISSING", message, { path: kept });
}
