import { readdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { writeHomeFile } from "@throughline/agent/internal";
import { parseStoreUrl } from "@throughline/config";
import { readBoundedFile } from "@throughline/config/internal";
import type { SearchHit } from "@throughline/core";
import { isFields, sha256Hex, systemClock } from "@throughline/core/internal";
import type { CommandContext } from "../command.ts";
import { usageError } from "../error-report.ts";

/** Names a record that a search found. */
export interface HitPlace {
  readonly agentId: string;
  readonly key: string;
  readonly archiveId: string | null;
  readonly sessionId: string;
  readonly seq: number;
}

type PlaceContext = Pick<CommandContext, "host" | "output" | "scope" | "storeUrl" | "tokenPlaces">;

const keptMs = 3_600_000;
const mostBytes = 4_194_304;

/** The file holds places and no words, and each terminal has its own. */
function pathOf({ host, tokenPlaces }: PlaceContext): string {
  const terminal = sha256Hex(host.terminalName?.() ?? "none").slice(0, 16);
  return join(tokenPlaces.home, "searches", `${terminal}.json`);
}

function storeName({ host, scope, storeUrl }: PlaceContext): string {
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  return sha256Hex(JSON.stringify([address, scope.namespace])).slice(0, 16);
}

export function placeOf({ ref, sessionId, seq }: SearchHit): HitPlace {
  return { agentId: ref.agentId, key: ref.key, archiveId: ref.archiveId ?? null, sessionId, seq };
}

/** Keeps the numbered hits of a search for `open`. Searches of other terminals are removed after an hour. */
export function keepSearch(context: PlaceContext, places: readonly HitPlace[]): void {
  const path = pathOf(context);
  const folder = dirname(path);
  try {
    writeHomeFile(path, { store: storeName(context), atMs: systemClock.nowMs(), places });
    for (const name of readdirSync(folder)) {
      const file = join(folder, name);
      const atMs = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
      if (file !== path && atMs !== undefined && systemClock.nowMs() - atMs > keptMs) rmSync(file, { force: true });
    }
  } catch (error) {
    context.output.note(
      `The numbers of these hits cannot be kept for \`throughline open\`: ${(error as Error).message}`,
    );
  }
}

/**
 * Returns hit number `number` of the last search on this terminal.
 * @throws {ThroughlineError} USAGE if there is none
 */
export function keptPlace(context: PlaceContext, number: number): HitPlace {
  const kept = readKept(pathOf(context));
  if (kept === null || systemClock.nowMs() - kept.atMs > keptMs)
    throw usageError(
      "There is no search of this terminal from the last hour.",
      { number },
      "Search first: `throughline search WORDS`.",
    );
  if (kept.store !== storeName(context))
    throw usageError(
      "The last search of this terminal was in another store or namespace.",
      { number },
      "Search in this store first: `throughline search WORDS`.",
    );
  const place = kept.places[number - 1];
  if (place === undefined)
    throw usageError(`The last search printed ${kept.places.length} numbers, and ${number} is none of them.`, {
      number,
    });
  return place;
}

interface KeptSearch {
  readonly store: unknown;
  readonly atMs: number;
  readonly places: readonly HitPlace[];
}

/** Returns null without a file, and for a file that something else wrote. */
function readKept(path: string): KeptSearch | null {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return null;
  let value: unknown;
  try {
    value = JSON.parse(readBoundedFile(path, { what: "search", mostBytes }));
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  if (!isFields(value) || typeof value["atMs"] !== "number" || !Array.isArray(value["places"])) return null;
  const places: readonly unknown[] = value["places"];
  return places.every(isPlace) ? { store: value["store"], atMs: value["atMs"], places } : null;
}

function isPlace(value: unknown): value is HitPlace {
  if (!isFields(value)) return false;
  const { agentId, key, archiveId, sessionId, seq } = value;
  const texts = [agentId, key, sessionId].every((text) => typeof text === "string");
  return texts && (archiveId === null || typeof archiveId === "string") && Number.isSafeInteger(seq);
}
