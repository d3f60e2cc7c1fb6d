import { patchEntry } from "@throughline/core/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { flushFolder, openIfThere, withFileErrors } from "./file-work.ts";
import { scanLog } from "./read-log.ts";
import { entryOf, withoutUndecodableChange } from "./undecodable-entry.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";

/**
 * Removes fields from the entries of sessions, and their values from the log and the index. Call it under the locks of
 * the sessions and the entries log, after their transcripts were rewritten. A repeated call completes an interrupted
 * one. `rows` are the rows from before the rewrite, with the patches of their transcripts.
 */
export function removeFields(
  agent: AgentSessionFiles,
  context: StoreContext,
  rows: readonly SessionRow[],
  fields: readonly string[],
): void {
  const { log, folder } = agent;
  const without = Object.fromEntries(fields.map((field) => [field, undefined]));
  const changed = rows.flatMap((row) => {
    const entry = entryOf(row);
    if (!fields.some((field) => Object.hasOwn(entry, field))) return [];
    return [{ ...withoutUndecodableChange(row), entry: patchEntry(entry, without), revision: row.revision + 1 }];
  });
  if (changed.length === 0 && !isMentioned(agent, context, rows, fields)) return;
  if (changed.length > 0) {
    log.write({ op: "save", rows: changed });
    log.flushNow();
  }
  log.rewrite([...log.removed]);
  agent.index.scrub(agent.updateIndex([]));
  flushFolder(context.files, folder.own);
}

/**
 * Tests whether the log may still contain values of the fields, after an interrupted removal. Encoded lines cannot be
 * searched, so the answer is then true.
 */
function isMentioned(
  { folder }: AgentSessionFiles,
  { files, codec }: StoreContext,
  rows: readonly SessionRow[],
  fields: readonly string[],
): boolean {
  if (codec.isCoded) return true;
  const ids = rows.map(({ sessionId }) => Buffer.from(JSON.stringify(sessionId)));
  const names = fields.map((field) => Buffer.from(`${JSON.stringify(field)}:`));
  const handle = openIfThere(files, folder.entriesLog);
  if (handle === null) return false;
  try {
    let isFound = false;
    const { sizeBytes } = withFileErrors(folder.entriesLog, () => files.factsOf(handle));
    const last = scanLog({ files, folder }, handle, { from: 0, to: sizeBytes }, ({ bytes }) => {
      const line = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      isFound ||= ids.some((id) => line.includes(id)) && names.some((name) => line.includes(name));
    });
    return isFound || last !== null;
  } finally {
    files.close(handle);
  }
}
