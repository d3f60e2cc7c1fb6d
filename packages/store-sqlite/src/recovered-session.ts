import { firstSweepAt } from "./keyed-appends.ts";
import type { Salvage } from "./salvage.ts";
import { slotOf } from "./session-rows.ts";
import type { Session, SessionRow } from "./statements.ts";
import type { StoreContext } from "./store-context.ts";

/** The row of a session of which only records are left. Its key says so, and its number, which is all that is known of it. */
export function recreatedRow(session: Session, salvage: Salvage, { clock, random }: StoreContext): SessionRow {
  const nowMs = clock.nowMs();
  const row: SessionRow = {
    session,
    namespace: "",
    agent_id: "main",
    key: `agent:main:recovered-${session}`,
    archived: 0,
    session_id: `recovered-${session}-${random.uint32().toString(16)}`,
    revision: 1,
    last_seq: salvage.lastSeq(session),
    head_id: null,
    window_seq: null,
    fence: 0,
    turn: null,
    message_count: 0,
    created_at_ms: nowMs,
    updated_at_ms: nowMs,
    updated_slot: slotOf(nowMs),
    ids_to_seq: 0,
    keyed_next: 1,
    keyed_rows: 0,
    keyed_sweep_at: firstSweepAt(0),
    keyed_horizon_ms: nowMs,
    origin: null,
    origin_seq: null,
  };
  let [messages, headId]: [number, string | null] = [0, null];
  let [firstMs, lastMs] = [Infinity, 0];
  for (const seq of salvage.seqs(session)) {
    const found = salvage.record(row, seq);
    if (found === undefined) continue;
    const { id, side, type, storedAtMs } = found.row;
    if (!side) headId = id;
    if (type === "message") messages += 1;
    firstMs = Math.min(firstMs, storedAtMs ?? nowMs);
    lastMs = Math.max(lastMs, storedAtMs ?? 0);
  }
  const updatedMs = lastMs === 0 ? nowMs : lastMs;
  return {
    ...row,
    head_id: headId,
    message_count: messages,
    created_at_ms: Math.min(firstMs, updatedMs),
    updated_at_ms: updatedMs,
    updated_slot: slotOf(updatedMs),
  };
}

/** The same session under a key and an id that no other has. */
export function renamedRow(row: SessionRow): SessionRow {
  const ending = `recovered-${row.session}`;
  return { ...row, key: `${row.key}:${ending}`, session_id: `${row.session_id.slice(0, 100)}-${ending}` };
}
