import { createHash } from "node:crypto";
import { join } from "node:path";
import { parseStoreUrl } from "@throughline/config";
import { settingOf } from "@throughline/config/internal";
import type { Clock, SessionStore } from "@throughline/core";
import { isFields, systemClock } from "@throughline/core/internal";
import { openProcessLock } from "@throughline/store-jsonl/internal";
import {
  isOwnPlace,
  type PassProgress,
  placesAt,
  type PlacesSurvey,
  type ProgramPlace,
  programPlaces,
  SourceSync,
  surveyPlaces,
} from "@throughline/transfer/internal";
import type { ImportOptions } from "@throughline/transfer";
import { type AgentContext, homeOf } from "./agent-context.ts";
import { makeHome, readHomeFile, writeHomeFile } from "./node/home-file.ts";

/** Holds what the user answered about the sessions of other programs. */
type SyncConsent = "yes" | "no" | null;

/** True for a store whose records stay on this machine. */
export function isStoreHere({ storeUrl, workingDirectory }: AgentContext): boolean {
  const { scheme } = parseStoreUrl(storeUrl, workingDirectory);
  return scheme !== "http" && scheme !== "postgres";
}

/** One answer counts for all stores on this machine. Each other store, which others may read, has an answer of its own. */
export function readSyncConsent(context: AgentContext): SyncConsent {
  const { answer, stores } = readAnswers(context);
  const given = isStoreHere(context) ? answer : isFields(stores) ? stores[hashOf([context.storeUrl])] : null;
  return given === "yes" || given === "no" ? given : null;
}

export function writeSyncConsent(context: AgentContext, answer: NonNullable<SyncConsent>): void {
  const answers = readAnswers(context);
  const stores = { ...(isFields(answers.stores) ? answers.stores : {}), [hashOf([context.storeUrl])]: answer };
  writeHomeFile(consentPath(context), { ...answers, v: 1, ...(isStoreHere(context) ? { answer } : { stores }) });
}

/** Returns true at the first call for a text in this home, and remembers the text. */
export function isFirstTime(context: AgentContext, text: string): boolean {
  const { told } = readAnswers(context);
  const texts = Array.isArray(told) ? told.filter((each) => typeof each === "string") : [];
  if (texts.includes(text)) return false;
  writeHomeFile(consentPath(context), { ...readAnswers(context), v: 1, told: [...texts, text].slice(-mostTold) });
  return true;
}

const mostTold = 100;

interface Answers {
  readonly answer?: unknown;
  readonly stores?: unknown;
  readonly told?: unknown;
}

function readAnswers(context: AgentContext): Answers {
  const answers = readHomeFile(consentPath(context));
  return isFields(answers) ? answers : {};
}

function consentPath(context: AgentContext): string {
  return join(homeOf(context), "sync.json");
}

/** Selects what a sync reads. */
interface SyncRequest {
  /** Lists files and folders that the user named, in addition to the places of programs. */
  readonly paths?: readonly string[];
  /** Names the formats of the programs; null for every program. @default null */
  readonly formats?: ReadonlySet<string> | null;
  readonly dryRun?: boolean;
}

/** Counts the files of one program. */
export interface ProgramSurvey extends PlacesSurvey {
  readonly program: string;
}

/** Counts what programs keep, without opening a file; a program without sessions is left out. */
export async function surveyPrograms(
  context: AgentContext,
  formats: ReadonlySet<string> | null = null,
): Promise<readonly ProgramSurvey[]> {
  const byProgram = Map.groupBy(await syncPlaces(context, formats), ({ program }) => program);
  const surveys: ProgramSurvey[] = [];
  for (const [program, places] of byProgram) {
    const found = await surveyPlaces(
      places.map(({ path }) => path),
      storeRootOf(context),
    );
    if (found.files + found.databases > 0) surveys.push({ program, ...found });
  }
  return surveys;
}

/** Lists the places of programs, without those that belong to the store itself. */
async function syncPlaces(
  context: AgentContext,
  formats: ReadonlySet<string> | null,
): Promise<readonly ProgramPlace[]> {
  const places: ProgramPlace[] = [];
  for (const place of programPlaces(context, formats)) {
    // A store may live in the folder of OpenClaw, beside databases that belong to OpenClaw.
    const paths =
      place.format === "openclaw" && (await isOfStore(context, place.path)) ? placesAt(place.path) : [place.path];
    for (const path of paths) if (!(await isOfStore(context, path))) places.push({ ...place, path });
  }
  return places;
}

/** True for the store itself, and for what lies in its folder. */
export async function isOfStore({ workingDirectory, storeUrl }: AgentContext, path: string): Promise<boolean> {
  const address = parseStoreUrl(storeUrl, workingDirectory);
  if (address.scheme === "sqlite") return path === address.path;
  return address.scheme === "jsonl" && (await isOwnPlace(path, address.root));
}

function storeRootOf({ storeUrl, workingDirectory }: AgentContext): string | null {
  const address = parseStoreUrl(storeUrl, workingDirectory);
  return address.scheme === "jsonl" ? address.root : null;
}

/** Sets how a sync reports, and how sources get their place. */
export interface OpenSyncOptions {
  /** Returns the store for each pass. The caller closes it. */
  readonly openStore: () => Promise<SessionStore>;
  /** Lists the places to read at each search. */
  readonly places: () => Promise<readonly string[]>;
  readonly named?: readonly string[];
  /** True if the places are a part of those that other runs read. @default false */
  readonly isPartial?: boolean;
  /** Names what a sync with a memory of its own is for. @default the places of programs */
  readonly purpose?: string;
  readonly options?: Pick<ImportOptions, "dryRun" | "from" | "key" | "readKey" | "purgedSinceMs">;
  /** False to remember nothing beyond the life of the sync. @default true */
  readonly remembers?: boolean;
  readonly onNote: (message: string) => void;
  readonly progress?: PassProgress;
}

/** Opens a sync into the store of the context, with the memory of what was read for this store and these settings. */
export function openSync(context: AgentContext, given: OpenSyncOptions): SourceSync {
  const { namespace, agentId } = context.scope;
  const excludes = settingOf(context.config.settings, "sync.exclude") as readonly string[];
  const options = { ...given.options, agentId, namespace, storeRoot: storeRootOf(context) };
  const { readKey = null, key = null } = options;
  const { purpose = "programs" } = given;
  const identity = hashOf([context.storeUrl, namespace, agentId, readKey, key, ...excludes]);
  const isKept = parseStoreUrl(context.storeUrl, context.workingDirectory).scheme !== "memory";
  const remembers = (given.remembers ?? true) && isKept && options.dryRun !== true;
  return new SourceSync({
    ...given,
    options,
    excludes,
    userHome: context.userHome,
    identity,
    memoryPath: remembers ? join(homeOf(context), `synced-files-${hashOf([context.storeUrl, purpose])}.jsonl`) : null,
  });
}

/** Opens a sync of the programs' places and of the paths that the user named. */
export function openProgramSync(
  context: AgentContext,
  { paths = [], formats = null, dryRun = false }: SyncRequest,
  given: Omit<OpenSyncOptions, "places" | "named" | "options">,
): SourceSync {
  const places = async (): Promise<readonly string[]> => [
    ...paths,
    ...(await syncPlaces(context, formats)).map(({ path }) => path),
  ];
  const isPartial = formats !== null;
  return openSync(context, { ...given, places, named: paths, isPartial, options: dryRun ? { dryRun } : {} });
}

function hashOf(texts: readonly (string | null)[]): string {
  return createHash("sha256").update(JSON.stringify(texts)).digest("hex").slice(0, 16);
}

const lockEveryMs = 2000;

/**
 * Waits until no other process syncs into this store from this home, and returns a function that lets the next one
 * begin. The lock ends with its process in every case. Resolves with null when the signal aborts.
 * @throws {ThroughlineError} PATH_UNSAFE, STORE_READ_ONLY, STORE_IO
 */
export async function lockSync(
  context: AgentContext,
  signal: AbortSignal,
  options: { readonly onWait?: () => void; readonly clock?: Clock } = {},
): Promise<(() => void) | null> {
  const { onWait, clock = systemClock } = options;
  tryToMakeHome(homeOf(context));
  const lock = openProcessLock(join(homeOf(context), `sync-lock-${hashOf([context.storeUrl])}`));
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    if (lock.tryLock()) return () => lock.close();
    if (isFirst) onWait?.();
    await clock.sleep(lockEveryMs, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }
  lock.close();
  return null;
}

/** The lock, which is a file in the home, reports a home that cannot be made. */
function tryToMakeHome(path: string): void {
  try {
    makeHome(path);
  } catch (error) {
    if (typeof (error as { readonly code?: unknown }).code !== "string") throw error;
  }
}
