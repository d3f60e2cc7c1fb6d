import type { ApiIncoming } from "./exchange.ts";
import type { Problem } from "./problem.ts";

/** Limits how much of a refused body is read so that the connection can serve the next request. */
const readOnBytes = 64 * 1024;

/**
 * Returns whether the connection closes behind a refusal, if the body of the request has not arrived. A client that sent
 * `Expect` may send its body or its next request, and the server cannot distinguish the two. A client that was too slow may not send
 * its next request.
 */
export function mustCloseUnread({ headers }: Pick<ApiIncoming, "headers">, { status }: Problem): boolean {
  const { expect, "transfer-encoding": chunked, "content-length": length } = headers;
  return chunked !== undefined || expect !== undefined || Number(length ?? 0) > readOnBytes || status === 408;
}
