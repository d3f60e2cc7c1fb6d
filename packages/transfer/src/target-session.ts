import { createFinding, quote } from "@throughline/core/internal";
import {
  type Finding,
  hasErrorCode,
  parseSessionKey,
  sessionRef,
  type SessionRef,
  type SessionState,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import { alike, beginsWith, findSession, type FoundSession } from "./find-session.ts";
import type { FolderPatterns } from "./folder-patterns.ts";
import type { FoundHandOff, HandedOff, HandOffSearch } from "./handed-off.ts";
import type { ImportOptions } from "./import-types.ts";
import type { KeptReadings } from "./kept-readings.ts";
import type { SourceClaims } from "./source-claims.ts";
import type { TranscriptSource } from "./transcript-source.ts";

/** Holds what all sources of one import share. */
export interface ImportPlaces {
  readonly store: SessionStore;
  readonly claims: SourceClaims;
  readonly handOffs: HandOffSearch;
  /** Selects the folders whose sessions are left out. */
  readonly excludes: FolderPatterns;
  /** Keeps readings of files that grow. @default none are kept */
  readonly readings?: KeptReadings;
}

export interface ImportTarget {
  readonly ref: SessionRef;
  readonly found: FoundSession | null;
  /**
   * States why no session is created: the source was purged after an import, or it is a handed-off session of this
   * store. Null to create one.
   */
  readonly leftAlone: "purged" | { readonly handedOffFrom: string } | null;
  /** Names the session whose hand-off the source continues, when none here holds it yet; null for any other source. */
  readonly handOff: FoundHandOff | null;
  /** Holds sessions from the same source when another one is created beside them. */
  readonly others: readonly SessionState[];
  /** Holds the key that the source states when the session cannot have it. */
  readonly refusedKey: string | null;
  readonly findings: readonly Finding[];
}

/** More sessions with the same key point to a mistake, so the search for a free key stops here. */
const maxSuffix = 10_000;

/** @throws {ThroughlineError} SESSION_EXISTS when the caller's key belongs to another session */
export async function findTarget(
  { store, claims, handOffs }: ImportPlaces,
  source: TranscriptSource,
  options: ImportOptions,
): Promise<ImportTarget> {
  const { base, refusedKey, findings } = baseRef(source, options);
  const askedKey = options.key ?? null;
  const nothing = { found: null, leftAlone: null, handOff: null, others: [], refusedKey, findings };
  const { found, isBaseFree, made } = await findSession({ store, claims, source, base, askedKey });
  if (found !== null) return { ...nothing, ref: found.state.ref, found };
  const { sessions = [], purgedAtMs = null } = made ?? {};
  // A key is a request for the session, also after a purge.
  const purgedSinceMs = options.purgedSinceMs ?? (askedKey === null ? 0 : Infinity);
  if (purgedAtMs !== null && purgedAtMs >= purgedSinceMs) return { ...nothing, ref: base, leftAlone: "purged" };
  const handOff = askedKey === null ? await handOffs.find(source) : null;
  const growth = handOff === null ? "other" : await growthOfHandOff(source, handOff.handedOff);
  if (handOff !== null && growth === "none")
    return { ...nothing, ref: base, leftAlone: { handedOffFrom: handOff.state.ref.key } };
  if (handOff !== null && growth === "grown")
    return { ...nothing, ref: await forkRef(store, handOff, source), handOff };
  const ref = isBaseFree ? base : await freeRef(store, base, askedKey);
  return { ...nothing, ref, others: await alike(source, sessions) };
}

/**
 * Compares a file with what the hand-off wrote. `none` when it is the same; `other` when the program rewrote it, so
 * that it is imported like any file.
 */
async function growthOfHandOff(source: TranscriptSource, noted: HandedOff): Promise<"none" | "grown" | "other"> {
  // The file of a hand-off that is not noted to its end is being written.
  if (noted.sizeBytes === 0 || source.sizeBytes === noted.sizeBytes) return "none";
  if (source.open === null) return "other";
  return (await beginsWith(source, noted)) ? "grown" : "other";
}

/**
 * Finds the place of the fork that continues a hand-off: the key of the other session with the program's name. A fork
 * that an interrupted import has begun is used again.
 */
async function forkRef(store: SessionStore, { state }: FoundHandOff, source: TranscriptSource): Promise<SessionRef> {
  const { ref } = state;
  const { archiveId: _archive, ...place } = ref;
  for (let suffix = 1; suffix <= maxSuffix; suffix++) {
    const to = { ...place, key: `${ref.key}-${source.format}${suffix === 1 ? "" : `-${suffix}`}` };
    const held = await store.load(to);
    if (held === null || held.sessionId === source.sessionId) return to;
  }
  throw new ThroughlineError("SESSION_EXISTS", `No key is free for a fork of ${quote(ref.key)}.`, {
    outcome: "not-applied",
    details: { ...ref },
  });
}

async function freeRef(store: SessionStore, base: SessionRef, askedKey: string | null): Promise<SessionRef> {
  for (let suffix = 2; suffix <= maxSuffix && askedKey === null; suffix++) {
    const ref = { ...base, key: `${base.key}-${suffix}` };
    if ((await store.load(ref)) === null) return ref;
  }
  throw new ThroughlineError("SESSION_EXISTS", `The key ${quote(base.key)} belongs to another session.`, {
    outcome: "not-applied",
    details: { ...base },
  });
}

function baseRef(
  source: TranscriptSource,
  options: ImportOptions,
): { readonly base: SessionRef; readonly refusedKey: string | null; readonly findings: readonly Finding[] } {
  const namespace = options.namespace ?? "";
  if (options.key !== undefined) {
    return {
      base: sessionRef({ key: options.key, namespace, ...agentFor(options.key, options.agentId) }),
      refusedKey: null,
      findings: [],
    };
  }
  const { key } = source;
  if (key !== null) {
    try {
      const agent = source.agentId === null ? agentFor(key, options.agentId) : { agentId: source.agentId };
      return { base: sessionRef({ key, namespace, ...agent }), refusedKey: null, findings: [] };
    } catch (error) {
      if (!hasErrorCode(error, "KEY_INVALID", "KEY_AGENT_MISMATCH", "AGENT_ID_INVALID")) throw error;
      const finding = createFinding("SESSION_UNINDEXED", error.message, { path: source.path, key });
      return { base: madeRef(source, options), refusedKey: key, findings: [finding] };
    }
  }
  return { base: madeRef(source, options), refusedKey: null, findings: [] };
}

/** A key that names its agent needs no separate agent. */
function agentFor(key: string, agentId: string | undefined): { readonly agentId?: string } {
  return agentId === undefined || parseSessionKey(key).agentId !== null ? {} : { agentId };
}

function madeRef(source: TranscriptSource, options: ImportOptions): SessionRef {
  const agentId = source.agentId ?? options.agentId ?? "main";
  return sessionRef({
    key: `agent:${agentId}:import:direct:${source.sessionId}`,
    agentId,
    namespace: options.namespace ?? "",
  });
}

/** Explains why an import creates no session for a source. */
export function leftAloneFinding(
  { path, sessionId }: Pick<TranscriptSource, "path" | "sessionId">,
  key: string,
  why: NonNullable<ImportTarget["leftAlone"]>,
): Finding {
  const message =
    why === "purged"
      ? `${quote(path)} is session ${quote(sessionId)}, which was imported and has been purged here: it stays away.`
      : `${quote(path)} is a hand-off of ${quote(why.handedOffFrom)} and has not grown: nothing is imported.`;
  return createFinding("SESSION_LEFT_ALONE", message, { path, key });
}
