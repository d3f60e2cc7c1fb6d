import type { SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { findRecord, refused, type RecordHead } from "@throughline/core/internal";
import { withinMemory } from "@throughline/core/internal/node";
import { readExchange, rebuildRequest, type RebuiltRequest } from "@throughline/gateway/internal";
import { exchangeIdOf, readCall, type FoundCall } from "@throughline/session/internal";
import { decodeSegment } from "../http/session-segment.ts";
import type { ApiRequest } from "../http/route.ts";

export type CallApiRequest = Pick<ApiRequest, "ref" | "view" | "parameters" | "signal" | "context">;

/** @throws {ThroughlineError} RECORD_NOT_FOUND */
export async function findCall({ ref, view, parameters, signal }: CallApiRequest): Promise<FoundCall> {
  const at = ref();
  const id = decodeSegment(parameters["id"] ?? "");
  const store = withinMemory(view.store(at.agentId));
  const found = await readCall(store, at, await findRecord(store, at, id, signal), { signal });
  if (found === null) throw refused("RECORD_NOT_FOUND", "The session has no call with this id.", { id });
  return found;
}

export interface SentBody extends RebuiltRequest {
  /** Names the API whose shape the body has. */
  readonly api: unknown;
}

/**
 * Rebuilds the exact body of a call through the gateway. It looks the record of the call up where the caller has none.
 * @throws {ThroughlineError} RECORD_NOT_FOUND also when a part of the body was redacted, CAPABILITY_UNSUPPORTED
 */
export async function rebuildSent(
  { ref, view, parameters, signal }: CallApiRequest,
  known?: StoredRecord,
): Promise<SentBody> {
  const at = ref();
  const id = decodeSegment(parameters["id"] ?? "");
  const store = withinMemory(view.store(at.agentId));
  const call = known ?? (await oneRecord(store, at, await findRecord(store, at, id, signal), signal));
  const exchangeId = call === null ? null : exchangeIdOf(call.record);
  if (exchangeId === null)
    throw refused("CAPABILITY_UNSUPPORTED", "The exact bytes of a request are kept for calls of a gateway only.", {
      needs: "gateway",
    });
  const exchange = await oneRecord(store, at, await findRecord(store, at, exchangeId, signal), signal);
  const facts = exchange === null ? null : readExchange(exchange);
  if (facts?.encoding === "base64" && facts.frame.length === 0)
    throw refused("RECORD_NOT_FOUND", "The body of the request could not be read, and was too large to be kept.", {
      id,
    });
  try {
    if (exchange === null || facts === null) throw new RangeError("The exchange of the call is redacted or missing.");
    const rebuilt = await rebuildRequest(store.read(at, { beforeSeq: exchange.seq, signal }), facts);
    return { ...rebuilt, api: facts["api"] };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw refused("RECORD_NOT_FOUND", "Something that the request held was redacted or removed.", { id }, error);
  }
}

async function oneRecord(
  store: SessionStore,
  at: SessionRef,
  { seq }: Pick<RecordHead, "seq">,
  signal: AbortSignal,
): Promise<StoredRecord | null> {
  for await (const { records } of store.read(at, { afterSeq: seq - 1, limit: 1, signal })) return records[0] ?? null;
  return null;
}
