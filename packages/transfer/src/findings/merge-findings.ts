import type { Finding } from "@throughline/core";
import { runSteps, type Steps } from "@throughline/core/internal";

/** Where a record stands in its file. */
export interface RecordPlace {
  /** The line of the record, from 1. */
  readonly line: number;
  /** Where the line of the record begins, in bytes from 0. */
  readonly byteOffset: number;
}

/**
 * Merges the findings of several finders. The same code about the same record counts once, with the text of the first.
 * A finding that knows only its record gets the record's place. The order is that of the file.
 */
export function mergeFindings(lists: Iterable<readonly Finding[]>, place: FindingPlace = {}): readonly Finding[] {
  return runSteps(mergeSteps(lists, place));
}

/** What is known of the place of findings that do not name one themselves. */
export interface FindingPlace {
  /** The file they are about. @default null */
  readonly path?: string | null;
  /** The key of their session. @default null */
  readonly key?: string | null;
  /** Where records stand in the file, by the record's id. @default none */
  readonly places?: ReadonlyMap<string, RecordPlace>;
}

/** What `mergeFindings` gives, a finding a step. */
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

/** True when somebody should look: something was lost, is in doubt, or had to be worked around. */
export function needsAttention(findings: readonly Finding[]): boolean {
  return findings.some(({ severity }) => severity !== "info");
}
