import { serializeRecord } from "@throughline/core/store";
import type { PayloadPlace, RowCoder } from "@throughline/core/store";
import { dropPayloads, recodeRecord, recordOf, rowOf } from "./record-rows.ts";
import { placeOf, storeSession } from "./session-rows.ts";
import type { RecordContentRow, Session, SessionRow, Statements } from "./statements.ts";
import type { WriteContext } from "./store-context.ts";

/**
 * Before a session is purged its forks get what they share of its own records: the oldest those it needs, each later one
 * what it needs beyond that. Gives the seq up to which somebody needs them.
 */
export function copyToForks(context: WriteContext, session: SessionRow): number {
  const { statements } = context.connection;
  let covered = session.origin_seq ?? 0;
  const holders: { readonly session: number | null; readonly toSeq: number }[] = [
    { session: session.origin, toSeq: covered },
  ];
  for (const fork of statements.forksOf.all(session.session)) {
    const toSeq = fork.origin_seq ?? 0;
    const holder = holders.find((each) => each.toSeq >= toSeq);
    if (holder !== undefined) {
      statements.setOrigin.run(holder.session, toSeq, fork.session);
      continue;
    }
    const below = holders.at(-1);
    give(context, session, fork, { afterSeq: covered, toSeq });
    const isFirst = below === undefined || below.session === null;
    statements.setOrigin.run(isFirst ? null : below.session, isFirst ? null : covered, fork.session);
    holders.push({ session: fork.session, toSeq });
    covered = toSeq;
  }
  return covered;
}

/** Under a codec what is kept is bound to its session, and has to be coded for the new one. */
function give(
  { connection: { statements }, rows, isCoded }: WriteContext,
  from: SessionRow,
  to: SessionRow,
  { afterSeq, toSeq }: { readonly afterSeq: number; readonly toSeq: number },
): void {
  const [before, after] = [placeOf(from), placeOf(to)];
  for (let at = afterSeq; isCoded && at < toSeq;) {
    const found = statements.readRecords.ascending.all(from.session, at, toSeq + 1, 100);
    const last = found.at(-1);
    if (last === undefined) break;
    for (const each of found) recode(statements, rows, { before, after }, from.session, each);
    at = last.seq;
  }
  if (from.ids_to_seq < toSeq)
    storeSession(statements, { ...to, ids_to_seq: Math.min(to.ids_to_seq, from.ids_to_seq) });
  statements.giveIds.run(to.session, from.session, afterSeq, toSeq);
  statements.giveChildren.run(to.session, from.session, afterSeq, toSeq);
  statements.giveRecords.run(to.session, from.session, afterSeq, toSeq);
}

function recode(
  statements: Statements,
  rows: RowCoder,
  { before, after }: { readonly before: PayloadPlace; readonly after: PayloadPlace },
  session: Session,
  found: RecordContentRow,
): void {
  const stored = recordOf(rows, before, rowOf(statements, found), "source");
  const { record, source, isSourceCanonical, side, tsMs } = stored;
  const text = isSourceCanonical && typeof source === "string" ? source : serializeRecord(record);
  const item = { record, text, side, tsMs, source: isSourceCanonical ? null : source, isSourceCanonical };
  recodeRecord(statements, session, rows.encodeRecord(after, item, stored));
  dropPayloads(statements, [found]);
}
