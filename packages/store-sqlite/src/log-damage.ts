import { createFinding } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import { damagedLogEnding, isInUse, keepCopy, lookInto, sizeOf } from "./store-file.ts";
import type { ReadAt } from "./store-file.ts";

/** Describes the frames of a log that SQLite does not read, because a frame before them is damaged. */
export interface LogDamage {
  /** Counts frames from 1. The header of the log is 0. */
  readonly damagedFrame: number;
  readonly framesBehind: number;
  /** Counts the frames that end a commit. */
  readonly commitsBehind: number;
  readonly bytesBehind: number;
  /** Identifies the log, because SQLite draws a new value whenever it restarts the log. */
  readonly salts: string;
}

export const headerBytes = 32;
export const frameHeaderBytes = 24;
const framesAtOnce = 64;
const isBigEndianHost = new Uint8Array(Uint32Array.of(1).buffer)[0] === 0;

export interface LogHeader {
  readonly isValid: boolean;
  readonly pageBytes: number;
  readonly isBigEndian: boolean;
  readonly salts: readonly [number, number];
  readonly sums: Sums;
}

export type Sums = readonly [number, number];

/**
 * Looks for commits behind the place where SQLite stops reading a log. SQLite reads up to the first frame that does not
 * match its checksum, which covers all frames before it. It overwrites or deletes the rest without a report. After a
 * crash that is correct: the rest is empty, has other salts of an earlier round, or is an unfinished transaction. A
 * commit with the salts of this round was written after the frame that does not match. The format:
 * https://www.sqlite.org/fileformat2.html#walformat
 */
export function findLogDamage(read: ReadAt, sizeBytes: number, pageBytes: number): LogDamage | null {
  if (sizeBytes < headerBytes + 2 * frameHeaderBytes) return null;
  const header = readLogHeader(read, pageBytes);
  if (header.pageBytes < 512) return null;
  const frameBytes = frameHeaderBytes + header.pageBytes;
  // Damage needs a frame that does not match and a frame behind it.
  if (sizeBytes < headerBytes + (header.isValid ? 2 : 1) * frameBytes) return null;
  const look = header.isValid ? new FrameLook(header) : new FrameLook({ ...header, salts: firstSalts(read) });
  const buffer = new ArrayBuffer(framesAtOnce * frameBytes);
  for (let position = headerBytes; position + frameBytes <= sizeBytes;) {
    const frames = Math.floor(read(new Uint8Array(buffer), position) / frameBytes);
    if (frames === 0) break;
    for (let each = 0; each < frames; each++) look.see(new DataView(buffer, each * frameBytes, frameBytes));
    position += frames * frameBytes;
  }
  return look.damage(frameBytes);
}

export function readLogHeader(read: ReadAt, knownPageBytes: number): LogHeader {
  const buffer = new ArrayBuffer(headerBytes);
  read(new Uint8Array(buffer), 0);
  const view = new DataView(buffer);
  const isBigEndian = (view.getUint32(0) & 1) === 1;
  const sums = sumsOf(view, 0, 24, [0, 0], isBigEndian);
  const isKind = view.getUint32(0) >>> 1 === 0x377f0682 >>> 1 && view.getUint32(4) === 3_007_000;
  const isValid = isKind && view.getUint32(24) === sums[0] && view.getUint32(28) === sums[1];
  const salts = [view.getUint32(16), view.getUint32(20)] as const;
  // A damaged header says nothing, so the byte order of this machine is assumed.
  if (!isValid) return { isValid, pageBytes: knownPageBytes, isBigEndian: isBigEndianHost, salts, sums };
  return { isValid, pageBytes: view.getUint32(8), isBigEndian, salts, sums };
}

export function firstSalts(read: ReadAt): readonly [number, number] {
  const view = new DataView(new ArrayBuffer(frameHeaderBytes));
  read(new Uint8Array(view.buffer), headerBytes);
  return [view.getUint32(8), view.getUint32(12)];
}

/** Reads a log one frame after the other. */
class FrameLook {
  readonly #header: LogHeader;
  /** The checksum up to the frame before, as calculated and as that frame states it. */
  #sums: Sums;
  #written: Sums;
  #valid = 0;
  #isBroken: boolean;
  /**
   * States whether the frame that does not match lies inside a transaction, which an unfinished write may have
   * overwritten.
   */
  #isInside = false;
  #frames = 0;
  #commits = 0;
  #proven = 0;

  constructor(header: LogHeader) {
    this.#header = header;
    this.#sums = header.sums;
    this.#written = header.sums;
    this.#isBroken = !header.isValid;
  }

  see(frame: DataView): void {
    const { salts, isBigEndian } = this.#header;
    const isOfThisRound =
      frame.getUint32(0) !== 0 && frame.getUint32(8) === salts[0] && frame.getUint32(12) === salts[1];
    const isCommit = frame.getUint32(4) !== 0;
    const before = this.#isBroken ? this.#written : this.#sums;
    this.#written = [frame.getUint32(16), frame.getUint32(20)];
    if (!isOfThisRound && this.#isBroken) return;
    const head = sumsOf(frame, 0, 8, before, isBigEndian);
    const [one, other] = sumsOf(frame, frameHeaderBytes, frame.byteLength, head, isBigEndian);
    const fits = isOfThisRound && one === this.#written[0] && other === this.#written[1];
    if (!this.#isBroken) {
      if (fits) this.#valid++;
      else {
        this.#isBroken = true;
        this.#isInside = isOfThisRound && !isCommit;
      }
      this.#sums = [one, other];
      return;
    }
    this.#frames++;
    if (isCommit) this.#commits++;
    if (fits) this.#proven++;
  }

  damage(frameBytes: number): LogDamage | null {
    if (this.#frames === 0 || (this.#commits === 0 && this.#isInside)) return null;
    // Without a valid header any bytes may look like a frame, so only frames that continue each other count.
    if (!this.#header.isValid && (this.#proven === 0 || this.#commits === 0)) return null;
    const [one, other] = this.#header.salts;
    return {
      damagedFrame: this.#header.isValid ? this.#valid + 1 : 0,
      framesBehind: this.#frames,
      commitsBehind: this.#commits,
      bytesBehind: this.#frames * frameBytes,
      salts: [one, other].map((salt) => salt.toString(16).padStart(8, "0")).join(""),
    };
  }
}

/** Calculates the running checksum of SQLite over pairs of 32-bit words. */
export function sumsOf(view: DataView, from: number, to: number, [first, second]: Sums, isBigEndian: boolean): Sums {
  let [one, other] = [first | 0, second | 0];
  if (isBigEndian === isBigEndianHost) {
    const words = new Int32Array(view.buffer, view.byteOffset + from, (to - from) / 4);
    for (let each = 0; each < words.length; each += 2) {
      one = (one + (words[each] ?? 0) + other) | 0;
      other = (other + (words[each + 1] ?? 0) + one) | 0;
    }
    return [one >>> 0, other >>> 0];
  }
  for (let at = from; at < to; at += 8) {
    one = (one + view.getInt32(at, !isBigEndian) + other) | 0;
    other = (other + view.getInt32(at + 4, !isBigEndian) + one) | 0;
  }
  return [one >>> 0, other >>> 0];
}

/**
 * Returns the commits behind damage in a log that a crash left, which the first connection would remove. Returns null
 * without a log, and while another process uses the log and so has read it. Reading takes no lock.
 */
export function damageOfLog(path: string, pageBytes: number): LogDamage | null {
  const log = `${path}-wal`;
  if (sizeOf(log) === 0 || isInUse(path)) return null;
  const look = (): LogDamage | null => lookInto(log, (read) => findLogDamage(read, sizeOf(log), pageBytes));
  const first = look();
  if (first === null) return null;
  // A process in another container may be writing the log unseen. Real damage is the same at the second reading.
  const second = look();
  return second !== null && JSON.stringify(second) === JSON.stringify(first) ? first : null;
}

/** Keeps the log beside the store before the first connection, and returns a finding about it. */
export function keepDamagedLog(path: string, damage: LogDamage): Finding {
  const { damagedFrame, framesBehind, commitsBehind, bytesBehind, salts } = damage;
  const kept = `${path}${damagedLogEnding}${salts}-${damagedFrame}`;
  keepCopy(`${path}-wal`, kept);
  const where = damagedFrame === 0 ? "its header" : `frame ${damagedFrame}`;
  const message =
    `The log of ${path} is damaged in ${where}: ${framesBehind} frames behind it with ${commitsBehind} commits ` +
    `(${bytesBehind} bytes) cannot be applied. The log is kept as ${kept}.`;
  return createFinding("LOG_DAMAGED", message, { path: kept });
}
