import { createFinding, isFields, quote } from "@throughline/core/internal";
import { type Finding, ThroughlineError } from "@throughline/core";
import {
  createIndexMemberScanner,
  type IndexedSession,
  readIndexed,
  readSessionIndex,
} from "@throughline/openclaw-format/internal";
import { openSource, readSourceText, type SourceFile } from "./node/source-files.ts";
import { createScratchMap, type ScratchMap } from "./scratch-map.ts";

interface OpenIndex {
  /** True if the index exists but no entry could be read. */
  readonly isUnreadable: boolean;
  readonly findings: readonly Finding[];
  /** Yields sessions in the order of the index; may be iterated once. */
  sessions(): AsyncIterable<IndexedSession> | Iterable<IndexedSession>;
}

/** A larger index is not held in memory; its entries are read one by one. */
const mostHeldBytes = 256 * 1024;
/**
 * OpenClaw's entries have tens of kilobytes. An index with a larger entry than this is parsed as a whole or not at all.
 */
const mostEntryBytes = 16 * 1024 * 1024;

/** Returns an empty index when the file does not exist. */
export async function openIndex(path: string): Promise<OpenIndex> {
  try {
    return (await largeIndex(path)) ?? heldIndex(await readSourceText(path), path);
  } catch (error) {
    if (!ThroughlineError.isInstance(error)) throw error;
    const isMissing = error.code === "FILE_NOT_FOUND";
    const findings = isMissing ? [] : [createFinding("INDEX_UNREADABLE", error.message, { path })];
    return { isUnreadable: !isMissing, findings, sessions: () => [] };
  }
}

function heldIndex(text: string, path: string): OpenIndex {
  const { shape, sessions, findings } = readSessionIndex(text, { path });
  return { isUnreadable: shape === null && findings.length > 0, findings, sessions: () => sessions };
}

/**
 * Reads a large index entry by entry, in two passes. The first checks that it is complete and which of several entries
 * of one key counts. The second yields the sessions.
 * Returns null for a small index, and for one that is no complete object: parsing the whole file reports the error.
 */
async function largeIndex(path: string): Promise<OpenIndex | null> {
  const source = await openSource(path);
  const lastOfKey = createScratchMap();
  const close = async (): Promise<void> => {
    lastOfKey[Symbol.dispose]();
    await source.close();
  };
  let isKept = false;
  try {
    const surveyed = source.sizeBytes <= mostHeldBytes ? null : await survey(source, lastOfKey);
    if (surveyed === null) return null;
    const { findings, hasSession } = surveyed;
    if (!hasSession) return { isUnreadable: findings.length > 0, findings, sessions: () => [] };
    isKept = true;
    return {
      isUnreadable: false,
      findings,
      async *sessions() {
        // The opened file is read, even if another file has its name now.
        try {
          for await (const { key, session, place } of membersOf(source)) {
            if (session !== null && lastOfKey.get(JSON.stringify(key)) === place) yield session;
          }
        } finally {
          await close();
        }
      },
    };
  } finally {
    if (!isKept) await close();
  }
}

/** Returns null if the file is not one complete object. */
async function survey(
  source: SourceFile,
  lastOfKey: ScratchMap,
): Promise<{ readonly findings: readonly Finding[]; readonly hasSession: boolean } | null> {
  const { path } = source;
  const findings: Finding[] = [];
  let hasSession = false;
  const members = membersOf(source);
  for (;;) {
    const { done, value } = await members.next();
    if (done === true) return value ? { findings, hasSession } : null;
    const { key, session, place } = value;
    // The last of several entries of one key counts, as when the whole file is parsed.
    lastOfKey.set(JSON.stringify(key), place);
    hasSession ||= session !== null;
    if (session === null)
      findings.push(createFinding("ENTRY_UNREADABLE", `The entry of ${quote(key)} names no session.`, { path, key }));
  }
}

interface Member {
  readonly key: string;
  /** Null when the entry names no session. */
  readonly session: IndexedSession | null;
  /** Distinguishes entries of the same key. */
  readonly place: string;
}

/** Yields the members in their order; returns whether they form one complete object. */
async function* membersOf(source: SourceFile): AsyncGenerator<Member, boolean> {
  const scanner = createIndexMemberScanner();
  let held: Uint8Array[] = [];
  let heldFrom = 0;
  let heldTo = 0;
  for await (const chunk of source.chunks()) {
    held.push(new Uint8Array(chunk));
    heldTo += chunk.length;
    const members = scanner.push(chunk);
    if (members.length === 0 && heldTo - heldFrom > mostEntryBytes) return false;
    if (members.length === 0) continue;
    const bytes = Buffer.concat(held);
    for (const { key, fromBytes, toBytes } of members) {
      const value = parseJson(bytes.toString("utf8", fromBytes - heldFrom, toBytes - heldFrom));
      if (value === undefined) return false;
      yield {
        key,
        session: isFields(value) ? (readIndexed(key, value)?.session ?? null) : null,
        place: String(fromBytes),
      };
    }
    held = [new Uint8Array(bytes.subarray(scanner.neededFromBytes - heldFrom))];
    heldFrom = scanner.neededFromBytes;
  }
  return scanner.isWhole;
}

/** Returns undefined for invalid JSON, because null is a valid value. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
