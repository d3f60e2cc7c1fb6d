import { firstSalts, frameHeaderBytes, headerBytes, readLogHeader, sumsOf, type Sums } from "../log-damage.ts";
import type { ReadAt } from "../store-file.ts";

/** Names one page in the log. */
export interface Frame {
  readonly page: number;
  /** States where the bytes of the page begin. */
  readonly bytesAt: number;
}

/**
 * Returns the frames that match their own checksum, up to the last frame that ends a commit, oldest first. SQLite stops
 * at the first frame that does not match. The frames behind it are whole pages of acknowledged commits, so repair reads
 * them too.
 */
export function committedFrames(read: ReadAt, sizeBytes: number, usualPageBytes: number): readonly Frame[] {
  if (sizeBytes < headerBytes + frameHeaderBytes) return [];
  const header = readLogHeader(read, usualPageBytes);
  const { pageBytes, isBigEndian } = header;
  if (pageBytes !== usualPageBytes) return [];
  const salts = header.isValid ? header.salts : firstSalts(read);
  const frame = new DataView(new ArrayBuffer(frameHeaderBytes + pageBytes));
  const frames: Frame[] = [];
  let committed = 0;
  let before: Sums = header.sums;
  for (let at = headerBytes; at + frame.byteLength <= sizeBytes; at += frame.byteLength) {
    if (read(new Uint8Array(frame.buffer), at) < frame.byteLength) break;
    const written: Sums = [frame.getUint32(16), frame.getUint32(20)];
    const head = sumsOf(frame, 0, 8, before, isBigEndian);
    const [one, other] = sumsOf(frame, frameHeaderBytes, frame.byteLength, head, isBigEndian);
    const isOfThisRound = frame.getUint32(8) === salts[0] && frame.getUint32(12) === salts[1];
    before = written;
    if (!isOfThisRound) continue;
    if (one === written[0] && other === written[1])
      frames.push({ page: frame.getUint32(0), bytesAt: at + frameHeaderBytes });
    if (frame.getUint32(4) !== 0) committed = frames.length;
  }
  return frames.slice(0, committed);
}
