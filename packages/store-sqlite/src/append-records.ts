import { crc32 } from "node:zlib";
import type { AppendedRecord } from "@throughline/core/internal";
import type { AppendResult, SessionRef } from "@throughline/core";
import type { AppendPlan, AppendRequest } from "@throughline/store-kit/internal";
import { planAppend } from "@throughline/store-kit/internal";
import { lineBytes, storedRecord } from "@throughline/core/internal";
import { enterReferences } from "./file-references.ts";
import { earlierResult, rememberResult } from "./keyed-appends.ts";
import { enterNewIds, idFinder } from "./record-ids.ts";
import { codedRecord, insertPlainRecord, insertRecord, isPlainRecord } from "./record-rows.ts";
import { placeOf } from "./rows.ts";
import {
  advanceSession,
  entryOf,
  foundSession,
  frameOf,
  placeInSource,
  storeEntry,
  withFrame,
} from "./session-rows.ts";
import type { SessionRow } from "./rows.ts";
import type { WriteContext } from "./store-context.ts";

/**
 * Appends records inside a transaction. Every check that can refuse the append comes before its first change, so a
 * refusal leaves the other writes of the transaction as they are. `lookedFor` is called once the key of a keyed append
 * was looked up.
 */
export function appendRecords(
  context: WriteContext,
  ref: SessionRef,
  request: AppendRequest,
  lookedFor: () => void = () => undefined,
): AppendResult {
  const { statements, known } = context.connection;
  const found = known.find(ref) ?? foundSession(statements, ref);
  const nowMs = context.clock.nowMs();
  const plan = planned(context, found, { request, lookedFor }, nowMs);
  if (plan.result.replayed) return plan.result;
  const place = placeOf(found);
  // A codec may refuse a record, so all records are coded before the first one is written.
  const isPlain = !context.isCoded && plan.linked.every(isPlainRecord);
  const coded = isPlain
    ? []
    : plan.linked.map((item, index) =>
        codedRecord(context.rows, place, item, { seq: found.last_seq + index + 1, storedAtMs: nowMs }),
      );
  const entry = plan.entry === null ? null : context.rows.encodeEntry(place, plan.entry);
  if (entry !== null) storeEntry(statements, found.session, entry);
  // Most changes of an entry leave its source, and the digest of a source costs as much as a record.
  const hasSource = request.options.entry !== undefined && Object.hasOwn(request.options.entry, "importedFrom");
  const session = plan.entry === null || !hasSource ? found : placeInSource(statements, found, plan.entry);
  for (const each of coded) insertRecord(statements, session.session, each);
  for (const [index, { record }] of plan.linked.entries())
    enterReferences(context.connection, session.session, session.last_seq + index + 1, record);
  let seq = session.last_seq;
  if (isPlain) for (const item of plan.linked) insertPlainRecord(statements, session.session, item, ++seq, nowMs);
  const isIdIndexed = hasGivenIds(request);
  if (isIdIndexed) enterNewIds(statements, session, plan.result.records);
  const written = advanceSession(statements, session, rowAfter(session, plan, isIdIndexed));
  const { keyed } = request;
  const row = keyed === null ? written : rememberResult(statements, written, keyed, plan.result, nowMs);
  // Entering ids may have changed the rows of the sessions that this fork shares records with.
  if (isIdIndexed) known.forget();
  else known.put(row);
  context.announce(...plan.events);
  context.grew(session.session);
  if (request.options.return === undefined) return plan.result;
  const stored = plan.linked.map((item, index) => {
    const kept = coded[index]?.row ?? { bytes: lineBytes(item), crc: crc32(item.text) };
    return storedRecord(item, plan.result.records[index] as AppendedRecord, kept);
  });
  return { ...plan.result, stored };
}

export function hasGivenIds({ prepared }: AppendRequest): boolean {
  return prepared.some(({ isIdGiven }) => isIdGiven);
}

function planned(
  context: WriteContext,
  session: SessionRow,
  { request, lookedFor }: { readonly request: AppendRequest; readonly lookedFor: () => void },
  nowMs: number,
): AppendPlan {
  const { connection, rows } = context;
  const { statements } = connection;
  // Ids that this store creates are unique without a look-up, so a session without other ids pays for no index of ids.
  const find = hasGivenIds(request) ? idFinder(statements, session) : null;
  return planAppend(
    request,
    {
      frame: frameOf(session),
      entry: () => entryOf(statements, rows, session),
      holdsId: (id) => find?.(id) !== undefined,
      findKeyed: (key, digest) => {
        const earlier = earlierResult(statements, session, { key, digest }, nowMs);
        lookedFor();
        return earlier;
      },
    },
    nowMs,
  );
}

function rowAfter(session: SessionRow, { frame, linked }: AppendPlan, isIdIndexed: boolean): SessionRow {
  const messages = linked.filter(({ record }) => record.type === "message").length;
  return {
    ...withFrame(session, frame),
    ids_to_seq: isIdIndexed ? frame.head.lastSeq : session.ids_to_seq,
    message_count: session.message_count + messages,
  };
}
