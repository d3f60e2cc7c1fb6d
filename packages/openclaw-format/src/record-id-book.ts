import { isColumnText } from "@throughline/core/internal";

/**
 * Tracks the ids of a session's records while its lines are read in order. A repeated id gets a suffix. A reference to
 * that id means the nearest record before the reference.
 */
export class RecordIdBook {
  private readonly ids = new Set<string>();
  /**
   * For each repeated id, the map holds the newest record's id, to resolve references, and the count, to build the next
   * suffix.
   */
  private readonly bearers = new Map<string, { id: string; count: number }>();

  has(id: string): boolean {
    return this.ids.has(id);
  }

  resolve(id: string): string {
    return this.bearers.get(id)?.id ?? id;
  }

  /** The first record with an id keeps it, and a later one gets a suffix, because ids must be unique in a session. */
  claim(id: string): string {
    if (!this.ids.has(id)) {
      this.ids.add(id);
      return id;
    }
    let count = this.bearers.get(id)?.count ?? 1;
    let renamed = id;
    while (this.ids.has(renamed)) {
      count++;
      renamed = `${beginningOf(id)}~${count}`;
    }
    this.ids.add(renamed);
    this.bearers.set(id, { id: renamed, count });
    return renamed;
  }

  /** Later references to an unusable id resolve to the id that the record got instead. */
  rename(stated: string, id: string): void {
    if (stated.length <= longestStated) this.bearers.set(stated, { id, count: 1 });
  }
}

/** A longer id is cut before the suffix is added, so that the result stays within the 256 characters of a record id. */
const longestRenamed = 240;

/** Longer ids are not remembered, because no real record has such an id and the memory would be wasted. */
const longestStated = 1024;

/** The cut must not split a surrogate pair, because no store takes a lone surrogate. */
function beginningOf(id: string): string {
  const beginning = id.slice(0, longestRenamed);
  return beginning.isWellFormed() ? beginning : beginning.slice(0, -1);
}

/** Stores refuse any other record id. */
export function isUsableRecordId(id: unknown): id is string {
  return isColumnText(id, 256);
}

/**
 * Returns the id of a record whose line states none: its line in the file, counted from 0 at the header. Every reader
 * and every run gives the same id. It has the length of pi's ids.
 */
export function placeId(line: number): string {
  return (line - 1).toString(16).padStart(8, "0");
}
