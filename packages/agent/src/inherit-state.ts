import type { ForeignPlace } from "@throughline/transfer/internal";
import { readHomeFile, writeHomeFile } from "./node/home-file.ts";

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
  const { places } = (readHomeFile(path) ?? {}) as { readonly places?: unknown };
  return typeof places === "object" && places !== null ? (places as InheritState) : {};
}

export function writeInheritState(path: string, places: InheritState): void {
  writeHomeFile(path, { v: 1, places });
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
