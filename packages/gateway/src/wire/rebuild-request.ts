import { createHash } from "node:crypto";
import type { StoredRecord } from "@throughline/core";
import { throughlineKind } from "@throughline/core/internal";
import type { ExchangeData } from "./exchange-data.ts";
import { WireLog } from "./wire-log.ts";

/** Returns the data of an exchange record, or null for another record. */
export function readExchange({ record }: Pick<StoredRecord, "record">): ExchangeData | null {
  const data = throughlineKind(record) === "exchange" ? (record["data"] as ExchangeData | null) : null;
  return data !== null && typeof data === "object" && Array.isArray(data.frame) ? data : null;
}

/** Holds the exact bytes of a request, and the records that its messages are kept in. */
export interface RebuiltRequest {
  readonly body: Uint8Array;
  /** Names the records in the order of the messages. The body may have further messages, which no record holds. */
  readonly recordIds: readonly string[];
}

/**
 * Rebuilds the exact bytes of a request from the log records before its exchange.
 *
 * @param pages the log from its first record up to the exchange
 * @throws {RangeError} when a record that the request was made of is redacted or missing
 */
export async function rebuildRequest(
  pages: AsyncIterable<{ readonly records: readonly StoredRecord[] }>,
  exchange: ExchangeData,
): Promise<RebuiltRequest> {
  const { knownSeq, frame, encoding, separator = ",", requestSha256 } = exchange;
  if (encoding === "base64" && frame.length === 0) throw new RangeError("The body was too large to be kept.");
  if (encoding === "base64") return { body: Buffer.from(String(frame[0]), "base64"), recordIds: [] };
  const log = new WireLog();
  for await (const { records } of pages)
    for (const stored of records)
      // Skip exchanges that other writers stored after `knownSeq`, because their forms would change the form numbers of
      // this frame.
      if (stored.seq <= knownSeq || throughlineKind(stored.record) !== "exchange") log.apply(stored);
  log.addForms(exchange);
  const body = new TextEncoder().encode(log.frameText(frame, separator));
  if (requestSha256 !== undefined && createHash("sha256").update(body).digest("hex") !== requestSha256)
    throw new RangeError("The log gives another request than the one that was sent.");
  return { body, recordIds: log.frameIds(frame) };
}
