import { createFinding, ThroughlineError, type Finding } from "@throughline/core";
import {
  createIndexMemberScanner,
  readIndexed,
  readSessionIndex,
  type IndexedSession,
  type IndexMember,
} from "@throughline/openclaw-format";
import { readJsonObject } from "./database-session.ts";
import { openSource, readSourceText, type SourceFile } from "./node/source-files.ts";

/** An index of sessions, as an import goes through it. */
interface OpenIndex {
  /** It is there and says nothing that could be read. */
  readonly isUnreadable: boolean;
  readonly findings: readonly Finding[];
  /** In the order of the index; to be gone through once. */
  sessions(): AsyncIterable<IndexedSession> | Iterable<IndexedSession>;
}

/** A larger one is not held: its entries are read one by one, when it is their turn. */
const mostHeldBytes = 4 * 1024 * 1024;

/** The index at a path; an empty one when there is none. */
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
 * A large index, with the places of its entries. Null for one that is small enough, and for one that is not a whole object
 * of sessions with a key each: whoever reads the whole of it says what is wrong.
 */
async function largeIndex(path: string): Promise<OpenIndex | null> {
  const source = await openSource(path);
  let isKept = false;
  try {
    const places = source.sizeBytes <= mostHeldBytes ? null : await memberPlaces(source);
    if (places === null) return null;
    isKept = true;
    return {
      isUnreadable: false,
      findings: [],
      async *sessions() {
        // The file that was looked at, though another one may have its name by now.
        try {
          for (const place of places) {
            const session = await readMember(source, place);
            if (session !== null) yield session;
          }
        } finally {
          await source.close();
        }
      },
    };
  } finally {
    if (!isKept) await source.close();
  }
}

async function memberPlaces(source: SourceFile): Promise<readonly IndexMember[] | null> {
  const scanner = createIndexMemberScanner();
  const places: IndexMember[] = [];
  const keys = new Set<string>();
  for await (const chunk of source.chunks()) {
    for (const place of scanner.push(chunk)) {
      if (keys.has(place.key)) return null;
      keys.add(place.key);
      places.push(place);
    }
  }
  if (!scanner.isWhole) return null;
  for (const place of places) if ((await readMember(source, place)) === null) return null;
  return places;
}

async function readMember(
  source: SourceFile,
  { key, fromBytes, toBytes }: IndexMember,
): Promise<IndexedSession | null> {
  const parts: Buffer[] = [];
  for await (const chunk of source.chunks({ fromBytes, toBytes })) parts.push(Buffer.from(chunk));
  const fields = readJsonObject(Buffer.concat(parts).toString("utf8"));
  return fields === null ? null : (readIndexed(key, fields)?.session ?? null);
}
