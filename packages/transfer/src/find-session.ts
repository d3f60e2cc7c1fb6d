import type { SessionRef, SessionState, SessionStore } from "@throughline/core";
import { beginningOfList } from "./document-list.ts";
import { importedRecords, receiptOf, receiptOfNewHead, reopenedReceipt, type ImportReceipt } from "./import-receipt.ts";
import { sessionsFrom, sourceIdsOf, type SourceSessions } from "./imported-from.ts";
import type { SourceClaims } from "./source-claims.ts";
import type { TranscriptSource } from "./transcript-source.ts";
import { createHash } from "node:crypto";
import type { SourceFile } from "./node/source-files.ts";

export interface SessionSearch {
  readonly store: SessionStore;
  readonly claims: SourceClaims;
  readonly source: TranscriptSource;
  /** Names the location that the import would choose without an earlier session. */
  readonly base: SessionRef;
  /** Holds the key that the caller asked for; null for no request. */
  readonly askedKey: string | null;
}

export interface FoundSession {
  readonly state: SessionState;
  readonly receipt: ImportReceipt;
  /** True if the source still begins with the bytes that the receipt counts. */
  readonly isSame: boolean;
  /** True for the same document with changed text before its list. */
  readonly hasNewHead: boolean;
  readonly sourceBytes: number;
}

export interface SearchResult {
  readonly found: FoundSession | null;
  readonly isBaseFree: boolean;
  /** Lists the sessions of the source, and its purge; null when the session at the base was enough. */
  readonly made: SourceSessions | null;
}

/**
 * Finds the session that an earlier import created from a source, even after it was renamed, archived or moved to
 * another key.
 * If the caller asks for a key, only a session at that key, or imported under it, counts: the caller wants a separate
 * session.
 */
export async function findSession(search: SessionSearch): Promise<SearchResult> {
  const { store, base, askedKey } = search;
  const state = await store.load(base);
  const isBaseFree = state === null;
  const near = state === null ? null : await atBase(search, state);
  // The usual case needs no look-up: the session still has the key it was imported to.
  if (near !== null && (askedKey !== null || goesOn(near))) return { found: near, isBaseFree, made: null };
  const made = await sessionsOfSource(search);
  return { found: (await elsewhere(search, made.sessions, near)) ?? near, isBaseFree, made };
}

async function sessionsOfSource({ store, source, base }: SessionSearch): Promise<SourceSessions> {
  let made: SourceSessions = { sessions: [], purgedAtMs: null };
  for (const sourceId of sourceIdsOf(source)) {
    made = await sessionsFrom(store, { format: source.format, sourceId }, base);
    if (made.sessions.length > 0 || made.purgedAtMs !== null) break;
  }
  return made;
}

async function atBase({ claims, source, askedKey }: SessionSearch, state: SessionState): Promise<FoundSession | null> {
  const receipt = receiptOf(state.entry);
  if (receipt === null || !mayBeOf(receipt, source) || claims.isTaken(state, source)) return null;
  const { sourceKey } = receipt;
  if (askedKey === null && sourceKey !== undefined && source.key !== null && sourceKey !== source.key) return null;
  const found = await asItIs(source, { state, receipt }, await beginnings(source, sizesOf(receipt)));
  return found.isSame || receipt.path === source.path ? found : null;
}

async function elsewhere(
  { claims, source, base, askedKey }: SessionSearch,
  sessions: readonly SessionState[],
  near: FoundSession | null,
): Promise<FoundSession | null> {
  const candidates = imported(sessions).filter(
    ({ state, receipt }) =>
      (askedKey === null || receipt.askedKey === askedKey) &&
      (receipt.path === source.path || state.ref.agentId === base.agentId) &&
      mayBeOf(receipt, source) &&
      !claims.isTaken(state, source),
  );
  if (candidates.length === 0) return null;
  const hashes = await beginnings(
    source,
    candidates.flatMap(({ receipt }) => sizesOf(receipt)),
  );
  const found = await Promise.all(candidates.map((made) => asItIs(source, made, hashes)));
  const same = found.filter(({ isSame }) => isSame);
  if (same.length > 0) return same.toSorted((one, other) => rank(other, source) - rank(one, source))[0] ?? null;
  // A session from this path with changed content is reported only if no better session exists.
  return near === null ? (found.find(({ receipt }) => receipt.path === source.path) ?? null) : null;
}

interface ImportedSession {
  readonly state: SessionState;
  readonly receipt: ImportReceipt;
}

function imported(sessions: readonly SessionState[]): readonly ImportedSession[] {
  return sessions.flatMap((state) => {
    const receipt = receiptOf(state.entry);
    return receipt === null ? [] : [{ state, receipt }];
  });
}

function sizesOf({ sizeBytes, list }: ImportReceipt): readonly number[] {
  return list === undefined ? [sizeBytes] : [sizeBytes, list.sizeBytes];
}

/** Adapts the receipt to the part of the source that still matches it. */
async function asItIs(
  source: TranscriptSource,
  { state, receipt }: ImportedSession,
  { sizeBytes: sourceBytes, sha256 }: PrefixHashes,
): Promise<FoundSession> {
  const found = { state, receipt, isSame: true, hasNewHead: false, sourceBytes };
  if (sha256(receipt.sizeBytes) === receipt.sha256) return found;
  const { list } = receipt;
  if (list === undefined) return { ...found, isSame: false };
  const reopened = sha256(list.sizeBytes) === list.sha256 ? reopenedReceipt(receipt) : null;
  if (reopened !== null) return { ...found, receipt: reopened };
  const beginning = await beginningOfList(source, list);
  const moved = beginning === null ? null : receiptOfNewHead(receipt, beginning);
  return moved === null ? { ...found, isSame: false } : { ...found, receipt: moved, hasNewHead: true };
}

/** Returns the sessions from the same path or with the same beginning, for any key. Redactions apply to all of them. */
export async function alike(
  source: TranscriptSource,
  sessions: readonly SessionState[],
): Promise<readonly SessionState[]> {
  const made = imported(sessions).filter(({ receipt }) => mayBeOf(receipt, source));
  if (made.length === 0) return [];
  const { sha256 } = await beginnings(
    source,
    made.map(({ receipt }) => receipt.sizeBytes),
  );
  return made.flatMap(({ state, receipt }) =>
    receipt.path === source.path || sha256(receipt.sizeBytes) === receipt.sha256 ? [state] : [],
  );
}

/** A copy with the same id counts only if imported bytes exist to compare with the source. */
function mayBeOf(receipt: ImportReceipt, { path, sessionId, open, isCopy }: TranscriptSource): boolean {
  if (receipt.path === path) return true;
  const isSameId = receipt.sessionId.toLowerCase() === sessionId.toLowerCase();
  return isCopy !== true && isSameId && receipt.sizeBytes > 0 && open !== null;
}

/** Ranks the sessions that a source may continue; a larger value is a better match. */
function rank(found: FoundSession, source: TranscriptSource): number {
  const { state, receipt } = found;
  const signs = [
    goesOn(found),
    receipt.sourceKey !== undefined && receipt.sourceKey === source.key,
    receipt.path === source.path,
    (state.ref.archiveId !== undefined) === source.isArchived,
  ];
  const sum = signs.reduce((value, sign) => value * 2 + (sign ? 1 : 0), 0);
  // The session that holds most of the source wins among equal matches.
  return sum + receipt.sizeBytes / (found.sourceBytes + 1);
}

/** True if the session can take the rest of the source, or already holds all of it. */
function goesOn({ state, receipt, isSame, sourceBytes }: FoundSession): boolean {
  if (!isSame) return false;
  return receipt.sizeBytes === sourceBytes || (state.ref.archiveId === undefined && !wentOn(state, receipt));
}

/** True if the session holds records behind the imported ones, or its head was moved. */
export function wentOn({ head }: SessionState, receipt: ImportReceipt): boolean {
  // Old receipts have no head, and in a Throughline store the head may move without a record. The seq decides then.
  if (receipt.headId === undefined || receipt.format === "jsonl") return head.lastSeq > importedRecords(receipt);
  return head.headId !== receipt.headId;
}

/** True if the first bytes of a source are those of the hash. */
export async function beginsWith(
  source: TranscriptSource,
  { sizeBytes, sha256 }: Pick<ImportReceipt, "sizeBytes" | "sha256">,
): Promise<boolean> {
  return (await beginnings(source, [sizeBytes])).sha256(sizeBytes) === sha256;
}

/** A source without bytes hashes as empty, the beginning that every unread source has. */
function beginnings({ open }: TranscriptSource, sizes: readonly number[]): Promise<PrefixHashes> {
  return hashPrefixes(open ?? (() => Promise.resolve(nothing)), sizes);
}

const nothing = {
  path: "",
  sizeBytes: 0,
  async *chunks(): AsyncGenerator<Uint8Array> {},
  close: (): Promise<void> => Promise.resolve(),
};

interface PrefixHashes {
  readonly sizeBytes: number;
  /** Returns the SHA-256 of the first bytes, in hex; null if the source has fewer bytes. */
  readonly sha256: (sizeBytes: number) => string | null;
}

/** Hashes several prefixes of a source in one read. */
async function hashPrefixes(open: () => Promise<SourceFile>, sizes: readonly number[]): Promise<PrefixHashes> {
  const source = await open();
  try {
    const { sizeBytes } = source;
    const wanted = [...new Set(sizes)].filter((size) => size <= sizeBytes).toSorted((a, b) => a - b);
    const found = new Map<number, string>();
    const hash = createHash("sha256");
    let at = 0;
    const take = (chunk: Uint8Array): void => {
      let from = 0;
      for (const size of wanted) {
        if (size < at + from || size > at + chunk.length || found.has(size)) continue;
        hash.update(chunk.subarray(from, size - at));
        from = size - at;
        found.set(size, hash.copy().digest("hex"));
      }
      hash.update(chunk.subarray(from));
      at += chunk.length;
    };
    take(new Uint8Array());
    for await (const chunk of source.chunks({ toBytes: wanted.at(-1) ?? 0 })) take(chunk);
    return { sizeBytes, sha256: (size) => found.get(size) ?? null };
  } finally {
    await source.close();
  }
}
