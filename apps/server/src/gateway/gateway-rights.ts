import type { IncomingMessage } from "node:http";
import { refused } from "@throughline/core/internal";
import { bodyText, readEvents, type WireApi } from "@throughline/wire/internal";
import { reservedNamespaces, type TokenInfo } from "../security/token-store.ts";
import type { AnswerText } from "./call-facts.ts";
import { type GatewayMode, gatewayModes, isGatewayMode, type Upstream } from "./gateway-options.ts";
import type { PathRule } from "./gateway-path.ts";
import { isWithinBounds } from "./json-bounds.ts";
import type { GatewayScope, SessionLookup } from "./session-lookup.ts";
import { type StoredId, storedIdsIn } from "./stored-ids.ts";

/** The text of our token in a request: the API key of the client, or, beside a key of its own, a header of ours. */
export function tokenText({ credentials }: Upstream, { headers }: IncomingMessage): string | null {
  const own = headers["throughline-token"];
  if (credentials === "caller") return typeof own === "string" ? own : null;
  const [, bearer] = /^Bearer +([\w-]+) *$/i.exec(headers.authorization ?? "") ?? [];
  const key = headers["x-api-key"];
  return bearer ?? (typeof key === "string" ? key : null);
}

/** @throws {ThroughlineError} FORBIDDEN, ROUTE_NOT_FOUND */
export function assertGatewayScope(upstream: Upstream, rule: PathRule, token: TokenInfo): void {
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
 * What is done with a call: what the token says, else the upstream, unless a token that may write asks with `throughline-mode`.
 * @throws {ThroughlineError} FORBIDDEN, INPUT_INVALID
 */
export function modeOf(
  upstream: Upstream,
  { scopes, mode: own }: TokenInfo,
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

/** Whose sessions a token's calls become. @throws {ThroughlineError} FORBIDDEN */
export function scopeOf({ id, namespace, agents }: TokenInfo, { headers }: IncomingMessage): GatewayScope {
  const named = headers["throughline-namespace"];
  const own = namespace === "*" ? (typeof named === "string" ? named : "") : namespace;
  if ((named !== undefined && named !== own) || reservedNamespaces.has(own))
    throw refused("FORBIDDEN", "The token does not reach this namespace.", { needs: "namespace" });
  const agentId = agents === "*" ? "main" : (agents[0] ?? "main");
  return { namespace: own, agentId, tokenId: id };
}

/** A request as far as it may name what is stored at the provider. */
interface NamingRequest {
  readonly upstream: Upstream;
  readonly body: Buffer;
  readonly isPlain: boolean;
  readonly api: WireApi | null;
  readonly mode: GatewayMode;
  readonly scope: GatewayScope;
}

/** Without any of these a body names nothing. Escapes may write all, and so may UTF-16, which some parsers take. */
const naming = /id|container|conversation|thread|\\u|\0/i;

/** Members that name what a request continues. */
const continued: ReadonlySet<string> = new Set([
  "previous_response_id",
  "previous_message_id",
  "comparison_response_id",
  "conversation",
  "thread",
]);

/** In stateful mode these are resolved here and not sent on. */
export const stateMembers: ReadonlySet<string> = new Set(["conversation", "previous_response_id", "thread"]);

/**
 * Many tokens share a key of ours: what one was given must not be reached by another. Every id in a request must have been given
 * to the token by an answer; with `sharedResources` only what names an earlier answer.
 * @throws {ThroughlineError} ROUTE_NOT_FOUND in the words of a provider that knows no such id; INPUT_INVALID for a body that two
 * parsers may read in two ways
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
  // The provider may still read a body that the gateway could not read.
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

/** An id that was given to a token stays its own. */
async function isOwn(id: string, scope: GatewayScope, lookup: SessionLookup): Promise<boolean> {
  if (lookup.remembered(scope, "response", id).length > 0) return true;
  return (await lookup.find(scope, "response", id)).length > 0;
}

/** The members of an answer, and of the events of one, that hold what was made for the token. Others repeat the request. */
const given: Readonly<Record<WireApi, readonly string[]>> = {
  "anthropic-messages": ["container", "content", "content_block", "delta"],
  "openai-completions": ["choices"],
  "openai-responses": ["output", "item"],
  ollama: [],
};
/** Any of these is in an answer that a later request may name something of. */
const giving = /"(?:file_id|container|container_id|audio|output|item)"/;
/** More ids of one answer are not noted. */
const mostGiven = 200;

interface GivenAnswer {
  readonly api: WireApi;
  readonly reply: AnswerText;
  readonly scope: GatewayScope;
  /** The key of the session of the call; empty where it is not known yet. */
  readonly key: string;
}

/** Notes the ids in an answer of what is stored at the provider: a later request of the token may name them. */
export async function noteGiven(lookup: SessionLookup, { api, reply, scope, key }: GivenAnswer): Promise<void> {
  const { type, text } = reply;
  const tops = given[api];
  const parts = /^text\/event-stream/i.test(type) ? readEvents(text).map(({ data }) => data) : [text];
  const ids = new Set<string>();
  for (const part of parts) {
    const found = tops.length > 0 && giving.test(part) ? await storedIdsIn(part) : null;
    for (const { id, top } of found ?? []) if (id !== null && tops.includes(top)) ids.add(id);
  }
  for (const id of [...ids].slice(0, mostGiven)) await lookup.note(scope, "response", id, key);
}
