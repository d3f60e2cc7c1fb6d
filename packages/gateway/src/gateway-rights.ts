import type { IncomingMessage } from "node:http";
import { refused } from "@throughline/core/internal";
import { bodyText, readEvents, type WireApi } from "./wire/index.ts";
import type { GatewayCaller } from "./gateway-caller.ts";
import type { AnswerText } from "./call-facts.ts";
import { type GatewayMode, gatewayModes, isGatewayMode, type Upstream } from "./gateway-options.ts";
import type { PathRule } from "./gateway-path.ts";
import { isWithinBounds } from "./json-bounds.ts";
import type { GatewayScope, SessionLookup } from "./session-lookup.ts";
import { type StoredId, storedIdsIn } from "./stored-ids.ts";

/**
 * Returns the Throughline token of a request. With `server` credentials it replaces the API key. With `caller`
 * credentials the header `throughline-token` carries it beside the client's key.
 */
export function tokenText({ credentials }: Upstream, { headers }: IncomingMessage): string | null {
  const own = headers["throughline-token"];
  if (credentials === "caller") return typeof own === "string" ? own : null;
  const [, bearer] = /^Bearer +([\w-]+) *$/i.exec(headers.authorization ?? "") ?? [];
  const key = headers["x-api-key"];
  return bearer ?? (typeof key === "string" ? key : null);
}

/** @throws {ThroughlineError} FORBIDDEN, ROUTE_NOT_FOUND */
export function assertGatewayScope(upstream: Upstream, rule: PathRule, token: GatewayCaller): void {
  const needs = `gateway:${upstream.name}`;
  const has = (scope: string): boolean => (token.scopes as readonly string[]).includes(scope);
  if (!has(needs)) throw refused("FORBIDDEN", `The token has no scope "${needs}".`, { needs });
  if (rule.does === "manage" && !has("gateway:manage"))
    throw refused("FORBIDDEN", 'The token has no scope "gateway:manage".', { needs: "gateway:manage" });
  if (upstream.credentials === "caller") return;
  if (rule.does === "refuse" || (rule.does === "share" && !upstream.sharedResources))
    throw refused("ROUTE_NOT_FOUND", "The gateway does not pass this path on with a key of its own.");
}

/**
 * Returns the mode of a call. The token's mode precedes the upstream's mode. A token with the scope `write` may
 * override both with `throughline-mode`.
 * @throws {ThroughlineError} FORBIDDEN, INPUT_INVALID
 */
export function modeOf(
  upstream: Upstream,
  { scopes, mode: own }: GatewayCaller,
  { headers }: IncomingMessage,
): GatewayMode {
  const mode = own ?? upstream.mode;
  const asked = headers["throughline-mode"];
  if (asked === undefined || asked === mode) return mode;
  if (!isGatewayMode(asked))
    throw refused("INPUT_INVALID", `throughline-mode must be one of ${gatewayModes.join(", ")}.`, { received: asked });
  if (scopes.includes("write")) return asked;
  throw refused("FORBIDDEN", 'A token without the scope "write" cannot choose the mode.', { needs: "write" });
}

/** Returns the namespace and agent that own the token's calls. @throws {ThroughlineError} FORBIDDEN */
export function scopeOf({ id, namespace, agents }: GatewayCaller, { headers }: IncomingMessage): GatewayScope {
  const named = headers["throughline-namespace"];
  const own = namespace === "*" ? (typeof named === "string" ? named : "") : namespace;
  if ((named !== undefined && named !== own) || own.startsWith("throughline."))
    throw refused("FORBIDDEN", "The token does not reach this namespace.", { needs: "namespace" });
  const agentId = agents === "*" ? "main" : (agents[0] ?? "main");
  return { namespace: own, agentId, tokenId: id };
}

interface NamingRequest {
  readonly upstream: Upstream;
  readonly body: Buffer;
  readonly isPlain: boolean;
  readonly api: WireApi | null;
  readonly mode: GatewayMode;
  readonly scope: GatewayScope;
}

/**
 * A body that matches none of these names no stored resource. Escapes and UTF-16, which some parsers accept, can hide
 * any name, so both count as a match.
 */
const naming = /id|container|conversation|thread|\\u|\0/i;

const continued: ReadonlySet<string> = new Set([
  "previous_response_id",
  "previous_message_id",
  "comparison_response_id",
  "conversation",
  "thread",
]);

/** In stateful mode the gateway resolves these members itself and does not send them on. */
export const stateMembers: ReadonlySet<string> = new Set(["conversation", "previous_response_id", "thread"]);

/**
 * Rejects ids that belong to another token, because several tokens share one provider key. An answer to this token must
 * have issued every id in the request. With `sharedResources`, this applies only to ids that name an earlier answer.
 * @throws {ThroughlineError} ROUTE_NOT_FOUND in the words of a provider that knows no such id; INPUT_INVALID for a body
 *   that two parsers may read in two ways
 */
export async function assertOwnIds(
  { upstream: { sharedResources }, body, isPlain, api, mode, scope }: NamingRequest,
  lookup: SessionLookup,
): Promise<void> {
  if (api === null && sharedResources) return;
  if (!isPlain) throw refused("MEDIA_TYPE_UNSUPPORTED", "The gateway takes no packed bodies with a key of its own.");
  if (!naming.test(body.toString("latin1"))) return;
  const text = (await isWithinBounds(body, "document")) ? bodyText(body) : null;
  const found = text === null ? null : await storedIdsIn(text);
  // The provider may accept a body that the gateway cannot parse, and the ids in that body would go unchecked.
  if (found === null)
    throw refused(
      "INPUT_INVALID",
      "With a key of its own the gateway passes on JSON objects only, of 180 levels and 250,000 values, in which no member stands twice.",
    );
  const asked = new Map<string, StoredId>();
  for (const one of found) {
    if (mode === "stateful" && stateMembers.has(one.top)) continue;
    if (!sharedResources || continued.has(one.name) || continued.has(one.top))
      asked.set(JSON.stringify([one.name, one.id]), one);
  }
  for (const { name, id } of asked.values())
    if (id === null || !(await isOwn(id, scope, lookup)))
      throw refused("ROUTE_NOT_FOUND", `There is no such ${name}: it was not given to this token.`, { name });
}

async function isOwn(id: string, scope: GatewayScope, lookup: SessionLookup): Promise<boolean> {
  if (lookup.remembered(scope, "response", id).length > 0) return true;
  const keys = await lookup.find(scope, "response", id);
  return keys.length > 0 || (await lookup.awaited(scope, "response", id)).length > 0;
}

/**
 * Lists the members of an answer and of its events that hold resources created for the token. The other members repeat
 * the request.
 */
const given: Readonly<Record<WireApi, readonly string[]>> = {
  "anthropic-messages": ["container", "content", "content_block", "delta"],
  "openai-completions": ["choices"],
  "openai-responses": ["output", "item"],
  ollama: [],
};
/** Skips parsing for answers without these members: a later request cannot name anything of them. */
const giving = /"(?:file_id|container|container_id|audio|output|item)"/;
/** Limits the ids that are noted for one answer, so that one answer cannot flood the lookup. */
const mostGiven = 200;

interface GivenAnswer {
  readonly api: WireApi;
  readonly reply: AnswerText;
  readonly scope: GatewayScope;
  /** Is empty when the session is not chosen yet. */
  readonly key: string;
}

/**
 * Notes the ids of provider resources in an answer, so that later requests of the token may name them.
 *
 * @returns the storing of the notes, which are remembered before
 */
export async function noteGiven(
  lookup: SessionLookup,
  { api, reply, scope, key }: GivenAnswer,
): Promise<{ readonly stored: Promise<unknown> }> {
  const { type, text } = reply;
  const tops = given[api];
  const parts = /^text\/event-stream/i.test(type) ? readEvents(text).map(({ data }) => data) : [text];
  const ids = new Set<string>();
  for (const part of parts) {
    const found = tops.length > 0 && giving.test(part) ? await storedIdsIn(part) : null;
    for (const { id, top } of found ?? []) if (id !== null && tops.includes(top)) ids.add(id);
  }
  const noted = [...ids].slice(0, mostGiven);
  for (const id of noted) lookup.remember(scope, "response", id, key);
  const store = async (): Promise<void> => {
    for (const id of noted) await lookup.note(scope, "response", id, key);
  };
  return { stored: store() };
}
