import { isColumnText } from "@throughline/core/internal";

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
      renamed = `${beginningOf(id)}~${count}`;
    }
    this.ids.add(renamed);
    this.bearers.set(id, { id: renamed, count });
    return renamed;
  }

  /** A record that states an id which none may have goes by `id`; so do the references to it that follow. */
  rename(stated: string, id: string): void {
    if (stated.length <= longestStated) this.bearers.set(stated, { id, count: 1 });
  }
}

/** What is kept of an id that gets a suffix, so that it stays within the 256 characters a record id may have. */
const longestRenamed = 240;

/** An id that is longer is nobody's, and not worth the memory. */
const longestStated = 1024;

/** The beginning of an id, with no character cut in two: no store takes half of one. */
function beginningOf(id: string): string {
  const beginning = id.slice(0, longestRenamed);
  return beginning.isWellFormed() ? beginning : beginning.slice(0, -1);
}

/** True for an id that a record may keep: what stores refuse to take is none. */
export function isUsableRecordId(id: unknown): id is string {
  return isColumnText(id, 256);
}

/**
 * The id of a record whose line states none: its place in the file, counted from 0 at the header. The same for every
 * reader and every run, and of the length pi's own ids have.
 */
export function placeId(line: number): string {
  return (line - 1).toString(16).padStart(8, "0");
}
