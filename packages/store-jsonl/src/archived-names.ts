import { ageMsOf, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { archivedFrom } from "./recover-entries.ts";
import type { SessionRow } from "./session-row.ts";

/** A folder that changed so lately may change again without showing it. */
const settledMs = 1000;

/** Transcripts that another program gave the names of archived ones, by the names they had before. */
export class ArchivedNames {
  readonly #files: Files;
  readonly #folder: string;
  #seen = "";
  #names: ReadonlyMap<string, readonly string[]> = new Map();

  /** `folder`: of the transcripts. */
  constructor(files: Files, folder: string) {
    this.#files = files;
    this.#folder = folder;
  }

  /** The names a transcript may go by: OpenClaw puts the transcripts of sessions aside that it resets or deletes. */
  *allNamesOf({ fileName, formerFileName }: Pick<SessionRow, "fileName" | "formerFileName">): Generator<string> {
    yield fileName;
    if (formerFileName !== undefined) yield formerFileName;
    yield* this.namesOf(fileName);
  }

  /** The names that a transcript may go by now, the newest first. Reads the folder when it is not what it was. */
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

/** What such a name ends with is its time. */
function byTime(one: string, other: string): number {
  const [a, b] = [timeIn(one), timeIn(other)];
  return a < b ? 1 : a > b ? -1 : 0;
}

function timeIn(name: string): string {
  return name.slice((archivedFrom(name)?.length ?? 0) + 1).replace(/^[a-z]+\./, "");
}
