/**
 * The ids of a session's records, while its lines are read in order. An id that comes a second time gets a suffix;
 * a record that names the id means the nearest one before it.
 */
export class RecordIdBook {
  private readonly ids = new Set<string>();
  /** For ids that came more than once: the newest bearer and how many there were. */
  private readonly bearers = new Map<string, { id: string; count: number }>();

  has(id: string): boolean {
    return this.ids.has(id);
  }

  /** The id a reference means at this place. */
  resolve(id: string): string {
    return this.bearers.get(id)?.id ?? id;
  }

  /** The id the record gets: its own when that is free. */
  claim(id: string): string {
    if (!this.ids.has(id)) {
      this.ids.add(id);
      return id;
    }
    let count = this.bearers.get(id)?.count ?? 1;
    let renamed = id;
    while (this.ids.has(renamed)) {
      count++;
      renamed = `${id.slice(0, longestRenamed)}~${count}`;
    }
    this.ids.add(renamed);
    this.bearers.set(id, { id: renamed, count });
    return renamed;
  }
}

/** What is kept of an id that gets a suffix, so that it stays within the 256 characters a record id may have. */
const longestRenamed = 240;

/** True for an id that a record may keep. */
export function isUsableRecordId(id: unknown): id is string {
  return typeof id === "string" && id !== "" && id.length <= 256 && !/\p{Cc}/u.test(id);
}

/**
 * The id of a record whose line states none: its place in the file, counted from 0 at the header. The same for every
 * reader and every run, and of the length pi's own ids have.
 */
export function placeId(line: number): string {
  return (line - 1).toString(16).padStart(8, "0");
}
