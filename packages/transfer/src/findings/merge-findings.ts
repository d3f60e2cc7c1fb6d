import type { Finding } from "@throughline/core";
import { runSteps, type Steps } from "@throughline/core/internal";

/** Describes the position of a record in its file. */
export interface RecordPlace {
  /** States the line of the record, from 1. */
  readonly line: number;
  /** States the byte offset of the record's line, from 0. */
  readonly byteOffset: number;
}

/**
 * Merges the findings of several checks. The same code about the same record counts once, with the text of the first
 * finding. A finding without a line gets the line of its record. The result is in the order of the file.
 */
export function mergeFindings(lists: Iterable<readonly Finding[]>, place: FindingPlace = {}): readonly Finding[] {
  return runSteps(mergeSteps(lists, place));
}

/** Describes the location of findings that state none themselves. */
export interface FindingPlace {
  /** States the file of the findings. @default null */
  readonly path?: string | null;
  /** States the key of the session. @default null */
  readonly key?: string | null;
  /** Maps record ids to positions in the file. @default none */
  readonly places?: ReadonlyMap<string, RecordPlace>;
}

/** Does the work of `mergeFindings` in steps of one finding, so that a caller can pause in between. */
export function* mergeSteps(lists: Iterable<readonly Finding[]>, place: FindingPlace): Steps<readonly Finding[]> {
  const merged: Finding[] = [];
  const seen = new Set<string>();
  for (const finding of Array.from(lists).flat()) {
    yield;
    const found = finding.recordId === null ? undefined : place.places?.get(finding.recordId);
    const line = finding.line ?? found?.line ?? null;
    const key = JSON.stringify([finding.code, line ?? finding.recordId ?? finding.message]);
    if (seen.has(key)) continue;
    seen.add(key);
    merged.push({
      ...finding,
      path: finding.path ?? place.path ?? null,
      key: finding.key ?? place.key ?? null,
      line,
      byteOffset: finding.byteOffset ?? found?.byteOffset ?? null,
    });
  }
  return merged.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0));
}

/**
 * Returns true when a finding needs a person's attention: data is lost or in doubt, or the reader had to work around a
 * problem.
 */
export function needsAttention(findings: readonly Finding[]): boolean {
  return findings.some(({ severity }) => severity !== "info");
}
