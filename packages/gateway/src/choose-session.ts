import type { IncomingHttpHeaders } from "node:http";
import type { SessionRef } from "@throughline/core";
import { agentOfKey, refused, systemRandom } from "@throughline/core/internal";
import { type ChainMatch, isContinued, type SplitRequest, unitIds, type WireNode } from "./wire/index.ts";
import type { WaitingLookup } from "./calls-in-storing.ts";
import { isAside, isCompaction, keyPart, namedSession } from "./session-ids.ts";
import type { KnownSession } from "./session-logs.ts";
import type { GatewayScope, SessionLookup } from "./session-lookup.ts";

export interface ChosenSession {
  readonly ref: SessionRef;
  readonly session: KnownSession | null;
  /** Is null when the request starts at its first message. */
  readonly from: WireNode | null;
  /** Is null when the log was not searched, so that a later step has to search. */
  readonly match: ChainMatch | null;
  readonly lane: "main" | "side" | "agent";
  /** States the session head before the client shortened its history. The shortened history is in this request. */
  readonly compactionOf: string | null;
  readonly entry: Readonly<Record<string, unknown>>;
  /** Is true when no header or id names the session, so that only its messages identify it. */
  readonly isAnonymous: boolean;
  /** Is true when the session comes from memory. Another process may have changed or removed it since it was read. */
  readonly isRemembered: boolean;
}

const begin = {
  session: null,
  from: null,
  match: null,
  lane: "main",
  compactionOf: null,
  entry: {},
  isAnonymous: true,
  isRemembered: false,
} as const;

export interface SessionRequest {
  readonly scope: GatewayScope;
  readonly headers: IncomingHttpHeaders;
  readonly split: SplitRequest;
  readonly requestSha256: string;
  /** Whether the token may name every session in its scope, instead of only the sessions that it created. */
  readonly mayWrite: boolean;
}

/** States whether this process has an open request in a session: another body, only the same body, or null for none. */
export type IsAsked = (key: string, requestSha256: string) => "other" | "same" | null;

/** The APIs name the previous reply in different members. */
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

/**
 * Resolves the header `throughline-session` to a session key. @throws {ThroughlineError} FORBIDDEN when the token may
 * not name that session
 */
export function sessionOfHeader(
  header: unknown,
  scope: GatewayScope,
  mayWrite: boolean,
  needs: "read" | "write" = "write",
): string | null {
  if (typeof header !== "string" || header === "") return null;
  if (!header.startsWith("agent:")) return keyOf(scope, keyPart(header));
  const isOwn = header.startsWith(keyOf(scope, ""));
  if ((isOwn || mayWrite) && agentOfKey(header) === scope.agentId) return header;
  const message = `The session that throughline-session names is not the token's own, and the token has no scope "${needs}".`;
  throw refused("FORBIDDEN", message, { needs });
}

/** Puts the token id in the key, so that two tokens never share a session by accident. */
export function keyOf({ agentId, tokenId }: GatewayScope, part: string): string {
  return `agent:${agentId}:gateway:direct:${tokenId}-${part}`;
}

export interface SessionReads {
  /** Stops waiting after a timeout, because a slow store must not block the choice. */
  settled(ref: SessionRef): Promise<void>;
  remembered(ref: SessionRef): KnownSession | null;
  /** Waits for `settled` first, so that the read includes the calls of this process. */
  read(ref: SessionRef): Promise<KnownSession | null>;
}

/**
 * Returns a name that serializes choices: calls with one name choose their sessions one after the other. Null means
 * that the choice depends on the first message only.
 *
 * @throws {ThroughlineError} FORBIDDEN
 */
export function choiceName({ scope, headers, split, mayWrite }: SessionRequest): string | null {
  const given = sessionOfHeader(headers["throughline-session"], scope, mayWrite);
  if (given !== null) return given;
  const named = namedSession(headers, split.unread === null ? split : null);
  if (named !== null && !named.isShared) return keyOf(scope, keyPart(named.id));
  if (split.unread !== null) return keyOf(scope, "unread");
  return followedReply(split) ?? unitIds(split).firstReply;
}

/**
 * Finds the session that a request names or continues. The sources are tried in order of certainty: header, product,
 * ids, body, replies.
 */
export async function continuedSession(
  request: SessionRequest,
  reads: SessionReads,
  lookup: WaitingLookup,
  isAsked: IsAsked,
): Promise<ChosenSession | null> {
  const { scope, headers, split } = request;
  if (split.unread !== null) return unreadSession(request, reads);
  const given = sessionOfHeader(headers["throughline-session"], scope, request.mayWrite);
  if (given !== null)
    return inNamed(request, reads, given, { clientSessionId: String(headers["throughline-session"]) });
  const named = namedSession(headers, split);
  if (named !== null && !named.isShared) {
    const key = keyOf(scope, keyPart(named.id));
    const own = { clientSessionId: named.id };
    if (named.agentId === null && named.parentId === null) return inNamed(request, reads, key, own);
    const child = named.agentId === null ? key : `${key}-${keyPart(named.agentId)}`;
    const spawnedBy = named.parentId === null ? key : keyOf(scope, keyPart(named.parentId));
    return { ...(await inNamed(request, reads, child, { ...own, spawnedBy })), lane: "agent" };
  }
  return (await byReply(request, reads, lookup)) ?? byFirstReply(request, reads, lookup, isAsked);
}

/**
 * Chooses the session of a request that continues no known session. An unanswered session with the same start is
 * reused, because the request may be a retry; otherwise a new session starts.
 */
export async function begunSession(
  request: SessionRequest,
  reads: SessionReads,
  lookup: SessionLookup,
  isAsked: IsAsked,
): Promise<ChosenSession> {
  const { scope, split } = request;
  const { first } = unitIds(split);
  const keys = first === null ? [] : await lookup.find(scope, "first-message", first);
  const open = keys.map((key) => refOf(scope, key)).filter((ref) => !isFollowed(request, reads.remembered(ref)));
  const sessions = await Promise.all(open.map((ref) => reads.read(ref)));
  const found = longest(request, sessions, isAsked);
  return found ?? { ...begin, ref: refOf(scope, keyOf(scope, systemRandom.uuid())) };
}

/**
 * Returns whether the log already continues after every message of the request. Logs only grow, so this answer never
 * expires and the store is not read.
 */
function isFollowed({ split, requestSha256 }: SessionRequest, session: KnownSession | null): boolean {
  if (session === null || isRetry(session, requestSha256)) return false;
  const { node, nodes } = session.log.match(split);
  return node !== null && node.children.length > 0 && !nodes.some(({ isReply }) => isReply);
}

/** Puts unreadable requests into the session that a header names, or else into one session per token. */
async function unreadSession(
  { scope, headers, mayWrite }: SessionRequest,
  reads: SessionReads,
): Promise<ChosenSession> {
  const id = namedSession(headers, null)?.id;
  const given = sessionOfHeader(headers["throughline-session"], scope, mayWrite);
  const ref = refOf(scope, given ?? keyOf(scope, id === undefined ? "unread" : keyPart(id)));
  return { ...begin, ref, session: await reads.read(ref), lane: "side", isAnonymous: false };
}

function refOf({ namespace, agentId }: GatewayScope, key: string): SessionRef {
  return { namespace, agentId, key };
}

async function inNamed(
  request: SessionRequest,
  reads: SessionReads,
  key: string,
  entry: Readonly<Record<string, unknown>>,
): Promise<ChosenSession> {
  const { scope, headers, split } = request;
  const ref = refOf(scope, key);
  const reply = followedReply(split);
  const recalled = await recalledSession(request, reads, ref, reply);
  const session = recalled ?? (await reads.read(ref));
  const chosen = { ...begin, ref, session, entry, isAnonymous: false, isRemembered: recalled !== null };
  const inSide = async (): Promise<ChosenSession> => {
    const side = refOf(scope, `${key}-side`);
    const beside = { ref: side, session: await reads.read(side), entry: { ...entry, spawnedBy: key } };
    return { ...chosen, ...beside, lane: "side", isRemembered: false };
  };
  // A client may ask for a title before the main agent sends its first request, so the session may be empty.
  if (session === null || session.log.isEmpty) return isAside(headers, split) ? inSide() : chosen;
  const { log } = session;
  const from = reply === null ? null : log.reply(reply);
  const match = log.match(split);
  const { known, nodes } = match;
  const isSameAgent = log.tools !== null && split.partHash("tools") === log.tools;
  // A title request repeats the main agent's question without its tools, so it must not continue the session.
  const isOther = known > 0 && !nodes.some(({ isReply }) => isReply) && log.tools !== null && !isSameAgent;
  if (from !== null) return { ...chosen, from };
  if (known > 0 && !isOther) return { ...chosen, match };
  // The same tools mean the same agent with a shortened history. Different tools mean a title request or a probe.
  if (!isOther && (isCompaction(headers) || isSameAgent)) return { ...chosen, compactionOf: session.headId };
  return inSide();
}

/**
 * Returns the session from memory if memory suffices for the choice: every reply in the request is known, and its new
 * messages follow them. A change by another process is detected when the call is stored.
 */
async function recalledSession(
  { split }: SessionRequest,
  reads: SessionReads,
  ref: SessionRef,
  replyId: string | null,
): Promise<KnownSession | null> {
  await reads.settled(ref);
  const session = reads.remembered(ref);
  if (session === null) return null;
  const from = replyId === null ? null : session.log.reply(replyId);
  if (replyId !== null && from === null) return null;
  const match = session.log.match(split, from);
  return (from !== null || match.known > 0) && isContinued(split, match) ? session : null;
}

async function byReply(
  request: SessionRequest,
  reads: SessionReads,
  lookup: SessionLookup,
): Promise<ChosenSession | null> {
  const { scope, split } = request;
  const id = followedReply(split);
  if (id === null) return null;
  const known = lookup.remembered(scope, "response", id).at(0);
  const [key] = known === undefined ? await lookup.find(scope, "response", id) : [known];
  if (key === undefined) return null;
  const ref = refOf(scope, key);
  const recalled = await recalledSession(request, reads, ref, id);
  const session = recalled ?? (await reads.read(ref));
  const from = session?.log.reply(id) ?? null;
  if (session === null || from === null) return null;
  return { ...begin, ref, session, from, isAnonymous: false, isRemembered: recalled !== null };
}

async function byFirstReply(
  request: SessionRequest,
  reads: SessionReads,
  lookup: WaitingLookup,
  isAsked: IsAsked,
): Promise<ChosenSession | null> {
  const { scope, split } = request;
  const { firstReply } = unitIds(split);
  if (firstReply === null) return null;
  const known = lookup.remembered(scope, "first-reply", firstReply).map((key) => refOf(scope, key));
  const recalled = await Promise.all(known.map((ref) => recalledSession(request, reads, ref, null)));
  const chosen = longest(request, recalled, isAsked);
  if (chosen !== null) return { ...chosen, isRemembered: true };
  const readAll = (keys: readonly string[]): Promise<(KnownSession | null)[]> =>
    Promise.all(keys.map((key) => reads.read(refOf(scope, key))));
  const found = longest(request, await readAll(await lookup.find(scope, "first-reply", firstReply)), isAsked);
  if (found !== null) return found;
  // A client may send example answers of its own. Their sessions have no reply note, so only the first message finds
  // them.
  const { first } = unitIds(split);
  const alike = first === null ? [] : await readAll(await lookup.find(scope, "first-message", first));
  const example = longest(request, alike, isAsked);
  if (example?.match?.nodes.some(({ isReply }) => isReply) === true) return example;
  return longest(request, await readAll(await lookup.awaited(scope, "first-reply", firstReply)), isAsked);
}

/**
 * Picks the session that shares the most messages with the request. A session with a shared reply always qualifies. A
 * session that shares only user messages may belong to another conversation. It qualifies when no call has answered it
 * and none is running.
 */
function longest(
  { split, requestSha256 }: SessionRequest,
  sessions: readonly (KnownSession | null)[],
  isAsked: IsAsked,
): ChosenSession | null {
  let best: { readonly chosen: ChosenSession; readonly known: number } | null = null;
  for (const session of sessions) {
    if (session === null) continue;
    const { ref } = session;
    const match = session.log.match(split);
    const { known, node, nodes } = match;
    const isAnswered = nodes.some((one) => one.isReply);
    const isOpen = node !== null && (node.children.length === 0 || isRetry(session, requestSha256));
    const asked = isAsked(ref.key, requestSha256);
    // A question without an ended call may be running in another process, so the session must not be reused.
    const isLeft = asked === "same" || (asked === null && session.log.hasCalls);
    const mayFollow = isAnswered || (isOpen && isLeft);
    if (known === 0 || !mayFollow || known <= (best?.known ?? 0)) continue;
    best = { chosen: { ...begin, ref, session, match }, known };
  }
  return best?.chosen ?? null;
}

/**
 * Returns whether the same body was sent before without an answer. An answered call with another body means that the
 * session belongs to a different conversation.
 */
function isRetry({ log }: KnownSession, requestSha256: string): boolean {
  const again = log.callOf(requestSha256);
  return again !== null && again.outcome !== "answered" && !log.hasAnsweredOther(requestSha256);
}
