import type { IncomingMessage } from "node:http";
import { refused } from "@throughline/core/store";
import { bodyText, hasRepeatedNames, memberNames, type SplitRequest, type WireApi } from "@throughline/wire";
import { reservedNamespaces, type TokenInfo } from "../security/token-store.ts";
import { readRequest } from "./call-facts.ts";
import { type GatewayMode, gatewayModes, isGatewayMode, type Upstream } from "./gateway-options.ts";
import type { PathRule } from "./gateway-path.ts";
import { isWithinBounds } from "./json-bounds.ts";
import type { GatewayScope, SessionLookup } from "./session-lookup.ts";

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
  readonly target: string;
  readonly body: Buffer;
  readonly isPlain: boolean;
  readonly api: WireApi | null;
  readonly scope: GatewayScope;
}

/**
 * Members that name what the provider has stored, in any case: parsers do not agree whether it counts. Escapes may write any, and
 * so may UTF-16, which some parsers take and which has bytes of 0.
 */
const naming = /previous_response_id|previous_message_id|conversation|\\u|\0/i;

/**
 * Many tokens share a key of ours: an id that one was given must not lead another to its conversation.
 * @throws {ThroughlineError} ROUTE_NOT_FOUND in the words of a provider that knows no such id
 */
export async function assertOwnIds(
  { upstream, body, isPlain, api, scope }: NamingRequest,
  lookup: SessionLookup,
): Promise<void> {
  if (api === null && upstream.sharedResources) return;
  if (!isPlain) throw refused("MEDIA_TYPE_UNSUPPORTED", "The gateway takes no packed bodies with a key of its own.");
  if (!naming.test(body.toString("latin1"))) return;
  const split = api === null ? null : await readRequest(api, body);
  if (split === null) return assertNamesNothing(body);
  // Parsers do not agree on which of two members counts, nor whether the case of a name does.
  if (isAmbiguous(split)) throw unknownId("The request names what it continues in more than one way.");
  const conversation = split.member("conversation");
  if (conversation !== undefined && conversation !== null) throw unknownId("There is no such conversation.");
  for (const id of followedIds(split))
    if (typeof id !== "string" || !(await isOwnReply(id, scope, lookup))) throw unknownId("There is no such response.");
}

/** An id that was given to a token stays its own. */
async function isOwnReply(id: string, scope: GatewayScope, lookup: SessionLookup): Promise<boolean> {
  if (lookup.remembered(scope, "response", id).length > 0) return true;
  return (await lookup.find(scope, "response", id)).length > 0;
}

/** A body without messages: what it names is not looked up. */
async function assertNamesNothing(body: Buffer): Promise<void> {
  const text = (await isWithinBounds(body, "document")) ? bodyText(body) : null;
  const names = text === null ? null : memberNames(text);
  // What is not read here, the provider may read all the same.
  if (names === null)
    throw refused("INPUT_INVALID", "With a key of its own the gateway passes on what it can read only.");
  if (names.some((name) => ownMembers.includes(name.toLowerCase())))
    throw unknownId("The request names something that is not known.");
}

const ownMembers: readonly string[] = ["previous_response_id", "conversation", "thread"];

function isAmbiguous(split: SplitRequest): boolean {
  const named = split.names.filter((name) => ownMembers.includes(name.toLowerCase()));
  const thread = split.memberText("thread");
  return (
    named.some((name) => !ownMembers.includes(name)) ||
    new Set(named).size < named.length ||
    // What is no JSON here, the provider may read all the same.
    named.some((name) => split.member(name) === undefined) ||
    (thread !== null && hasRepeatedNames(thread))
  );
}

function followedIds(split: SplitRequest): readonly unknown[] {
  const thread = split.member("thread");
  const isObject = typeof thread === "object" && thread !== null;
  const previous = isObject
    ? Object.entries(thread).filter(([name]) => name.toLowerCase() === "previous_message_id")
    : [];
  const values = [split.member("previous_response_id"), ...previous.map(([, id]) => id)];
  return values.filter((value) => value !== undefined && value !== null);
}

function unknownId(message: string): Error {
  return refused("ROUTE_NOT_FOUND", message);
}
