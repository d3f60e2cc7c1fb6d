import { lockSync, openProgramSync, readSyncConsent, surveyPrograms } from "@throughline/agent/internal";
import { hasErrorCode, type SessionStore } from "@throughline/core";
import type { SourceSync } from "@throughline/transfer/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { reportImport } from "../import-report.ts";
import { namedPath } from "../named-path.ts";
import { namedFormat } from "../program-names.ts";
import { reportPasses } from "../sync/report-passes.ts";
import { askForSync, rememberAnswer } from "../sync/sync-question.ts";
import { SyncProgress } from "../sync/sync-progress.ts";

interface SyncOptions {
  readonly watch?: boolean;
  readonly programs?: string;
  readonly dryRun?: boolean;
}

interface SyncRun {
  readonly context: CommandContext;
  readonly paths: readonly string[];
  readonly formats: ReadonlySet<string> | null;
  readonly options: SyncOptions;
}

const findingsExitCode = 3;
/** Another process that only looks once is done within this time. */
const lockWaitMs = 5000;

/** Exits with 3 when a finding needs attention. To run it is to agree to the import; on a terminal it asks once. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as SyncOptions;
  if (options.watch === true && options.dryRun === true)
    throw usageError("--watch writes; it does not go with --dry-run.");
  const paths = input.arguments.map((path) => namedPath(context.host, path));
  const sync: SyncRun = { context, paths, formats: formatsOf(options.programs), options };
  if (options.dryRun !== true && !(await isAgreed(sync))) return 0;
  const store = await context.openStore("write");
  if (options.dryRun === true) return once(sync, store);
  const release = await locked(sync);
  if (release === null) return context.signal.aborted ? 0 : heldElsewhere(sync, store);
  try {
    return options.watch === true ? await watched(sync, store) : await once(sync, store);
  } finally {
    release();
  }
}

/** @throws {ThroughlineError} USAGE for an unknown name */
function formatsOf(programs: string | undefined): ReadonlySet<string> | null {
  if (programs === undefined) return null;
  const names = programs.split(",").map((name) => name.trim());
  return new Set(names.filter((name) => name !== "").flatMap((name) => namedFormat(name, "--programs")));
}

async function isAgreed({ context, formats }: SyncRun): Promise<boolean> {
  if (readSyncConsent(context) === "yes") return true;
  if (context.canAsk && !context.isYes) {
    const surveys = await surveyPrograms(context, formats);
    if (surveys.length > 0) return askForSync(context, surveys);
  }
  rememberAnswer(context, "yes");
  return true;
}

/** A watch waits for the lock until an interrupt, and takes over from the process that has it. */
async function locked({ context, options }: SyncRun): Promise<(() => void) | null> {
  const { output, signal } = context;
  const onWait = (): void => output.note("Another process syncs this store. This one takes over when it ends.");
  try {
    if (options.watch === true) return await lockSync(context, signal, { onWait });
    return await lockSync(context, AbortSignal.any([signal, AbortSignal.timeout(lockWaitMs)]));
  } catch (error) {
    if (!hasErrorCode(error, "STORE_READ_ONLY", "STORE_IO", "PATH_UNSAFE", "STORE_UNSUPPORTED")) throw error;
    // Two processes that sync at once cost time and double nothing.
    output.note(`No lock can be taken in the home: ${error.message}`);
    return () => {};
  }
}

/** The process with the lock reads the places of programs. It does not know the paths that were named here. */
async function heldElsewhere(sync: SyncRun, store: SessionStore): Promise<number> {
  const { context, paths } = sync;
  context.output.note("Another process syncs this store, and takes what is new within seconds.");
  return once({ ...sync, formats: new Set(), paths }, store);
}

function open(run: SyncRun, store: SessionStore): SourceSync {
  const { context, paths, formats, options } = run;
  return openProgramSync(
    context,
    { paths, formats, dryRun: options.dryRun === true },
    {
      openStore: () => Promise.resolve(store),
      onNote: (message) => context.output.note(message),
      progress: new SyncProgress(context),
    },
  );
}

async function once(run: SyncRun, store: SessionStore): Promise<number> {
  const { context, options } = run;
  await using sync = open(run, store);
  const isDryRun = options.dryRun === true;
  const { summary, isOdd } = await reportImport(context, store, sync.pass(context.signal), {
    kind: "sync",
    shown: "all",
    isDryRun,
    reported: new Set(),
    unopened: () => sync.unchanged,
  });
  if (!isDryRun) await summary.print(context, store);
  return isOdd ? findingsExitCode : 0;
}

async function watched(run: SyncRun, store: SessionStore): Promise<number> {
  await using sync = open(run, store);
  await reportPasses(run.context, store, sync, { kind: "sync", watched: "the sessions of every program" });
  return 0;
}
