import { join, resolve } from "node:path";
import { parseStoreUrl, sessionSettings } from "@throughline/config";
import type { SessionSettings } from "@throughline/config/internal";
import { hasErrorCode } from "@throughline/core";
import type { SessionStore } from "@throughline/core";
import type { CommandContext } from "../command.ts";
import { counted, sizeText } from "../counted.ts";
import { ImportSummary } from "../import-summary.ts";
import { maskSecrets } from "@throughline/config/internal";
import { foreignPlaces, isOwnPlace, placesAt, programTranscripts } from "@throughline/transfer/internal";
import type { ForeignPlace, ProgramTranscripts } from "@throughline/transfer/internal";
import { inheritSources } from "./inherited-session.ts";
import { answerFor, isAsBefore, readInheritState, writeInheritState } from "./inherit-state.ts";
import type { InheritState } from "./inherit-state.ts";

export interface OfferOptions {
  readonly canAsk: boolean;
}

/**
 * Finds sessions of another program and offers to import them, once for each location and only on a terminal. Without a
 * terminal, an empty store prints one line. If `session.inherit.enabled` is true, new sessions are imported before a
 * conversation; if false, no location is read. New records go to Throughline's store only, and the other program's
 * files are never changed.
 */
export async function offerImport(
  context: CommandContext,
  store: SessionStore,
  { canAsk }: OfferOptions,
): Promise<void> {
  const { fresh, ...inheriting } = await newPlaces(context);
  const { enabled } = inheriting.inherit;
  // No setting covers the sessions of other programs, so only a user may decide about them and a script is never asked.
  const others = enabled === null && canAsk ? otherPlaces(context, inheriting) : [];
  if (fresh.length + others.length === 0) return;
  if (enabled === true) {
    await importAll(context, store, fresh, inheriting);
    return;
  }
  if (canAsk) return ask(context, store, [...fresh, ...others], inheriting);
  const { sessions } = await store.list({ state: "any", limit: 1, signal: context.signal });
  if (sessions.length > 0) return;
  context.output.note(
    `There are sessions of OpenClaw: ${fresh.map(placeText).join("; ")}. \`throughline import PATH\` brings them here.`,
  );
}

/**
 * Imports new sessions before a command other than `chat` opens the store, if `session.inherit.enabled` is true. The
 * setting is the consent, so no question is asked. A failure is printed, and the command continues with the store's
 * sessions.
 */
export async function importInherited(context: CommandContext, open: () => Promise<SessionStore>): Promise<void> {
  const { fresh, ...inheriting } = await newPlaces(context);
  if (fresh.length === 0 || inheriting.inherit.enabled !== true) return;
  try {
    await using store = await open();
    await importAll(context, store, fresh, inheriting);
  } catch (error) {
    if (context.signal.aborted) throw error;
    const message = error instanceof Error ? error.message : String(error);
    context.output.note(`The sessions in ${fresh.map(({ path }) => path).join(", ")} were not imported: ${message}`);
  }
}

/** Combines the settings of `session.inherit` with the answers of earlier runs. */
interface InheritContext {
  readonly inherit: SessionSettings["inherit"];
  readonly state: InheritState;
  readonly statePath: string;
}

async function newPlaces(
  context: CommandContext,
): Promise<InheritContext & { readonly fresh: readonly ForeignPlace[] }> {
  const { host, settings } = context;
  const { inherit } = sessionSettings(context.config);
  const home = resolve(host.workingDirectory, String(settings.find(({ key }) => key === "home")?.value ?? ""));
  const statePath = join(home, "inherited.json");
  if (inherit.enabled === false) return { inherit, state: {}, statePath, fresh: [] };
  const state = readInheritState(statePath);
  const paths = new Set(inheritSources(context, inherit.source).flatMap((path) => placesAt(path)));
  const isNew = (place: ForeignPlace): boolean =>
    inherit.enabled === true ? !isAsBefore(place, state[place.path]) : state[place.path] === undefined;
  const found = foreignPlaces([...paths]).filter(isNew);
  const own = new Set<ForeignPlace>();
  for (const place of found) if (await isOfStore(context, place.path)) own.add(place);
  const reported = inherit.enabled === true ? reportOwn(context, { inherit, state, statePath }, [...own]) : state;
  return { inherit, state: reported, statePath, fresh: found.filter((place) => !own.has(place)) };
}

function otherPlaces({ host, settings }: CommandContext, { state }: InheritContext): readonly ProgramTranscripts[] {
  // A user who configures a source means only that source.
  const isNamed = settings.some(({ key, source }) => key === "session.inherit.source" && source !== "default");
  if (isNamed) return [];
  const { environment, userHome } = host;
  return programTranscripts({ environment, userHome }, (path) => state[path] === undefined);
}

async function isOfStore({ host, storeUrl }: CommandContext, path: string): Promise<boolean> {
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  if (address.scheme === "sqlite") return path === address.path;
  return address.scheme === "jsonl" && (await isOwnPlace(path, address.root));
}

/**
 * Prints once for a JSON Lines store that its own folders are not inherited. The file of a SQLite store stays silent,
 * because stores and other programs share documented locations. Returns the state with the printed locations.
 */
function reportOwn(
  { host, output, storeUrl }: CommandContext,
  { state, statePath }: InheritContext,
  places: readonly ForeignPlace[],
): InheritState {
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  const [first] = places;
  if (address.scheme !== "jsonl" || first === undefined || state[address.root] !== undefined) return state;
  const paths = places.map(({ path }) => path).join(", ");
  output.note(`Nothing is inherited from ${paths}: the store ${maskSecrets(storeUrl)} holds these sessions already.`);
  const reported = { ...state, [address.root]: answerFor(first, "no") };
  writeInheritState(statePath, reported);
  return reported;
}

async function ask(
  context: CommandContext,
  store: SessionStore,
  places: readonly ForeignPlace[],
  inheriting: InheritContext,
): Promise<void> {
  const { output } = context;
  const programs = new Set(places.map(programOf));
  const [only] = programs;
  const whose = programs.size === 1 ? String(only) : "other programs";
  const texts = places.map((place) =>
    programs.size === 1 ? placeText(place) : `${programOf(place)}: ${placeText(place)}`,
  );
  output.note(`There are sessions of ${whose}: ${texts.join("; ")}.`);
  try {
    await context.confirm("Import them? Their files stay unchanged; new messages are stored here only.");
  } catch (error) {
    // An interrupt is no decision.
    if (!hasErrorCode(error, "ABORTED") || context.signal.aborted) throw error;
    const refused = Object.fromEntries(places.map((place) => [place.path, answerFor(place, "no")]));
    writeInheritState(inheriting.statePath, { ...inheriting.state, ...refused });
    output.note("Nothing was imported; `throughline import PATH` does it whenever it is wanted.");
    return;
  }
  const summary = await importAll(context, store, places, inheriting);
  if (summary.imported > 0) await summary.printCommands(context, store);
}

async function importAll(
  context: CommandContext,
  store: SessionStore,
  places: readonly ForeignPlace[],
  { inherit, state, statePath }: InheritContext,
): Promise<ImportSummary> {
  const { host, output, scope, signal } = context;
  // Most starts import nothing, so the module loads on demand.
  const { importPaths } = await import("@throughline/transfer");
  const address = parseStoreUrl(context.storeUrl, host.workingDirectory);
  const [counts, refused] = [{ imported: 0, grown: 0, records: 0 }, [] as string[]];
  const summary = new ImportSummary();
  const { readKey, writeKey } = inherit;
  for (const place of places) {
    const sources = importPaths(store, [place.path], {
      agentId: scope.agentId,
      namespace: scope.namespace,
      storeRoot: address.scheme === "jsonl" ? address.root : null,
      ...(readKey === null ? {} : { readKey }),
      ...(readKey === null || writeKey === null ? {} : { key: writeKey }),
      signal,
      onProgress: ({ path, records }) => output.progress(`importing ${counted(records, "record")} of ${path}`),
    });
    for await (const source of sources) {
      const { state: outcome, records, path, error } = source;
      summary.take(source);
      if (outcome === "imported" || outcome === "grown") counts[outcome] += 1;
      counts.records += records;
      if (error !== null) refused.push(`${path}: ${error.message}`);
    }
  }
  output.clearProgress();
  for (const text of refused) output.note(text);
  const taken = Object.fromEntries(places.map((place) => [place.path, answerFor(place, "yes")]));
  writeInheritState(statePath, { ...state, ...taken });
  if (counts.imported + counts.grown + refused.length === 0) return summary;
  const grown = counts.grown === 0 ? "" : `, ${counted(counts.grown, "session")} grown`;
  const into = maskSecrets(context.storeUrl);
  const programs = summary.imported === 0 ? "" : ` (${summary.programs})`;
  output.note(
    `Imported ${counted(counts.imported, "session")}${grown}, ${counted(counts.records, "record")}${programs}, into ${into}${refused.length === 0 ? "" : `; ${refused.length} refused`}.`,
  );
  return summary;
}

function programOf(place: ForeignPlace | ProgramTranscripts): string {
  return "program" in place ? place.program : "OpenClaw";
}

function placeText({ path, files, sizeBytes }: ForeignPlace): string {
  const what = /\.(db|sqlite)$/.test(path) ? "a database" : counted(files, "transcript");
  return `${what} (${sizeText(sizeBytes)}) in ${path}`;
}
