import type { RedactOptions, RedactResult, SessionRef } from "@throughline/core";
import { planRedaction, quote, refused } from "@throughline/core/store";
import type { RedactionInfo } from "@throughline/core/store";
import { idFinder } from "./record-ids.ts";
import { dropPayloads, rowOf } from "./record-rows.ts";
import { foundSession, frameOf, placeOf, refOf } from "./session-rows.ts";
import type { SessionRow } from "./statements.ts";
import type { WriteScene } from "./store-scene.ts";

/** Replaces records wherever they are kept: a record that sessions share is gone from all of them. */
export function redactSession(
  scene: WriteScene,
  ref: SessionRef,
  ids: readonly string[],
  { reason }: RedactOptions,
): RedactResult {
  const { statements } = scene.connection;
  const session = foundSession(statements, ref);
  const find = idFinder(statements, session);
  const owners = new Map<number, SessionRow>();
  const { seqs, events } = planRedaction(frameOf(session), ids, (id) => {
    const found = find(id);
    if (found !== undefined) owners.set(found.seq, found.owner);
    return found?.seq;
  });
  const info = { reason, redactedAtMs: scene.clock.nowMs() };
  for (const seq of seqs) {
    const owner = owners.get(seq);
    if (owner !== undefined) redactRecord(scene, session, { owner, seq }, info);
  }
  scene.announce(...events);
  return { seqs };
}

/** A tombstone stays as it is. */
function redactRecord(
  scene: WriteScene,
  session: SessionRow,
  { owner, seq }: { readonly owner: SessionRow; readonly seq: number },
  info: RedactionInfo,
): void {
  const { statements } = scene.connection;
  const [found] = statements.readRecords.ascending.all(owner.session, seq - 1, seq + 1, 1);
  if (found === undefined)
    throw refused("STORE_CORRUPT", `Record ${seq} of ${quote(owner.session_id)} is missing.`, { seq });
  const before = rowOf(statements, found);
  const tombstone = scene.rows.redactRecord(placeOf(owner), before, info);
  if (tombstone === null) return;
  scene.search?.forgetRecord(scene.connection, owner, before);
  statements.replaceRecord.run(tombstone.type, tombstone.bytes, tombstone.crc, tombstone.text, owner.session, seq);
  dropPayloads(statements, [found]);
  for (const sharer of statements.sharersOf.all(owner.session, seq)) {
    if (before.type === "message") statements.addMessages.run(-1, sharer.session);
    if (sharer.session !== session.session)
      scene.announce({ name: "records-redacted", ref: refOf(sharer), seqs: [seq] });
  }
}
