import type { Finding } from "@throughline/core";
import type { SourceLine } from "./source-reader.ts";

const remedies: ReadonlyMap<string, string> = new Map([
  [
    "TAIL_TORN",
    "Nothing to do: its bytes are kept. If its program is still writing, import again: the line is then taken whole.",
  ],
  [
    "LINE_TOO_LONG",
    "The line is not in the store, only in the source: keep that. The conversation goes on around it. A store that takes longer records has it in a session of its own, imported with --key.",
  ],
]);

/** Replaces the reader's remedy with one that fits an import. */
function importFinding(finding: Finding): Finding {
  const remedy = remedies.get(finding.code) ?? finding.remedy;
  if (finding.code !== "LINE_TOO_LONG") return { ...finding, remedy };
  return { ...finding, message: `${finding.message} It stays in the source; nothing of it is in the store.`, remedy };
}

/** Keeps findings in lines that this run read first, because an earlier run reported its own lines. */
export function newFindings(
  findings: readonly Finding[],
  { knownLines, fromFinding }: { readonly knownLines: number; readonly fromFinding: number },
): readonly Finding[] {
  const isNew = ({ line }: Finding, at: number): boolean =>
    line === null || line > knownLines || (line === knownLines && at >= fromFinding);
  return findings.filter(isNew).map(importFinding);
}

/** These findings report no fault of a line. */
const ordinary: ReadonlySet<string> = new Set([
  "VERSION_MIGRATED",
  "RECORD_FLAT",
  "HEADER_MISSING",
  "HEADER_MISMATCH",
  "HEADER_INVALID",
]);

/** True if the record differs from the line's text because the line had to be repaired or was unreadable. */
export function isOdd({ unparsed }: Pick<SourceLine, "unparsed">, findings: readonly Finding[]): boolean {
  return findings.some(({ code }) => !ordinary.has(code)) || (unparsed !== null && unparsed !== "blank");
}
