import type { SessionRecord } from "./record.ts";

/**
 * If a compaction does not name its first kept record, at most this number of bytes of records stay before it, about
 * 20,000 tokens.
 */
export const danglingTailBytes = 80_000;

/** The newest records of a transcript, to say from which one on a compaction keeps that names one that is nowhere. */
export interface RecentBranch {
  /** The next record of the file, and how long its line is. */
  add(record: SessionRecord, sizeBytes: number): void;
  /**
   * The first of the whole turns that a context keeps before such a compaction: as many as fit, and the newest always.
   * None precedes an earlier compaction or reset. Null when there is none.
   */
  tailStart(fromId: string | null): string | null;
}

interface Recent {
  readonly parentId: string | null;
  readonly sizeBytes: number;
  readonly isUser: boolean;
  readonly isBoundary: boolean;
}

/** A turn of more records than this is cut. */
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
