import { committedFrames } from "./log-frames.ts";
import type { Frame } from "./log-frames.ts";
import type { RawFile } from "../store-file.ts";
import type { PageFile } from "./table-cells.ts";

/** Caches this many pages, so that a chain of overflow pages and the page of many records are read once. */
const keptPages = 64;

/**
 * Opens the pages of a database that SQLite may refuse, with the committed pages of its log. The format:
 * https://www.sqlite.org/fileformat2.html
 */
export function openPages(file: RawFile, log: RawFile, usualPageBytes: number): PageFile {
  const pageBytes = statedPageBytes(file) ?? usualPageBytes;
  const frames = committedFrames(log.read, log.sizeBytes, pageBytes);
  const pages = frames.reduce((most, { page }) => Math.max(most, page), Math.floor(file.sizeBytes / pageBytes));
  const newest = new Map<number, Frame>(frames.map((frame) => [frame.page, frame]));
  const kept = new Map<number, DataView>();
  const load = (number: number): DataView | null => {
    const frame = newest.get(number);
    const bytes = new Uint8Array(pageBytes);
    const length = frame === undefined ? file.read(bytes, (number - 1) * pageBytes) : log.read(bytes, frame.bytesAt);
    return length === pageBytes ? new DataView(bytes.buffer) : null;
  };
  return {
    pageBytes,
    pages,
    page(number) {
      if (!Number.isInteger(number) || number < 1 || number > pages) return null;
      const known = kept.get(number);
      if (known !== undefined) return known;
      const loaded = load(number);
      if (loaded === null) return null;
      const [oldest] = kept.size >= keptPages ? kept.keys() : [];
      if (oldest !== undefined) kept.delete(oldest);
      kept.set(number, loaded);
      return loaded;
    },
  };
}

/** Returns null where the first page does not begin like a database. */
function statedPageBytes({ read }: RawFile): number | null {
  const bytes = Buffer.alloc(18);
  if (read(bytes, 0) < 18 || bytes.toString("latin1", 0, 16) !== "SQLite format 3\0") return null;
  const stated = bytes.readUInt16BE(16);
  const size = stated === 1 ? 65_536 : stated;
  return size >= 512 && (size & (size - 1)) === 0 ? size : null;
}
