import type { Finding } from "@throughline/core";

/** What helps at an import. */
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

/** A finding of the reader as an import tells it: what becomes of the line here, and what helps here. */
export function toldFinding(finding: Finding): Finding {
  const remedy = remedies.get(finding.code) ?? finding.remedy;
  if (finding.code !== "LINE_TOO_LONG") return { ...finding, remedy };
  return { ...finding, message: `${finding.message} It stays in the source; nothing of it is in the store.`, remedy };
}
