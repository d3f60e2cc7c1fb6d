import { assertKnownOptions } from "@throughline/core/internal";
import { ThroughlineError, type ErrorCode, type SessionStore } from "@throughline/core";
import { noFolders, type FolderPatterns } from "./folder-patterns.ts";
import { findSources } from "./find-sources.ts";
import type { FoundSource, OtherSource } from "./found-source.ts";
import { HandOffSearch } from "./handed-off.ts";
import { continueTranscript, importTranscript } from "./import-transcript.ts";
import { importTable, type ImportOptions, type ImportSource } from "./import-types.ts";
import type { KeptReadings } from "./kept-readings.ts";
import { runInParallel, type LaneClaim } from "./run-in-parallel.ts";
import { fullLook, type SearchLook } from "./search-look.ts";
import { isExcluded } from "./source-folder.ts";
import { SourceClaims } from "./source-claims.ts";
import type { ImportPlaces } from "./target-session.ts";
import type { TranscriptSource } from "./transcript-source.ts";

/** After these errors of the store or the caller, no other source could succeed. */
const fatalCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "ABORTED",
  "INTERNAL",
  "STORE_CLOSED",
  "STORE_FULL",
  "STORE_NOT_FOUND",
  "STORE_READ_ONLY",
  "STORE_VERSION_UNSUPPORTED",
]);

/**
 * Imports transcripts: OpenClaw state and session directories, pi's, both claw0 layouts, Throughline stores and single
 * files.
 * Yields one result per source, in a fixed order. A source that cannot be read or must not be imported is a result with
 * an error. Sources are opened read-only and never changed. A second run adds only what the sources have gained.
 * @throws {ThroughlineError} INPUT_INVALID (`key` with more than one transcript), ABORTED, and errors that make the
 *   store unusable
 */
export async function* importPaths(
  store: SessionStore,
  paths: readonly string[],
  options: ImportOptions = {},
): AsyncGenerator<ImportSource> {
  assertKnownOptions<ImportOptions>("importPaths", options, importTable);
  yield* importChanged(store, paths, options, { look: fullLook });
}

/** Holds what a program that imports again and again keeps between two imports. */
export interface ImportMemory {
  readonly look: SearchLook;
  /** @default a search that reads all entries when it is first used */
  readonly handOffs?: HandOffSearch;
  /** Selects the folders whose sessions are left out. @default none */
  readonly excludes?: FolderPatterns;
  /** Keeps readings, so that a file which grew is read from where it ended. @default none are kept */
  readonly readings?: KeptReadings;
}

/** Imports what `memory.look` does not know yet, otherwise like {@link importPaths}. */
export async function* importChanged(
  store: SessionStore,
  paths: readonly string[],
  options: ImportOptions,
  { look, handOffs, excludes, readings }: ImportMemory,
): AsyncGenerator<ImportSource> {
  const sources = options.key === undefined ? sourcesOf(paths, options, look) : await onlyOne(paths, options, look);
  const { namespace = "" } = options;
  using sourceClaims = new SourceClaims();
  const places: ImportPlaces = {
    store,
    claims: sourceClaims,
    handOffs: handOffs ?? new HandOffSearch(store, namespace),
    excludes: excludes ?? noFolders,
    ...(readings === undefined ? {} : { readings }),
  };
  yield* continued(places, look, options);
  yield* runInParallel(sources, {
    width: lanes,
    mostWeight: mostBytesTogether,
    claim: claims(),
    run: async (found) => (found.kind === "transcript" ? importGuarded(places, found, options) : otherResult(found)),
  });
}

/**
 * Limits the transcripts written at a time. A store that flushes once for several commits is faster with parallel
 * writers.
 */
const lanes = 16;
/**
 * Limits the bytes of transcripts in progress, so that memory holds a few batches only. A larger transcript runs alone.
 */
const mostBytesTogether = 2 * 1024 * 1024;

/**
 * Transcripts that may claim the same key, id or session keep their order, so the first source gets the name on every
 * run.
 */
function claims(): (found: FoundSource) => LaneClaim {
  let isBehindArchives = false;
  return (found) => {
    if (found.kind !== "transcript") return { names: [], weight: 0, isAlone: false };
    const { path, key, sessionId, sizeBytes, isArchived } = found;
    // An archive may belong to a session that holds the key of a later source.
    const isLeavingArchives = isBehindArchives && !isArchived;
    isBehindArchives = isArchived;
    // The second session of a key is named `<key>-2`.
    const keyNames = key === null ? [] : [`key ${key.replace(/-\d+$/, "")}`];
    const names = [`id ${sessionId.toLowerCase()}`, `path ${path}`, ...keyNames];
    const isLarge = sizeBytes === null || sizeBytes > mostBytesTogether;
    return { names, weight: sizeBytes ?? 0, isAlone: isLarge || isLeavingArchives };
  };
}

async function* sourcesOf(
  paths: readonly string[],
  options: ImportOptions,
  look: SearchLook,
): AsyncGenerator<FoundSource> {
  const { readKey } = options;
  for await (const found of findSources(paths, {
    from: options.from ?? "auto",
    storeRoot: options.storeRoot ?? null,
    look,
  })) {
    // `readKey` selects the session that has the key now. Its archives are other conversations.
    if (readKey === undefined) yield found;
    else if (found.kind === "transcript" && found.key === readKey && !found.isArchived) yield found;
    else if (found.kind === "refused") yield found;
  }
}

async function onlyOne(
  paths: readonly string[],
  options: ImportOptions,
  look: SearchLook,
): Promise<AsyncGenerator<FoundSource>> {
  let count = 0;
  for await (const { kind } of sourcesOf(paths, options, fullLook)) {
    if (kind === "transcript" && ++count > 1) {
      throw new ThroughlineError("INPUT_INVALID", "A key can be given for one transcript only; the paths hold more.", {
        outcome: "not-applied",
        remedy: "Name the one file, or the key to read with `readKey`.",
      });
    }
  }
  // The search runs again, because a database is open only while its sessions are read.
  return sourcesOf(paths, options, look);
}

/** Imports what files gained behind kept readings. The search takes the other files, also those where this failed. */
async function* continued(
  places: ImportPlaces,
  look: SearchLook,
  options: ImportOptions,
): AsyncGenerator<ImportSource> {
  for (const kept of places.readings?.takeGrown(look) ?? []) {
    try {
      const result = await continueTranscript(places, kept, options);
      if (result === null) continue;
      look.tookGrowth(kept.source.path);
      yield result;
    } catch (error) {
      if (!ThroughlineError.isInstance(error) || fatalCodes.has(error.code)) throw error;
    }
  }
}

async function importGuarded(
  places: ImportPlaces,
  source: TranscriptSource,
  options: ImportOptions,
): Promise<ImportSource> {
  try {
    if (await isExcluded(source, places.excludes)) return otherResult({ ...source, kind: "skipped", error: null });
    return await importTranscript(places, source, options);
  } catch (error) {
    if (!ThroughlineError.isInstance(error) || fatalCodes.has(error.code)) throw error;
    const { path, format, agentId, sessionId, findings, isArchived } = source;
    const key = options.key ?? source.key;
    return {
      ...nothing,
      path,
      format,
      key,
      agentId,
      sessionId,
      archived: isArchived,
      state: "refused",
      findings,
      error,
    };
  }
}

const nothing = { lines: 0, records: 0, derived: 0, repaired: 0, lost: [] } as const;

function otherResult({ kind, path, findings, error }: OtherSource): ImportSource {
  return {
    ...nothing,
    path,
    format: "unknown",
    key: null,
    agentId: null,
    sessionId: null,
    archived: false,
    state: kind,
    findings,
    error,
  };
}
