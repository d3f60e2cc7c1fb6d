import { hasErrorCode } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import type { CommandContext } from "../command.ts";
import { createAskServer } from "../server/ask-server.ts";
import { findToken } from "../server/server-access.ts";
import type { KnownServer } from "./known-server.ts";

/** Is what a page of a running server shows itself with. */
interface PageToken {
  /** Is null where no token for the server is known. The page then asks for one. */
  readonly text: string | null;
  readonly expiresAtMs: number | null;
}

const lifeMs = 12 * 60 * 60 * 1000;

/**
 * Makes a token that reads and ends by itself. A known token that may not make others is handed over as it is.
 * @throws {ThroughlineError} what the server answers
 */
export async function makePageToken(
  context: CommandContext,
  { url }: KnownServer,
  agents: readonly string[] | "*",
): Promise<PageToken> {
  const { output, scope } = context;
  const known = findToken(url, context.tokenPlaces);
  if (known === undefined) {
    output.note(
      "No token for this server is known here. The page asks for one: `throughline token create NAME --scopes read`.",
    );
    return { text: null, expiresAtMs: null };
  }
  const expiresAtMs = systemClock.nowMs() + lifeMs;
  const rights = { label: "throughline ui", namespace: scope.namespace, agents, scopes: ["read"], expiresAtMs };
  const ask = createAskServer(url, context);
  const post = async (body: Readonly<Record<string, unknown>>): Promise<PageToken> => {
    const { secret } = await ask<{ readonly secret: string }>({ method: "POST", path: "/admin/tokens", body });
    return { text: secret, expiresAtMs };
  };
  try {
    return await post({ ...rights, requestsPerMinute: null });
  } catch (error) {
    if (isWithoutAdmin(error)) return handedOver(output, known);
    // A server of an earlier version, and a token of one tenant, cannot lift the limit.
    if (!hasErrorCode(error, "INPUT_INVALID", "FORBIDDEN")) throw error;
  }
  return post(rights);
}

function isWithoutAdmin(error: unknown): boolean {
  return hasErrorCode(error, "FORBIDDEN") && error.details["needs"] === "admin";
}

function handedOver(output: CommandContext["output"], known: string): PageToken {
  output.note("The known token may not make others (scope admin), so the page gets this token itself.");
  return { text: known, expiresAtMs: null };
}
