import type { SessionRecord } from "./record.ts";

/**
 * A compaction that does not name its first kept record keeps at most this number of bytes before it, about 20,000
 * tokens.
 */
export const danglingTailBytes = 80_000;

/**
 * Holds the newest records of a transcript. They decide where the kept part of a compaction starts when the record that
 * it names does not exist.
 */
export interface RecentBranch {
  /** Adds the next record of the file, with the length of its line. */
  add(record: SessionRecord, sizeBytes: number): void;
  /**
   * Returns the first record of the whole turns that a context keeps before such a compaction: as many turns as fit,
   * and the newest always. No kept turn precedes an earlier compaction or reset. Returns null without such a turn.
   */
  tailStart(fromId: string | null): string | null;
}

interface Recent {
  readonly parentId: string | null;
  readonly sizeBytes: number;
  readonly isUser: boolean;
  readonly isBoundary: boolean;
}

/** A turn with more records is cut, so that memory stays bounded. */
const mostRecords = 10_000;

export function createRecentBranch(): RecentBranch {
  const recent = new Map<string, Recent>();
  return {
    add(record, sizeBytes) {
      const { id, parentId, type } = record;
      const isUser = type === "message" && roleOf(record) === "user";
      recent.set(id, { parentId, sizeBytes, isUser, isBoundary: type === "compaction" || type === "reset" });
      const [oldest] = recent.size > mostRecords ? recent.keys() : [];
      if (oldest !== undefined) recent.delete(oldest);
    },
    tailStart(fromId) {
      let sizeBytes = 0;
      let start: string | null = null;
      const seen = new Set<string>();
      for (let id = fromId; id !== null && !seen.has(id);) {
        const record = recent.get(id);
        if (record === undefined || record.isBoundary) break;
        seen.add(id);
        sizeBytes += record.sizeBytes;
        if (sizeBytes > danglingTailBytes && start !== null) break;
        if (record.isUser) start = id;
        id = record.parentId;
      }
      return start;
    },
  };
}

function roleOf({ message }: SessionRecord): unknown {
  return typeof message === "object" && message !== null ? (message as { role?: unknown }).role : null;
}
