import { createFinding, inOneThread } from "@throughline/core/internal";
import { type Finding } from "@throughline/core";
import { frameHeaderBytes, headerBytes, sumsOf } from "./log-damage.ts";
import { isInUse, isThere, keepCopy, lookInto, lostLogEnding, sizeOf } from "./store-file.ts";

/** What the index of a log says of a log that is not there, or is shorter than it was. */
export interface LostLog {
  /** Pages of commits that do not stand in the database. */
  readonly pages: number;
  /** Identifies the log: SQLite draws a new value whenever it starts the log again. */
  readonly salts: string;
  /** The part of the index that says so. */
  readonly proof: Uint8Array;
}

/** The header stands in the index twice, and behind it how many of the log's pages stand in the database. */
const indexHeaderBytes = 48;
const isBigEndianHost = new Uint8Array(Uint32Array.of(1).buffer)[0] === 0;

/**
 * Whether a process that was killed had committed more than its log holds now. SQLite removes the index of a log before
 * the log. So an index without a log means that another program removed the log, and the index still counts its pages.
 * Call it before the first connection, which starts both again. Null where somebody uses the database.
 */
export function lostLogOf(path: string): LostLog | null {
  return inOneThread(() => {
    // Closing a file drops what locks this process has on it.
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

/** What is written in one go: both copies are the same, and fit their checksum. */
function isIndex(view: DataView): boolean {
  const [one, other] = sumsOf(view, 0, 40, [0, 0], isBigEndianHost);
  const isWhole = view.getUint32(40, !isBigEndianHost) === one && view.getUint32(44, !isBigEndianHost) === other;
  const first = new Uint8Array(view.buffer, 0, indexHeaderBytes);
  const second = new Uint8Array(view.buffer, indexHeaderBytes, indexHeaderBytes);
  return isWhole && view.getUint8(12) === 1 && first.every((byte, at) => byte === second[at]);
}

/** Keeps what proves the loss beside the store, and says what is lost. */
export function keepLostLog(path: string, { pages, salts, proof }: LostLog): Finding {
  const kept = `${path}${lostLogEnding}${salts}-${pages}`;
  keepCopy(proof, kept);
  return lostLogFinding(path, kept);
}

/** The finding for a loss, reported until the proof of it is removed. */
export function lostLogFinding(path: string, kept: string): Finding {
  const message =
    `The log of ${path} was deleted or cut while it held ${kept.slice(kept.lastIndexOf("-") + 1)} pages of commits that ` +
    `were not in the database yet: they are lost. The proof is kept as ${kept}.`;
  return createFinding("LOG_MISSING", message, { path: kept });
}
