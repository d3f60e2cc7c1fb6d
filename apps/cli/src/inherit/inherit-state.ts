import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { systemRandom } from "@throughline/core/internal";
import { mostFileBytes, readBoundedFile } from "@throughline/config/internal";
import type { ForeignPlace } from "@throughline/transfer/internal";

/** Holds the user's decision about a location, and the location's metadata at that time. */
export interface InheritAnswer {
  readonly answer: "yes" | "no";
  readonly files: number;
  readonly sizeBytes: number;
  readonly newestMs: number;
}

export type InheritState = Readonly<Record<string, InheritAnswer>>;

/** Keys are paths. An unreadable file counts as empty, so the user is asked once more. */
export function readInheritState(path: string): InheritState {
  try {
    const text = readBoundedFile(path, { what: "state", mostBytes: mostFileBytes });
    const { places } = JSON.parse(text) as { readonly places?: unknown };
    return typeof places === "object" && places !== null ? (places as InheritState) : {};
  } catch {
    return {};
  }
}

export function writeInheritState(path: string, places: InheritState): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${systemRandom.uuid()}.tmp`;
  writeFileSync(temporary, `${JSON.stringify({ v: 1, places })}\n`, { mode: 0o600 });
  renameSync(temporary, path);
}

export function answerFor(
  { files, sizeBytes, newestMs }: ForeignPlace,
  answer: InheritAnswer["answer"],
): InheritAnswer {
  return { answer, files, sizeBytes, newestMs };
}

export function isAsBefore(place: ForeignPlace, before: InheritAnswer | undefined): boolean {
  return (
    before !== undefined &&
    before.files === place.files &&
    before.sizeBytes === place.sizeBytes &&
    before.newestMs === place.newestMs
  );
}
