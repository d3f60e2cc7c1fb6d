import { type SessionState, type SessionStore, ThroughlineError } from "@throughline/core";
import type { CommandContext } from "../command.ts";
import { shellWord } from "@throughline/core/internal";
import { assertRecord } from "../show-place.ts";
import { findKnownServer } from "./known-server.ts";
import { pageAddress } from "./page-address.ts";

/**
 * Prints the address of a session, or of one of its records, on the page of the running server. It has no token.
 * @throws {ThroughlineError} RECORD_NOT_FOUND, CAPABILITY_UNSUPPORTED without a server that has the page
 */
export async function showLink(
  context: CommandContext,
  store: SessionStore,
  { ref, sessionId }: SessionState,
  seq: number | null,
): Promise<void> {
  const { output } = context;
  if (seq !== null) await assertRecord(store, ref, seq);
  const server = await findKnownServer(context);
  if (server === null) {
    const place = `${shellWord(ref.key)}${seq === null ? "" : ` --at ${seq}`}`;
    throw new ThroughlineError(
      "CAPABILITY_UNSUPPORTED",
      "No running server of this home has the page, so no link would lead to it.",
      {
        outcome: "not-applied",
        remedy: `Open the page now: \`throughline ui ${place}\`. Links that last need a server: \`throughline serve\`.`,
      },
    );
  }
  const url = pageAddress(server.url, { ref, seq });
  if (output.isJson) await output.object({ kind: "link", key: ref.key, sessionId, seq, url });
  else await output.line(url);
}
