import type { RedactOptions, RedactResult, SessionRef } from "@throughline/core";
import { planFieldRemoval, planRedaction } from "@throughline/store-kit/internal";
import { fileIdsOf, quote, refused } from "@throughline/core/internal";
import type { RedactionInfo } from "@throughline/store-kit/internal";
import { dropReferencesOfRecord } from "./file-references.ts";
import { idFinder } from "./record-ids.ts";
import { dropPayloads, recordOf, replaceRecord, rowOf } from "./record-rows.ts";
import { placeOf, refOf } from "./rows.ts";
import { entryOf, foundSession, frameOf, sealSession, storeSession, withFrame, writeEntry } from "./session-rows.ts";
import type { SessionRow } from "./rows.ts";
import type { WriteContext } from "./store-context.ts";
import { forgetVectorsOf } from "./vector-rows.ts";

/** Replaces records wherever they are stored. A record that sessions share disappears from all of them. */
export function redactSession(
  context: WriteContext,
  ref: SessionRef,
  ids: readonly string[],
  { reason, entryFields = [], texts }: RedactOptions,
): RedactResult {
  const { statements } = context.connection;
  const session = foundSession(statements, ref);
  const find = idFinder(statements, session);
  const owners = new Map<number, SessionRow>();
  const { seqs, events } = planRedaction(frameOf(session), ids, (id) => {
    const found = find(id);
    if (found !== undefined) owners.set(found.seq, found.owner);
    return found?.seq;
  });
  const info = { reason, redactedAtMs: context.clock.nowMs(), texts };
  const reached = new Map([[session.session, session]]);
  for (const seq of seqs) {
    const owner = owners.get(seq);
    if (owner === undefined) continue;
    redactRecord(context, session, { owner, seq }, info);
    for (const sharer of statements.sharersOf.all(owner.session, seq)) reached.set(sharer.session, sharer);
  }
  for (const each of reached.keys()) context.partials.drop(context.connection, each);
  if (entryFields.length > 0) for (const each of reached.keys()) removeFields(context, each, entryFields);
  context.announce(...events);
  return { seqs };
}

/** Removes fields from the entry of a session that a redaction reaches. */
function removeFields(context: WriteContext, number: SessionRow["session"], fields: readonly string[]): void {
  const { connection, rows, clock } = context;
  const { statements } = connection;
  // The row is read again, because it counts fewer messages than before.
  const session = statements.findSession.get(number);
  if (session === undefined) return;
  const plan = planFieldRemoval(frameOf(session), entryOf(statements, rows, session), fields, clock.nowMs());
  if (plan === null) return;
  storeSession(statements, withFrame(writeEntry(statements, rows, session, plan.entry), plan.frame));
  context.announce(...plan.events);
}

/** Replaces one record. A tombstone stays as it is. */
function redactRecord(
  context: WriteContext,
  session: SessionRow,
  { owner, seq }: { readonly owner: SessionRow; readonly seq: number },
  info: RedactionInfo,
): void {
  const { statements } = context.connection;
  const [found] = statements.readRecords.ascending.all(owner.session, seq - 1, seq + 1, 1);
  if (found === undefined)
    throw refused("STORE_CORRUPT", `Record ${seq} of ${quote(owner.session_id)} is missing.`, { seq });
  const before = rowOf(statements, owner.session, found);
  const redacted = context.rows.redactRecord(placeOf(owner), before, info);
  if (redacted === null) return;
  context.search.forgetRecord(context.connection, owner, before);
  forgetVectorsOf(context.connection, owner.session, seq);
  replaceRecord(statements, owner.session, redacted);
  dropPayloads(statements, [found]);
  context.search.indexRecord(context.connection, owner, before);
  const sharers = statements.sharersOf.all(owner.session, seq);
  dropReferencesOfRecord(context.connection, session, { seq, sharers }, () =>
    fileIdsOf(recordOf(context.rows, placeOf(owner), redacted, "record").record),
  );
  for (const sharer of sharers) {
    if (before.type === "message" && redacted.type !== "message") {
      statements.addMessages.run(-1, sharer.session);
      sealSession(statements, sharer.session);
    }
    if (sharer.session !== session.session)
      context.announce({ name: "records-redacted", ref: refOf(sharer), seqs: [seq] });
  }
}
