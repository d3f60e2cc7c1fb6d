import type { IncomingHttpHeaders } from "node:http";
import type { SessionRef } from "@throughline/core";
import { agentOfKey } from "@throughline/core/internal";
import { refused } from "@throughline/core/store";
import { systemRandom } from "@throughline/core/node";
import { unitIds, type ChainMatch, type SplitRequest, type WireNode } from "@throughline/wire";
import { isAside, isCompaction, keyPart, namedSession } from "./session-ids.ts";
import type { KnownSession, SessionLogs } from "./session-logs.ts";
import type { GatewayScope, SessionLookup } from "./session-lookup.ts";

/** The session that a call belongs to, and its place there. */
export interface ChosenSession {
  readonly ref: SessionRef;
  /** Null: it begins with this call. */
  readonly session: KnownSession | null;
  /** The message that the request follows; null: it begins at its first message. */
  readonly from: WireNode | null;
  /** What was found of the request in the log; null: it was not looked for. */
  readonly match: ChainMatch | null;
  readonly lane: "main" | "side" | "agent";
  /** The head of the session before the client shortened its history with this request. */
  readonly compactionOf: string | null;
  /** Fields of the entry of a new session. */
  readonly entry: Readonly<Record<string, unknown>>;
  /** Whether it is found by its messages: nothing names it. */
  readonly isAnonymous: boolean;
}

/** A conversation that nothing names, from its first message on. */
const begin = {
  session: null,
  from: null,
  match: null,
  lane: "main",
  compactionOf: null,
  entry: {},
  isAnonymous: true,
} as const;

/** What a request says about where it belongs. */
export interface SessionRequest {
  readonly scope: GatewayScope;
  readonly headers: IncomingHttpHeaders;
  readonly split: SplitRequest;
  readonly requestSha256: string;
  /** Whether the token may write to any session that it sees. */
  readonly mayWrite: boolean;
}

/** Whether a session waits for the answer to another request than this one. */
export type IsAsked = (key: string, requestSha256: string) => boolean;

/** The reply that a request continues: the provider has stored it under this id. */
function followedReply(split: SplitRequest): string | null {
  const previous = split.member("previous_response_id");
  if (typeof previous === "string") return previous;
  for (const name of ["thread", "diagnostics"]) {
    const value = split.member(name);
    const id =
      typeof value === "object" && value !== null
        ? (value as Readonly<Record<string, unknown>>)["previous_message_id"]
        : null;
    if (typeof id === "string") return id;
  }
  return null;
}

/** The session that the header `throughline-session` names, as far as the token may. @throws {ThroughlineError} FORBIDDEN */
export function sessionOfHeader(header: unknown, scope: GatewayScope, mayWrite: boolean): string | null {
  if (typeof header !== "string" || header === "") return null;
  if (!header.startsWith("agent:")) return keyOf(scope, keyPart(header));
  const isOwn = header.startsWith(keyOf(scope, ""));
  if ((isOwn || mayWrite) && agentOfKey(header) === scope.agentId) return header;
  throw refused("FORBIDDEN", "The token does not reach the session that throughline-session names.", {
    needs: "write",
  });
}

/** The key of a session of the token. */
export function keyOf({ agentId, tokenId }: GatewayScope, part: string): string {
  return `agent:${agentId}:gateway:direct:${tokenId}-${part}`;
}

/** Decides where a call belongs: by the first that answers of header, product, ids, body, messages. */
export async function chooseSession(
  request: SessionRequest,
  logs: Pick<SessionLogs, "read">,
  lookup: SessionLookup,
  isAsked: IsAsked,
): Promise<ChosenSession> {
  const { scope, headers, split } = request;
  if (split.unread !== null) return unreadSession(request, logs);
  const given = sessionOfHeader(headers["throughline-session"], scope, request.mayWrite);
  if (given !== null) return inNamed(request, logs, given, { clientSessionId: String(headers["throughline-session"]) });
  const named = namedSession(headers, split);
  if (named !== null && !named.isShared) {
    const key = keyOf(scope, keyPart(named.id));
    const own = { clientSessionId: named.id };
    if (named.agentId === null && named.parentId === null) return inNamed(request, logs, key, own);
    const child = named.agentId === null ? key : `${key}-${keyPart(named.agentId)}`;
    const spawnedBy = named.parentId === null ? key : keyOf(scope, keyPart(named.parentId));
    return { ...(await inNamed(request, logs, child, { ...own, spawnedBy })), lane: "agent" };
  }
  const followed = await byReply(request, logs, lookup);
  if (followed !== null) return followed;
  return (await byMessages(request, logs, lookup, isAsked)) ?? newSession(request);
}

/** Requests that cannot be read lie in the session that a header names, else all in one. */
async function unreadSession(
  { scope, headers, mayWrite }: SessionRequest,
  logs: Pick<SessionLogs, "read">,
): Promise<ChosenSession> {
  const id = namedSession(headers, null)?.id;
  const given = sessionOfHeader(headers["throughline-session"], scope, mayWrite);
  const ref = refOf(scope, given ?? keyOf(scope, id === undefined ? "unread" : keyPart(id)));
  return { ...begin, ref, session: await logs.read(ref), lane: "side", isAnonymous: false };
}

function refOf({ namespace, agentId }: GatewayScope, key: string): SessionRef {
  return { namespace, agentId, key };
}

async function inNamed(
  request: SessionRequest,
  logs: Pick<SessionLogs, "read">,
  key: string,
  entry: Readonly<Record<string, unknown>>,
): Promise<ChosenSession> {
  const { scope, headers, split } = request;
  const ref = refOf(scope, key);
  const session = await logs.read(ref);
  const chosen = { ...begin, ref, session, entry, isAnonymous: false };
  const inSide = async (): Promise<ChosenSession> => {
    const side = refOf(scope, `${key}-side`);
    return { ...chosen, ref: side, session: await logs.read(side), lane: "side", entry: { ...entry, spawnedBy: key } };
  };
  // A title may be asked for before the main agent asks anything.
  if (session === null || session.log.isEmpty) return isAside(headers, split) ? inSide() : chosen;
  const { log } = session;
  const reply = followedReply(split);
  const from = reply === null ? null : log.reply(reply);
  const match = log.match(split);
  const { known, nodes } = match;
  const isSameAgent = log.tools !== null && split.partHash("tools") === log.tools;
  // A title is asked for with the question of the main agent and without its tools.
  const isOther = known > 0 && !nodes.some(({ isReply }) => isReply) && log.tools !== null && !isSameAgent;
  if (from !== null) return { ...chosen, from };
  if (known > 0 && !isOther) return { ...chosen, match };
  // With the same tools it is the same agent, which has shortened its history; else it is a title or a probe.
  if (!isOther && (isCompaction(headers) || isSameAgent)) return { ...chosen, compactionOf: session.headId };
  return inSide();
}

async function byReply(
  { scope, split }: SessionRequest,
  logs: Pick<SessionLogs, "read">,
  lookup: SessionLookup,
): Promise<ChosenSession | null> {
  const id = followedReply(split);
  const [key] = id === null ? [] : await lookup.find(scope, "response", id);
  if (id === null || key === undefined) return null;
  const ref = refOf(scope, key);
  const session = await logs.read(ref);
  const from = session?.log.reply(id) ?? null;
  if (session === null || from === null) return null;
  return { ...begin, ref, session, from, isAnonymous: false };
}

/**
 * A request that repeats a known reply continues that conversation. One that repeats only what a user said may be any: it
 * counts where that was never answered, and is not being answered.
 */
async function byMessages(
  { scope, split, requestSha256 }: SessionRequest,
  logs: Pick<SessionLogs, "read">,
  lookup: SessionLookup,
  isAsked: IsAsked,
): Promise<ChosenSession | null> {
  const { first, firstReply } = unitIds(split);
  if (first === null) return null;
  const keys = new Set<string>();
  if (firstReply !== null) for (const key of await lookup.find(scope, "first-reply", firstReply)) keys.add(key);
  if (keys.size === 0) for (const key of await lookup.find(scope, "first-message", first)) keys.add(key);
  let best: { readonly chosen: ChosenSession; readonly known: number } | null = null;
  for (const key of keys) {
    const ref = refOf(scope, key);
    const session = await logs.read(ref);
    if (session === null) continue;
    const match = session.log.match(split);
    const { known, node, nodes } = match;
    const isAnswered = nodes.some((one) => one.isReply);
    const isOpen = node !== null && node.children.length === 0 && !isAsked(key, requestSha256);
    const again = session.log.callOf(requestSha256);
    const isRetry = again !== null && again.outcome !== "answered";
    if (known === 0 || (!isAnswered && !isOpen && !isRetry) || known <= (best?.known ?? 0)) continue;
    best = { chosen: { ...begin, ref, session, match }, known };
  }
  return best?.chosen ?? null;
}

function newSession({ scope }: SessionRequest): ChosenSession {
  const ref = refOf(scope, keyOf(scope, systemRandom.uuid()));
  return { ...begin, ref };
}
