import type { IncomingHttpHeaders } from "node:http";
import type { SessionRef } from "@throughline/core";
import { agentOfKey, refused, systemRandom } from "@throughline/core/internal";
import { type ChainMatch, isContinued, type SplitRequest, unitIds, type WireNode } from "@throughline/wire/internal";
import type { WaitingLookup } from "./calls-in-storing.ts";
import { isAside, isCompaction, keyPart, namedSession } from "./session-ids.ts";
import type { KnownSession } from "./session-logs.ts";
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
  /** Whether the store was not asked: the session may have been changed or removed since it was read. */
  readonly isRemembered: boolean;
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
  isRemembered: false,
} as const;

/** What a request says about where it belongs. */
export interface SessionRequest {
  readonly scope: GatewayScope;
  readonly headers: IncomingHttpHeaders;
  readonly split: SplitRequest;
  readonly requestSha256: string;
  /** Whether the token may name any session that it sees, and not its own only. */
  readonly mayWrite: boolean;
}

/** What is being asked in a session by this process: another request than this one, the same one alone, or null. */
export type IsAsked = (key: string, requestSha256: string) => "other" | "same" | null;

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

/** The key of a session of the token. */
export function keyOf({ agentId, tokenId }: GatewayScope, part: string): string {
  return `agent:${agentId}:gateway:direct:${tokenId}-${part}`;
}

/** What a choice learns of sessions. */
export interface SessionReads {
  /** Resolves once what this process is storing in a session is stored, or after a time. */
  settled(ref: SessionRef): Promise<void>;
  /** What is remembered of a session; null for nothing. */
  remembered(ref: SessionRef): KnownSession | null;
  /** A session as the store has it, once it is settled. */
  read(ref: SessionRef): Promise<KnownSession | null>;
}

/**
 * Names what the choice of a session depends on: choices of one name are made one after the other. Null: on nothing but the
 * first message.
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

/** The session that a request names or continues, by the first that answers of header, product, ids, body, replies. */
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

/** The session of a request that continues none which is known: one that begins alike and was never answered, or a new one. */
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

/** Whether something follows in a session on all that it has of a request. That stays so: the store need not be asked. */
function isFollowed({ split, requestSha256 }: SessionRequest, session: KnownSession | null): boolean {
  if (session === null || isRetry(session, requestSha256)) return false;
  const { node, nodes } = session.log.match(split);
  return node !== null && node.children.length > 0 && !nodes.some(({ isReply }) => isReply);
}

/** Requests that cannot be read lie in the session that a header names, else all in one. */
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
  // A title may be asked for before the main agent asks anything.
  if (session === null || session.log.isEmpty) return isAside(headers, split) ? inSide() : chosen;
  const { log } = session;
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

/**
 * A session as it is remembered, where that decides the choice: a request says something new in it, behind replies that are
 * all known. What another process has done there meanwhile is noticed when the request is stored.
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
  // Answers that the client wrote itself, as examples, stand in sessions that begin alike and have no note.
  const { first } = unitIds(split);
  const alike = first === null ? [] : await readAll(await lookup.find(scope, "first-message", first));
  const example = longest(request, alike, isAsked);
  if (example?.match?.nodes.some(({ isReply }) => isReply) === true) return example;
  return longest(request, await readAll(await lookup.awaited(scope, "first-reply", firstReply)), isAsked);
}

/**
 * The session that has the most of a request. One that has a reply in it is continued. One that has only what a user said
 * may be any: it counts where that was never answered, and is not being answered.
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
    // A question of which no call has ended may be asked by another process now.
    const isLeft = asked === "same" || (asked === null && session.log.hasCalls);
    const mayFollow = isAnswered || (isOpen && isLeft);
    if (known === 0 || !mayFollow || known <= (best?.known ?? 0)) continue;
    best = { chosen: { ...begin, ref, session, match }, known };
  }
  return best?.chosen ?? null;
}

/** Whether a body was sent before, and neither it nor another has been answered: that would be another's conversation. */
function isRetry({ log }: KnownSession, requestSha256: string): boolean {
  const again = log.callOf(requestSha256);
  return again !== null && again.outcome !== "answered" && !log.hasAnsweredOther(requestSha256);
}
