import { answerFor, findInheritance, inheritPlaces, otherPlaces, writeInheritState } from "@throughline/agent/internal";
import type { Inheritance } from "@throughline/agent/internal";
import { parseStoreUrl } from "@throughline/config";
import { maskSecrets } from "@throughline/config/internal";
import { hasErrorCode } from "@throughline/core";
import type { SessionStore } from "@throughline/core";
import { causeText } from "@throughline/core/internal";
import type { ForeignPlace, ProgramTranscripts } from "@throughline/transfer/internal";
import type { CommandContext } from "../command.ts";
import { counted, sizeText } from "../counted.ts";
import { ImportSummary } from "../import-summary.ts";

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
  const inheriting = await inheritance(context);
  const { fresh } = inheriting;
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
  const inheriting = await inheritance(context);
  const { fresh } = inheriting;
  if (fresh.length === 0 || inheriting.inherit.enabled !== true) return;
  try {
    await using store = await open();
    await importAll(context, store, fresh, inheriting);
  } catch (error) {
    if (context.signal.aborted) throw error;
    const paths = fresh.map(({ path }) => path).join(", ");
    context.output.note(`The sessions in ${paths} were not imported: ${causeText(error)}`);
  }
}

/**
 * Finds what may be inherited. With `enabled: true`, it prints once for a JSON Lines store that its own folders are not
 * inherited. The file of a SQLite store stays silent, because stores and other programs share documented locations.
 */
async function inheritance(context: CommandContext): Promise<Inheritance> {
  const found = await findInheritance(context);
  const { inherit, own, state, statePath } = found;
  const { output, storeUrl, workingDirectory } = context;
  const address = parseStoreUrl(storeUrl, workingDirectory);
  const [first] = own;
  const isReported = address.scheme !== "jsonl" || first === undefined || state[address.root] !== undefined;
  if (inherit.enabled !== true || isReported) return found;
  const paths = own.map(({ path }) => path).join(", ");
  output.note(`Nothing is inherited from ${paths}: the store ${maskSecrets(storeUrl)} holds these sessions already.`);
  const reported = { ...state, [address.root]: answerFor(first, "no") };
  writeInheritState(statePath, reported);
  return { ...found, state: reported };
}

async function ask(
  context: CommandContext,
  store: SessionStore,
  places: readonly ForeignPlace[],
  inheriting: Inheritance,
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
  inheriting: Inheritance,
): Promise<ImportSummary> {
  const { output, signal } = context;
  const [counts, refused] = [{ imported: 0, grown: 0, records: 0 }, [] as string[]];
  const summary = new ImportSummary();
  const sources = inheritPlaces(context, store, places, inheriting, {
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
  output.clearProgress();
  for (const text of refused) output.note(text);
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
