import type { LinkedRecord, StoreLimits } from "@throughline/core/internal";
import { headAfter, lineBytes, nextTurnState, quote } from "@throughline/core/internal";
import type { AppendOptions, Durability, SessionHead, StoreCapabilities } from "@throughline/core";
import { ThroughlineError } from "@throughline/core";

/**
 * Returns the head of the session after an append, or throws the reason for a refusal. The caller must hold the same
 * exclusion as the write. `nowMs` is the store's clock. A turn that was taken over gets TURN_FENCED before
 * APPEND_CONFLICT, because loading again would not help it.
 * @throws {ThroughlineError} APPEND_CONFLICT, SESSION_BUSY, TURN_FENCED
 */
export function headAfterAppend(
  head: SessionHead,
  linked: readonly LinkedRecord[],
  options: Pick<AppendOptions, "expect" | "turn" | "rewindTo" | "windowFromSeq">,
  nowMs: number,
): SessionHead {
  const { expect, turn, rewindTo, windowFromSeq } = options;
  // A rewind moves the head under an open turn, like a main record does.
  const hasMainRecord = rewindTo !== undefined || linked.some(({ side }) => !side);
  const next = nextTurnState({ fence: head.fence, turn: head.turn }, turn, { hasMainRecord, nowMs });
  if (expect !== undefined && expect.head !== head.headId) {
    throw new ThroughlineError("APPEND_CONFLICT", `The head is ${quote(head.headId)}, not ${quote(expect.head)}.`, {
      outcome: "not-applied",
      details: { headId: head.headId, expectedHeadId: expect.head },
    });
  }
  return {
    sessionId: head.sessionId,
    lastSeq: head.lastSeq + linked.length,
    headId: rewindTo === undefined ? headAfter(linked, head.headId) : rewindTo,
    windowSeq: windowFromSeq ?? head.windowSeq,
    fence: next.fence,
    turn: next.turn,
  };
}

/**
 * Refuses records and batches that exceed the store's limits. The size of a record is the size of its line, imported or
 * serialized.
 * @throws {ThroughlineError} RECORD_TOO_LARGE, BATCH_TOO_LARGE
 */
export function assertBatchSize(linked: readonly LinkedRecord[], limits: StoreLimits): void {
  let batchBytes = 0;
  for (const [index, item] of linked.entries()) {
    const bytes = lineBytes(item);
    batchBytes += bytes;
    if (bytes > limits.recordBytes) throw tooLarge("RECORD_TOO_LARGE", `Draft ${index}`, bytes, limits.recordBytes);
  }
  if (batchBytes > limits.batchBytes) throw tooLarge("BATCH_TOO_LARGE", "The append", batchBytes, limits.batchBytes);
}

/**
 * Returns the durability of a write.
 * @throws {ThroughlineError} CAPABILITY_UNSUPPORTED when the store cannot give what is asked
 */
export function writeDurability(capabilities: StoreCapabilities, asked: Durability | undefined): Durability {
  const durability = asked ?? capabilities.defaultDurability;
  if (capabilities.durabilities.includes(durability)) return durability;
  throw new ThroughlineError(
    "CAPABILITY_UNSUPPORTED",
    `The store ${capabilities.name} cannot write with durability ${quote(asked)}.`,
    {
      outcome: "not-applied",
      details: { asked, durabilities: capabilities.durabilities },
    },
  );
}

function tooLarge(
  code: "RECORD_TOO_LARGE" | "BATCH_TOO_LARGE",
  what: string,
  bytes: number,
  limit: number,
): ThroughlineError {
  return new ThroughlineError(code, `${what} has ${bytes} bytes; the store takes ${limit}.`, {
    outcome: "not-applied",
    details: { bytes, limit },
  });
}
