import { ThroughlineError } from "@throughline/core";
import { quote } from "@throughline/core/store";

interface ImportPlace {
  readonly path: string;
  readonly key: string;
}

/** The file is not what it was as far as it was imported. */
export function sourceChanged({ path, key }: ImportPlace, importedBytes: number, why: string): ThroughlineError {
  return new ThroughlineError("SOURCE_CHANGED", `${quote(path)} was imported before, and ${why}.`, {
    outcome: "not-applied",
    details: { path, key, importedBytes },
  });
}

/** Another import of the file, under way at the same time, has gone on from where this one wanted to. */
export function importOvertaken({ path, key }: ImportPlace, cause?: unknown): ThroughlineError {
  return new ThroughlineError("APPEND_CONFLICT", `Another import of ${quote(path)} was faster.`, {
    outcome: "not-applied",
    remedy: "Import again: it goes on from there.",
    details: { path, key },
    ...(cause === undefined ? {} : { cause }),
  });
}
