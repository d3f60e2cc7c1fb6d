import { ThroughlineError, type SessionRef, type SessionState, type SessionStore } from "@throughline/core";
import { quote } from "@throughline/core/internal";
import { beginningOfList } from "./document-head.ts";
import { importedRecords, receiptOf, receiptOfNewHead, reopenedReceipt } from "./import-receipt.ts";
import type { ImportReceipt } from "./receipt-types.ts";
import { hashPrefixes, type PrefixHashes } from "./hash-prefix.ts";
import type { MadeSession, SourceRegistry } from "./source-registry.ts";
import type { TranscriptSource } from "./transcript-source.ts";

export interface MadeSearch {
  readonly store: SessionStore;
  readonly registry: SourceRegistry;
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
}

/**
 * Finds the session that an earlier import created from a source, even after it was renamed, archived or moved to
 * another key.
 * If the caller asks for a key, only a session at that key, or imported under it, counts: the caller wants a separate
 * session.
 */
export async function findMadeSession(
  search: MadeSearch,
): Promise<{ readonly found: FoundSession | null; readonly isBaseFree: boolean }> {
  const state = await search.store.load(search.base);
  const near = state === null ? null : await atBase(search, state);
  const isNear = near !== null && (search.askedKey !== null || goesOn(near, near.sourceBytes));
  const found = isNear ? near : ((await elsewhere(search, near)) ?? near);
  return { found, isBaseFree: state === null };
}

interface NearSession extends FoundSession {
  readonly sourceBytes: number;
}

/** Covers the usual case without a search: the session still has the key it was imported to. */
async function atBase({ registry, source, askedKey }: MadeSearch, state: SessionState): Promise<NearSession | null> {
  const receipt = receiptOf(state.entry);
  if (receipt === null) return null;
  const made = { ...receipt, sourceId: receipt.sessionId, sourceKey: receipt.sourceKey ?? null };
  if (!mayBeOf(made, source) || isTaken(registry, state, source)) return null;
  const isAnotherKeys = askedKey === null && made.sourceKey !== null && source.key !== null;
  if (isAnotherKeys && made.sourceKey !== source.key) return null;
  const hashes = await beginnings(source, sizesOf(receipt));
  const isOfPath = receipt.path === source.path;
  const found = { state, ...(await asItIs(source, receipt, hashes)), sourceBytes: hashes.sizeBytes };
  return found.isSame || isOfPath ? found : null;
}

async function elsewhere(search: MadeSearch, near: NearSession | null): Promise<FoundSession | null> {
  const { store, registry, source, base, askedKey } = search;
  const candidates = (await registry.candidates(source.path, source.sessionId)).filter(
    (made) =>
      (askedKey === null || made.askedKey === askedKey) &&
      (made.path === source.path || made.ref.agentId === base.agentId) &&
      mayBeOf(made, source) &&
      !isTaken(registry, made, source),
  );
  if (candidates.length === 0) return null;
  const hashes = await beginnings(
    source,
    candidates.map(({ sizeBytes }) => sizeBytes),
  );
  const same = candidates.filter(({ sizeBytes, sha256 }) => hashes.sha256(sizeBytes) === sha256);
  const found: NearSession[] = [];
  // A session from this path with changed content is reported only if no better session exists.
  const changed = near === null ? candidates.filter(({ path }) => path === source.path).slice(0, 1) : [];
  for (const made of same.length > 0 ? same : changed) {
    const state = await loadMade(store, made);
    const receipt = receiptOf(state.entry);
    if (receipt === null) continue;
    // Another import may write to this session now, so the receipt can differ from the list.
    const isAsListed = receipt.sha256 === made.sha256 && receipt.sizeBytes === made.sizeBytes;
    const isKnown = isAsListed && receipt.list === undefined;
    const now = isKnown ? hashes : await beginnings(source, sizesOf(receipt));
    found.push({ state, ...(await asItIs(source, receipt, now)), sourceBytes: hashes.sizeBytes });
  }
  const better = (one: NearSession, other: NearSession): number =>
    rank(other, source) - rank(one, source) || other.receipt.sizeBytes - one.receipt.sizeBytes;
  return found.toSorted(better)[0] ?? null;
}

function sizesOf({ sizeBytes, list }: ImportReceipt): readonly number[] {
  return list === undefined ? [sizeBytes] : [sizeBytes, list.sizeBytes];
}

/** Adapts the receipt to the part of the source that still matches it. */
async function asItIs(
  source: TranscriptSource,
  receipt: ImportReceipt,
  { sha256 }: PrefixHashes,
): Promise<Omit<FoundSession, "state">> {
  if (sha256(receipt.sizeBytes) === receipt.sha256) return { receipt, isSame: true, hasNewHead: false };
  const { list } = receipt;
  if (list === undefined) return { receipt, isSame: false, hasNewHead: false };
  const reopened = sha256(list.sizeBytes) === list.sha256 ? reopenedReceipt(receipt) : null;
  if (reopened !== null) return { receipt: reopened, isSame: true, hasNewHead: false };
  const beginning = await beginningOfList(source, list);
  const moved = beginning === null ? null : receiptOfNewHead(receipt, beginning);
  return { receipt: moved ?? receipt, isSame: moved !== null, hasNewHead: moved !== null };
}

/**
 * Returns every session from the same path or with the same beginning, for any key. Redactions apply to all of them.
 */
export async function sessionsOf({ store, registry, source }: MadeSearch): Promise<readonly SessionState[]> {
  const made = (await registry.candidates(source.path, source.sessionId)).filter((one) => mayBeOf(one, source));
  if (made.length === 0) return [];
  const { sha256 } = await beginnings(
    source,
    made.map(({ sizeBytes }) => sizeBytes),
  );
  const same = made.filter((one) => one.path === source.path || sha256(one.sizeBytes) === one.sha256);
  return Promise.all(same.map((one) => loadMade(store, one)));
}

/** A copy with the same id counts only if imported bytes exist to compare with the source. */
function mayBeOf(
  made: Pick<MadeSession, "path" | "sourceId" | "sizeBytes">,
  { path, sessionId, open, isCopy }: TranscriptSource,
): boolean {
  if (made.path === path) return true;
  return !isCopy && made.sourceId.toLowerCase() === sessionId.toLowerCase() && made.sizeBytes > 0 && open !== null;
}

/**
 * True if another source of this import already claims the session. An index may name one file under two keys. A
 * program may also have archived a copy of a transcript that it continues.
 */
function isTaken(
  registry: SourceRegistry,
  { ref, sessionId }: Pick<MadeSession, "ref" | "sessionId">,
  { path, key, isArchived }: TranscriptSource,
): boolean {
  const claim = registry.claimOf(ref.agentId, sessionId);
  if (claim === null) return false;
  if (claim.path !== path) return claim.isArchived !== isArchived;
  return claim.key !== null && key !== null && claim.key !== key;
}

/** Ranks candidates; a larger value is a better match. */
function rank({ state, receipt, isSame, sourceBytes }: NearSession, source: TranscriptSource): number {
  const signs = [
    isSame,
    goesOn({ state, receipt, isSame }, sourceBytes),
    receipt.sourceKey !== undefined && receipt.sourceKey === source.key,
    receipt.path === source.path,
    (state.ref.archiveId !== undefined) === source.isArchived,
  ];
  return signs.reduce((sum, sign) => sum * 2 + (sign ? 1 : 0), 0);
}

/** True if the session can take the rest of the source, or already holds all of it. */
function goesOn(
  { state, receipt, isSame }: Pick<FoundSession, "state" | "receipt" | "isSame">,
  sourceBytes: number,
): boolean {
  if (!isSame) return false;
  return receipt.sizeBytes === sourceBytes || (state.ref.archiveId === undefined && !wentOn(state, receipt));
}

/** True if the session holds records behind the imported ones, or its head was moved. */
export function wentOn({ head }: SessionState, receipt: ImportReceipt): boolean {
  // Old receipts have no head, and in a Throughline store the head may move without a record. The seq decides then.
  if (receipt.headId === undefined || receipt.format === "jsonl") return head.lastSeq > importedRecords(receipt);
  return head.headId !== receipt.headId;
}

/** @throws {ThroughlineError} APPEND_CONFLICT when another process moved the session during this import */
async function loadMade(store: SessionStore, { ref, sessionId, path }: MadeSession): Promise<SessionState> {
  const { namespace, agentId, key } = ref;
  for (const place of [ref, { namespace, agentId, key, archiveId: sessionId }]) {
    const state = await store.load(place);
    if (state?.sessionId === sessionId) return state;
  }
  throw new ThroughlineError("APPEND_CONFLICT", `The session of ${quote(path)} was moved during the import.`, {
    outcome: "not-applied",
    details: { path, key, sessionId },
    remedy: "Import again: the session is found where it lies now.",
  });
}

/** A source without bytes hashes as empty, the beginning that every unread source has. */
async function beginnings({ open }: TranscriptSource, sizes: readonly number[]): Promise<PrefixHashes> {
  if (open !== null) return hashPrefixes(open, sizes);
  return hashPrefixes(() => Promise.resolve(nothing), sizes);
}

const nothing = {
  path: "",
  sizeBytes: 0,
  async *chunks(): AsyncGenerator<Uint8Array> {},
  close: (): Promise<void> => Promise.resolve(),
};
