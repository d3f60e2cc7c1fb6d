import { ageMsOf, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { archivedFrom } from "./recover-entries.ts";
import type { SessionRow } from "./session-row.ts";

/** A folder that changed within this time may change again without a new modification time. */
const settledMs = 1000;

export class ArchivedNames {
  readonly #files: Files;
  readonly #folder: string;
  #seen = "";
  #names: ReadonlyMap<string, readonly string[]> = new Map();

  constructor(files: Files, folder: string) {
    this.#files = files;
    this.#folder = folder;
  }

  /**
   * Yields the possible names of a transcript, because OpenClaw renames the transcripts of sessions that it resets or
   * deletes.
   */
  *allNamesOf({ fileName, formerFileName }: Pick<SessionRow, "fileName" | "formerFileName">): Generator<string> {
    yield fileName;
    if (formerFileName !== undefined) yield formerFileName;
    yield* this.namesOf(fileName);
  }

  /**
   * Returns the archive names of a transcript, the newest first. The folder is read again only after it has changed.
   */
  namesOf(fileName: string): readonly string[] {
    const facts = this.#files.facts(this.#folder);
    if (facts?.kind !== "folder") return [];
    const seen = `${facts.identity}:${facts.modifiedNs}`;
    if (seen !== this.#seen) {
      const isSettled = ageMsOf(facts) > settledMs;
      const names = withFileErrors(this.#folder, () => this.#files.names(this.#folder));
      this.#names = Map.groupBy(names.filter((name) => archivedFrom(name) !== null).toSorted(byTime), (name) =>
        String(archivedFrom(name)),
      );
      this.#seen = isSettled ? seen : "";
    }
    return this.#names.get(archivedFrom(fileName) ?? fileName) ?? [];
  }
}

function byTime(one: string, other: string): number {
  const [a, b] = [timeIn(one), timeIn(other)];
  return a < b ? 1 : a > b ? -1 : 0;
}

function timeIn(name: string): string {
  return name.slice((archivedFrom(name)?.length ?? 0) + 1).replace(/^[a-z]+\./, "");
}
