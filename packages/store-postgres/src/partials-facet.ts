import type { PartialReply, PartialsFacet, SessionRef } from "@throughline/core";
import {
  assertFence,
  assertPartialFits,
  isPartialOf,
  type KeptPartial,
  type PayloadOwner,
  preparePartial,
  readPartial,
} from "@throughline/store-kit/internal";
import { refused, sessionNotFound } from "@throughline/core/internal";
import { addressOf } from "./append-records.ts";
import { headOf, textOrNull, type DatabaseRow } from "./row-values.ts";
import { stateColumns } from "./save-function.ts";
import type { StoreContext } from "./store-context.ts";

/** Returns the condition for the session's address. The tenant is bound to the parameter `tenant`. */
function isAddressed({ found }: StoreContext, tenant: string): string {
  return `t.namespace = $1 AND t.agent_id = $2 AND t.key = $3 AND t.archive_id = $4${found.layout.and("t", tenant)}`;
}

const columns = stateColumns.filter((column) => !column.startsWith("entry")).map((column) => `t.${column}`);

/** `write` runs work that closing waits for, on an open schema. */
export function createPartials(
  context: StoreContext,
  write: <Result>(work: () => Promise<Result>) => Promise<Result>,
): PartialsFacet {
  return {
    write: (ref, given) =>
      write(async () => {
        const kept = preparePartial(given, context.limits);
        await writePartial(context, ref, kept);
      }),
    read: (ref) => write(() => readKept(context, ref)),
    remove: (ref, fence) =>
      write(async () => {
        assertFence(fence);
        const address = addressOf(ref);
        if (address === null) return;
        const { layout } = context.found;
        await context.pool.run(
          `DELETE FROM ${context.schema}.partials p USING ${context.schema}.sessions t
           WHERE p.session_no = t.session_no${layout.and("p", "t.tenant")} AND ${isAddressed(context, "$6")} AND p.fence <= $5`,
          [...address, fence, ...layout.values(ref)],
          { agent: ref },
        );
      }),
  };
}

/**
 * The transaction locks the session row until its commit. A concurrent archive or redaction waits, and then removes
 * this partial as well.
 */
async function writePartial(context: StoreContext, ref: SessionRef, { partial, text }: KeptPartial): Promise<void> {
  const address = addressOf(ref);
  if (address === null) throw sessionNotFound(ref);
  const { schema, rows } = context;
  const { layout } = context.found;
  const coded = rows.isCoded ? rows.coder.encode(text, ownerOf(ref, partial)) : null;
  const [row] = await context.pool.transaction(
    (run) =>
      run(
        `WITH t AS (SELECT * FROM ${schema}.sessions t WHERE ${isAddressed(context, "$10")} FOR SHARE),
       w AS (
         INSERT INTO ${schema}.partials (${layout.first("tenant")}session_no, fence, turn_id, content, coded)
         SELECT ${layout.first("t.tenant")}t.session_no, $5, $6, $8, $9 FROM t
           WHERE t.archive_id = '' AND t.session_id = $7 AND t.fence = $5 AND t.turn_id = $6
         ON CONFLICT (session_no${layout.last("tenant")}) DO UPDATE
           SET fence = excluded.fence, turn_id = excluded.turn_id, content = excluded.content, coded = excluded.coded
         RETURNING session_no
       )
       SELECT ${columns.join(", ")}, EXISTS (SELECT FROM w) AS is_written FROM t`,
        [
          ...address,
          partial.fence,
          partial.turnId,
          partial.sessionId,
          rows.isCoded ? null : text,
          coded,
          ...layout.values(ref),
        ],
      ),
    ref,
  );
  if (row === undefined) throw sessionNotFound(ref);
  if (row["is_written"] === true) return;
  assertPartialFits(ref, headOf(row), partial);
  throw refused("INTERNAL", "The database refused a partial reply that the contract allows.", { ...ref });
}

async function readKept(context: StoreContext, ref: SessionRef): Promise<PartialReply | null> {
  const address = addressOf(ref);
  if (address === null) throw sessionNotFound(ref);
  const { layout } = context.found;
  const [row] = await context.pool.run(
    `SELECT ${columns.join(", ")}, p.fence AS partial_fence, p.turn_id AS partial_turn_id, p.content, p.coded
     FROM ${context.schema}.sessions t LEFT JOIN ${context.schema}.partials p ON p.session_no = t.session_no${layout.and("p", "t.tenant")}
     WHERE ${isAddressed(context, "$5")}`,
    [...address, ...layout.values(ref)],
    { isRead: true, agent: ref },
  );
  if (row === undefined) throw sessionNotFound(ref);
  const turnId = textOrNull(row["partial_turn_id"]);
  if (turnId === null || row["archive_id"] !== "") return null;
  const kept = { sessionId: String(row["session_id"]), turnId, fence: Number(row["partial_fence"]) };
  if (!isPartialOf(headOf(row), kept)) return null;
  return readPartial(plainText(context, ref, row, kept), ref);
}

function plainText(
  { rows }: StoreContext,
  ref: SessionRef,
  { content, coded }: DatabaseRow,
  kept: Pick<PartialReply, "sessionId" | "turnId">,
): string {
  if (rows.isCoded && coded instanceof Uint8Array)
    return Buffer.from(rows.coder.decode(coded, ownerOf(ref, kept))).toString();
  if (!rows.isCoded && typeof content === "string") return content;
  throw refused("CODEC_FAILED", "The partial reply cannot be read with the codec the store was opened with.", {
    ...ref,
  });
}

function ownerOf(ref: SessionRef, { sessionId, turnId }: Pick<PartialReply, "sessionId" | "turnId">): PayloadOwner {
  return { ref, sessionId, id: turnId, part: "partial" };
}
