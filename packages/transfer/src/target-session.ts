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
import { alike, findSession, type FoundSession } from "./find-session.ts";
import type { HandOffSearch } from "./handed-off.ts";
import type { ImportOptions } from "./import-types.ts";
import type { SourceClaims } from "./source-claims.ts";
import type { TranscriptSource } from "./transcript-source.ts";

/** Holds what all sources of one import share. */
export interface ImportPlaces {
  readonly store: SessionStore;
  readonly claims: SourceClaims;
  readonly handOffs: HandOffSearch;
}

export interface ImportTarget {
  readonly ref: SessionRef;
  readonly found: FoundSession | null;
  /**
   * States why no session is created: the source was purged after an import, or it is a handed-off session of this
   * store. Null to create one.
   */
  readonly leftAlone: "purged" | { readonly handedOffFrom: string } | null;
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
  const nothing = { found: null, leftAlone: null, others: [], refusedKey, findings };
  const { found, isBaseFree, made } = await findSession({ store, claims, source, base, askedKey });
  if (found !== null) return { ...nothing, ref: found.state.ref, found };
  const { sessions = [], purgedAtMs = null } = made ?? {};
  // A key is a request for the session, also after a purge.
  const purgedSinceMs = options.purgedSinceMs ?? (askedKey === null ? 0 : Infinity);
  if (purgedAtMs !== null && purgedAtMs >= purgedSinceMs) return { ...nothing, ref: base, leftAlone: "purged" };
  const handedOffFrom = askedKey === null ? await handOffs.keyOf(source) : null;
  if (handedOffFrom !== null) return { ...nothing, ref: base, leftAlone: { handedOffFrom } };
  const ref = isBaseFree ? base : await freeRef(store, base, askedKey);
  return { ...nothing, ref, others: await alike(source, sessions) };
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
