import { quote, refused } from "@throughline/core/internal";
import type { SessionRow } from "./rows.ts";
import type { Statements } from "./statements.ts";

/** Locates records of one session in the file: those after one seq up to another. */
export interface SessionSpan {
  /** Holds the row of the session that wrote the records. */
  readonly owner: SessionRow;
  readonly afterSeq: number;
  readonly toSeq: number;
}

/**
 * Returns where the records of a session are, in order: first those that a fork shares with its origin, then its own.
 * @throws {ThroughlineError} STORE_CORRUPT
 */
export function spansOf(statements: Statements, row: SessionRow): readonly SessionSpan[] {
  const spans: SessionSpan[] = [];
  let owner = row;
  for (let toSeq = Infinity; ;) {
    const { origin, origin_seq: originSeq } = owner;
    spans.unshift({ owner, afterSeq: originSeq ?? 0, toSeq });
    if (origin === null || originSeq === null) return spans;
    const found = statements.findSession.get(origin);
    // An origin is older than its fork, so the walk also ends in a damaged file.
    if (found === undefined || found.session >= owner.session)
      throw refused("STORE_CORRUPT", `The origin of the fork ${quote(owner.session_id)} is missing.`, { origin });
    toSeq = Math.min(toSeq, originSeq);
    owner = found;
  }
}
