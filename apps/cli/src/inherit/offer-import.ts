import { join, resolve, sep } from "node:path";
import { sessionSettings } from "@throughline/config";
import type { SessionSettings } from "@throughline/config";
import { hasErrorCode } from "@throughline/core";
import type { SessionStore } from "@throughline/core";
import type { CommandContext } from "../command.ts";
import { counted } from "../counted.ts";
import { maskSecrets } from "@throughline/config/mask-secrets";
import { parseStoreUrl } from "@throughline/config/store-url";
import { foreignPlaces, openclawState, placesAt } from "@throughline/transfer/foreign";
import type { ForeignPlace } from "@throughline/transfer/foreign";
import { answerFor, isAsBefore, readInheritState, writeInheritState } from "./inherit-state.ts";
import type { InheritState } from "./inherit-state.ts";

export interface OfferOptions {
  /** Whether a person is there who can answer. */
  readonly canAsk: boolean;
}

/**
 * Notices sessions of another program and offers to import them: once for each place, on a terminal. Without anybody to
 * ask, a store without a session says so in one line. With the setting `session.inherit.enabled` what is new is imported
 * before a conversation begins; with `false` nothing is looked at. What was said goes to the new store only, and the
 * files of the other program are never changed.
 */
export async function offerImport(
  context: CommandContext,
  store: SessionStore,
  { canAsk }: OfferOptions,
): Promise<void> {
  const { fresh, ...scene } = newPlaces(context);
  if (fresh.length === 0) return;
  if (scene.inherit.enabled === true) return importAll(context, store, fresh, scene);
  if (canAsk) return ask(context, store, fresh, scene);
  const { sessions } = await store.list({ state: "any", limit: 1, signal: context.signal });
  if (sessions.length > 0) return;
  context.output.note(
    `There are sessions of OpenClaw: ${fresh.map(placeText).join("; ")}. \`throughline import PATH\` brings them here.`,
  );
}

/**
 * Imports what is new where `session.inherit.enabled` is true, before a command other than `chat` opens the store. Nobody is
 * asked: who sets it has answered. What cannot be imported is printed, and the command works with what the store holds.
 */
export async function importInherited(context: CommandContext, open: () => Promise<SessionStore>): Promise<void> {
  const { fresh, ...scene } = newPlaces(context);
  if (fresh.length === 0 || scene.inherit.enabled !== true) return;
  try {
    await using store = await open();
    await importAll(context, store, fresh, scene);
  } catch (error) {
    if (context.signal.aborted) throw error;
    const message = error instanceof Error ? error.message : String(error);
    context.output.note(`The sessions in ${fresh.map(({ path }) => path).join(", ")} were not imported: ${message}`);
  }
}

/** The places that hold what was neither imported nor refused. */
function newPlaces(context: CommandContext): Scene & { readonly fresh: readonly ForeignPlace[] } {
  const { host, settings } = context;
  const { inherit } = sessionSettings(context.config);
  const home = resolve(host.workingDirectory, String(settings.find(({ key }) => key === "home")?.value ?? ""));
  const statePath = join(home, "inherited.json");
  if (inherit.enabled === false) return { inherit, state: {}, statePath, fresh: [] };
  const state = readInheritState(statePath);
  const isNamed = settings.some(({ key, source }) => key === "session.inherit.source" && source !== "default");
  // Where somebody named a place, that one is meant and no other.
  const named = isNamed ? [inherit.source] : [openclawState(host.userHome), inherit.source];
  const own = ownPath(context);
  const isOwn = (path: string): boolean => own !== null && (path === own || path.startsWith(`${own}${sep}`));
  const paths = new Set(named.flatMap((path) => placesAt(resolve(path))));
  const places = foreignPlaces([...paths].filter((path) => !isOwn(path)));
  const isNew = (place: ForeignPlace): boolean =>
    inherit.enabled === true ? !isAsBefore(place, state[place.path]) : state[place.path] === undefined;
  return { inherit, state, statePath, fresh: places.filter(isNew) };
}

interface Scene {
  readonly inherit: SessionSettings["inherit"];
  readonly state: InheritState;
  readonly statePath: string;
}

async function ask(
  context: CommandContext,
  store: SessionStore,
  places: readonly ForeignPlace[],
  scene: Scene,
): Promise<void> {
  const { output } = context;
  output.note(`There are sessions of OpenClaw: ${places.map(placeText).join("; ")}.`);
  try {
    await context.confirm("Import them? Their files stay as they are, and what is said from now on is kept here only.");
  } catch (error) {
    // An interrupt decides nothing.
    if (!hasErrorCode(error, "ABORTED") || context.signal.aborted) throw error;
    const refused = Object.fromEntries(places.map((place) => [place.path, answerFor(place, "no")]));
    writeInheritState(scene.statePath, { ...scene.state, ...refused });
    output.note("Nothing was imported; `throughline import PATH` does it whenever it is wanted.");
    return;
  }
  await importAll(context, store, places, scene);
}

async function importAll(
  context: CommandContext,
  store: SessionStore,
  places: readonly ForeignPlace[],
  { inherit, state, statePath }: Scene,
): Promise<void> {
  const { host, output, scope, signal } = context;
  // Most starts import nothing.
  const { importPaths } = await import("@throughline/transfer");
  const address = parseStoreUrl(context.storeUrl, host.workingDirectory);
  const [counts, refused] = [{ imported: 0, grown: 0, records: 0 }, [] as string[]];
  const { readKey, writeKey } = inherit;
  for (const place of places) {
    const sources = importPaths(store, [place.path], {
      agentId: scope.agentId,
      namespace: scope.namespace,
      storeRoot: address.scheme === "jsonl" ? address.root : null,
      ...(readKey === null ? {} : { readKey }),
      ...(readKey === null || writeKey === null ? {} : { key: writeKey }),
      signal,
      onProgress: ({ path, records }) => output.progress(`importing ${path}: ${counted(records, "record")}`),
    });
    for await (const { state: outcome, records, path, error } of sources) {
      if (outcome === "imported" || outcome === "grown") counts[outcome] += 1;
      counts.records += records;
      if (error !== null) refused.push(`${path}: ${error.message}`);
    }
  }
  output.clearProgress();
  for (const text of refused) output.note(text);
  const taken = Object.fromEntries(places.map((place) => [place.path, answerFor(place, "yes")]));
  writeInheritState(statePath, { ...state, ...taken });
  if (counts.imported + counts.grown + refused.length === 0) return;
  const grown = counts.grown === 0 ? "" : `, ${counted(counts.grown, "session")} grown`;
  const into = maskSecrets(context.storeUrl);
  output.note(
    `Imported ${counted(counts.imported, "session")}${grown}, ${counted(counts.records, "record")}, into ${into}${refused.length === 0 ? "" : `; ${refused.length} refused`}.`,
  );
}

/** The store itself is no source. */
function ownPath({ host, storeUrl }: CommandContext): string | null {
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  return address.scheme === "sqlite" ? address.path : address.scheme === "jsonl" ? address.root : null;
}

function placeText({ path, files, sizeBytes }: ForeignPlace): string {
  const what = /\.(db|sqlite)$/.test(path) ? "a database" : counted(files, "transcript");
  return `${what} (${sizeText(sizeBytes)}) in ${path}`;
}

function sizeText(sizeBytes: number): string {
  if (sizeBytes < 1_000_000) return `${(sizeBytes / 1000).toFixed(1)} kB`;
  return `${(sizeBytes / 1_000_000).toFixed(1)} MB`;
}
