import {
  findInheritance,
  isFirstTime,
  isSourceNamed,
  type InheritedPlaces,
  openInheritance,
  openProgramSync,
} from "@throughline/agent/internal";
import { parseStoreUrl, sessionSettings } from "@throughline/config";
import { maskSecrets } from "@throughline/config/internal";
import type { SessionStore } from "@throughline/core";
import { causeText } from "@throughline/core/internal";
import type { SourceSync } from "@throughline/transfer/internal";
import type { CommandContext } from "../command.ts";
import { counted } from "../counted.ts";
import { ImportSummary } from "../import-summary.ts";
import { limitYoungHeap } from "../sync/limit-young-heap.ts";
import { askForSync, isConfirmed, surveyText, undecidedPrograms } from "../sync/sync-question.ts";
import { SyncProgress } from "../sync/sync-progress.ts";

/**
 * Imports the sessions of other programs before a conversation. If `session.inherit.enabled` is true, those of its source
 * are imported without a question; if false, no location is read. Otherwise a person on a terminal is asked once about
 * all programs. Without a terminal, an empty store prints one line. The other program's files are never changed.
 */
export async function offerImport(
  context: CommandContext,
  open: () => Promise<SessionStore>,
  { canAsk }: { readonly canAsk: boolean },
): Promise<void> {
  const { enabled } = sessionSettings(context.config).inherit;
  if (enabled === true) return importAll(context, await open(), await inheritedPlaces(context));
  if (enabled === false) return;
  // A user who configures a source means only that source.
  if (isSourceNamed(context.config)) return offerSource(context, open, canAsk);
  // A script does not wait for a search each time. It is told about OpenClaw only, whose sessions `chat` continues.
  if (!canAsk && !(await isEmpty(context, await open()))) return;
  const surveys = await undecidedPrograms(context, canAsk ? null : new Set(["openclaw"]));
  if (surveys === null) return;
  if (canAsk) {
    if (!(await askForSync(context, surveys))) return;
    const store = await open();
    await using sync = openProgramSync(context, {}, syncOptions(context, store));
    const summary = await importFrom(context, sync);
    if (summary.imported > 0) await summary.printCommands(context, store);
    return;
  }
  context.output.note(
    `There are sessions of another program: ${surveyText(surveys)}. \`throughline sync\` imports them.`,
  );
}

async function isEmpty({ signal }: CommandContext, store: SessionStore): Promise<boolean> {
  const { sessions } = await store.list({ state: "any", limit: 1, signal });
  return sessions.length === 0;
}

/** Asks once about the configured source. */
async function offerSource(context: CommandContext, open: () => Promise<SessionStore>, canAsk: boolean): Promise<void> {
  const places = await inheritedPlaces(context);
  const where = places.fresh.join(", ");
  if (where === "") return;
  if (canAsk) {
    if (!isFirstTime(context, `asked about ${where}`)) return;
    const question = `There are sessions in ${where}. Import them? Files stay unchanged.`;
    if (await isConfirmed(context, question)) await importAll(context, await open(), places);
    return;
  }
  if (await isEmpty(context, await open()))
    context.output.note(`There are sessions in ${where}. \`throughline import PATH\` imports them.`);
}

/**
 * Asks a person whose first command looks for sessions whether those of other programs are imported, so that the command
 * finds them. The store is made by the import only.
 */
export async function offerFirstImport(context: CommandContext, open: () => Promise<SessionStore>): Promise<void> {
  let store: SessionStore | null = null;
  try {
    await offerImport(context, async () => (store ??= await open()), { canAsk: true });
  } finally {
    await (store as SessionStore | null)?.close();
  }
}

/**
 * Imports new sessions before a command other than `chat` opens the store, if `session.inherit.enabled` is true. The
 * setting is the consent, so no question is asked. A failure is printed, and the command continues with the store's
 * sessions.
 */
export async function importInherited(context: CommandContext, open: () => Promise<SessionStore>): Promise<void> {
  const places = await inheritedPlaces(context);
  if (places.fresh.length === 0) return;
  try {
    await using store = await open();
    await importAll(context, store, places);
  } catch (error) {
    if (context.signal.aborted) throw error;
    context.output.note(`The sessions in ${places.fresh.join(", ")} were not imported: ${causeText(error)}`);
  }
}

/**
 * Finds what the setting names. It prints once for a JSON Lines store that its own folders are not read. The file of a
 * SQLite store stays silent, because stores and other programs share documented locations.
 */
async function inheritedPlaces(context: CommandContext): Promise<InheritedPlaces> {
  const places = await findInheritance(context);
  const { output, storeUrl, workingDirectory } = context;
  const own = parseStoreUrl(storeUrl, workingDirectory).scheme === "jsonl" ? places.own.join(", ") : "";
  if (own !== "" && isFirstTime(context, `inherits nothing: ${maskSecrets(storeUrl)}`))
    output.note(`Nothing is inherited from ${own}: the store ${maskSecrets(storeUrl)} holds these sessions already.`);
  return places;
}

async function importAll(context: CommandContext, store: SessionStore, places: InheritedPlaces): Promise<void> {
  if (places.fresh.length === 0) return;
  await using sync = openInheritance(context, store, places, syncOptions(context, store));
  await importFrom(context, sync);
}

function syncOptions(context: CommandContext, store: SessionStore): Parameters<typeof openProgramSync>[2] {
  return {
    openStore: () => Promise.resolve(store),
    onNote: (message) => context.output.note(message),
    progress: new SyncProgress(context),
  };
}

/** Imports what is new, and prints one line if there is something. Its progress needs the terminal. */
function importFrom(context: CommandContext, sync: SourceSync): Promise<ImportSummary> {
  return context.output.apart(() => importNew(context, sync));
}

async function importNew(context: CommandContext, sync: SourceSync): Promise<ImportSummary> {
  limitYoungHeap();
  const { output, signal, storeUrl } = context;
  const counts = { imported: 0, grown: 0, records: 0 };
  const refused: string[] = [];
  const summary = new ImportSummary();
  for await (const source of sync.pass(signal)) {
    const { state, records, path, error } = source;
    summary.take(source);
    if (state === "imported" || state === "grown") counts[state] += 1;
    counts.records += records;
    if (error !== null) refused.push(`${path}: ${error.message}`);
  }
  output.clearProgress();
  for (const text of refused) output.note(text);
  if (counts.imported + counts.grown + refused.length === 0) return summary;
  const grown = counts.grown === 0 ? "" : `, ${counted(counts.grown, "session")} grown`;
  const programs = summary.imported === 0 ? "" : ` (${summary.programs})`;
  const also = refused.length === 0 ? "" : `; ${refused.length} refused`;
  output.note(
    `Imported ${counted(counts.imported, "session")}${grown}, ${counted(counts.records, "record")}${programs}, into ${maskSecrets(storeUrl)}${also}.`,
  );
  return summary;
}
