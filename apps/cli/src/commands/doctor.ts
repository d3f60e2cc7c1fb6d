import { openMeaning } from "@throughline/agent/internal";
import { createFinding, shellWord, systemRandom } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import type { Finding, SessionStore } from "@throughline/core";
import { parseStoreUrl } from "@throughline/config";
import { settingOf } from "@throughline/config/internal";
import { checkFiles } from "../doctor/check-files.ts";
import { checkStore } from "../doctor/check-store.ts";
import {
  foreignDatabaseError,
  nameSessionId,
  needsAttention,
  type SqliteFile,
  sqliteFileOf,
  writeNewFile,
} from "@throughline/transfer/internal";
import type { TranscriptRepair } from "../doctor/check-files.ts";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { createFindingReport } from "../finding-report.ts";
import { namedPath } from "../named-path.ts";
import { openStore } from "../open-store.ts";

interface DoctorOptions {
  readonly repair?: boolean;
}

const findingsExitCode = 3;

/** Exits with 3 when a finding needs attention. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as DoctorOptions;
  const [path] = input.arguments;
  const isRepair = options.repair === true;
  const report = createFindingReport(context.output, isRepair ? "doctor --repair" : "doctor");
  const full = path === undefined ? null : namedPath(context.host, path);
  const database = full === null ? null : sqliteFileOf(full);
  let unsaved: string | null = null;
  if (full === null) {
    unsaved = await checkOwnStore(context, isRepair, report.add);
    await report.close("store");
    if (unsaved === null) await noteBackfill(context);
  } else if (database === null) await report.close(await checkNamedFiles(context, full, isRepair, report.add));
  else {
    unsaved = await checkDatabase(context, { path: full, database, isRepair }, report.add);
    await report.close(database === "headless" && !isRepair ? "file" : "store");
  }
  if (unsaved !== null) throw nothingSaved(unsaved);
  return needsAttention(report.findings) ? findingsExitCode : 0;
}

/** States what the vectors that are missing would cost, before they are computed. */
async function noteBackfill(context: CommandContext): Promise<void> {
  const { output, scope, signal } = context;
  if (settingOf(context.settings, "memory.search.embedder") === null) return;
  const onNote = (message: string): void => output.note(message);
  const store = await context.openStore("read");
  const meaning = await openMeaning(context, store, { onNote });
  if (meaning === null) return;
  const { records, tokens } = await meaning.estimate(signal);
  if (records === 0) return;
  onNote(
    `${counted(records, "record")} of agent ${scope.agentId} ${records === 1 ? "has" : "have"} no vectors. Computing them sends about ${tokens} tokens to ${meaning.embedderId}.`,
  );
}

function nothingSaved(path: string): ThroughlineError {
  return new ThroughlineError("STORE_CORRUPT", `Nothing could be recovered from ${JSON.stringify(path)}.`, {
    details: { path },
    remedy: "No copy was written, and the file is as it was. Put a backup in its place, as the line above says.",
  });
}

type Report = (findings: readonly Finding[]) => Promise<void>;

/** Returns the store's path if a repair saved nothing of it; null otherwise. */
async function checkOwnStore(context: CommandContext, isRepair: boolean, report: Report): Promise<string | null> {
  const address = parseStoreUrl(context.storeUrl, context.host.workingDirectory);
  const path = address.scheme === "sqlite" ? address.path : null;
  const checked = {
    open: (onFinding: (finding: Finding) => void) => context.openStore("read", onFinding),
    path,
    folder: address.scheme === "jsonl" ? address.root : null,
    isRepair,
    named: "",
  };
  return (await checkOneStore(context, checked, report)) ? null : path;
}

interface DatabaseToCheck {
  readonly path: string;
  readonly database: SqliteFile;
  readonly isRepair: boolean;
}

/** Returns the database's path if a repair saved nothing of it; null otherwise. */
async function checkDatabase(
  context: CommandContext,
  { path, database, isRepair }: DatabaseToCheck,
  report: Report,
): Promise<string | null> {
  const quoted = JSON.stringify(path);
  if (database === "foreign") throw await foreignDatabaseError("INPUT_INVALID", path);
  if (database === "log")
    throw new ThroughlineError("INPUT_INVALID", `${quoted} is the log of a database, not a database.`, {
      details: { path },
      remedy: `Name the database itself, ${path.replace(/-(wal|journal)$/, "")}.`,
    });
  const named = ` ${shellWord(path)}`;
  if (database === "headless" && !isRepair) {
    const message = `${quoted} does not begin like a database: its first page is lost, and with it what is where.`;
    await report([createFinding("STORE_DAMAGED", message, { path })]);
    noteWays(context, { isRepair, named }, path);
    return null;
  }
  const stores: SessionStore[] = [];
  const open = async (onFinding: (finding: Finding) => void): Promise<SessionStore> => {
    const store = await openStore(`sqlite:${path}`, {
      workingDirectory: context.host.workingDirectory,
      create: false,
      parts: context.storeParts,
      // The user named this file to check it, so a backup must not replace it.
      recover: false,
      onEvent: (event) => {
        if (event.name === "finding") onFinding(event.finding);
      },
    });
    stores.push(store);
    return store;
  };
  try {
    return (await checkOneStore(context, { open, path, folder: null, isRepair, named }, report)) ? null : path;
  } finally {
    for (const store of stores) await store.close();
  }
}

interface StoreToCheck {
  open(onFinding: (finding: Finding) => void): Promise<SessionStore>;
  readonly path: string | null;
  readonly folder: string | null;
  readonly isRepair: boolean;
  /** Holds the path argument with a space before it; empty for the store of `--store`. */
  readonly named: string;
}

/** Returns false if a requested repair saved nothing of a damaged store. */
async function checkOneStore(
  context: CommandContext,
  { named, ...checked }: StoreToCheck,
  onFindings: Report,
): Promise<boolean> {
  const { host, output, scope, signal } = context;
  const { path, isRepair } = checked;
  const { workingDirectory } = host;
  const { isDamaged, isRepairable, isRepairFailed } = await checkStore(
    {
      ...checked,
      openCopy: (copy) =>
        openStore(`sqlite:${copy}`, { workingDirectory, create: false, recover: false, parts: context.storeParts }),
      query: { namespace: scope.namespace, ...(scope.isAgentGiven ? { agentId: scope.agentId } : {}) },
      signal,
    },
    {
      onFindings,
      onCopy: ({ path: copy, sessions, records, notes }) => {
        const missing = notes === 0 ? "" : `, and notes in the place of ${counted(notes, "record")}`;
        output.note(`Wrote ${copy}: ${counted(sessions, "session")}, ${counted(records, "record")}${missing}.`);
        output.note(`\`${restoring(shellWord(copy), path ?? "")}\` puts it in the place of the store, which is kept.`);
      },
      onNoRepair: (name) => output.note(`The ${name} store keeps nothing that could be repaired.`),
    },
  );
  if (isDamaged && path !== null) noteWays(context, { isRepair: isRepair || !isRepairable, named }, path);
  return !isRepairFailed;
}

function noteWays(
  { output }: CommandContext,
  { isRepair, named }: Pick<StoreToCheck, "isRepair" | "named">,
  path: string,
): void {
  if (!isRepair) output.note(`\`throughline doctor --repair${named}\` writes what can be read of it to a new file.`);
  output.note(`\`${restoring("FILE", path)}\` puts a backup in its place and keeps it.`);
}

function restoring(file: string, path: string): string {
  return `throughline restore-backup ${file} --yes --store ${shellWord(`sqlite:${path}`)}`;
}

async function checkNamedFiles(
  { output, signal }: CommandContext,
  path: string,
  isRepair: boolean,
  report: Report,
): Promise<string> {
  let count = 0;
  const checked = checkFiles(path, {
    sessionIdOf: nameSessionId,
    ...(isRepair ? { writeCopy: (target, bytes) => writeNewFile(target, bytes, systemRandom) } : {}),
    onFile: (file) => output.progress(`checking ${file}`),
    signal,
  });
  for await (const { path: file, findings, repair } of checked) {
    count += 1;
    if (repair !== null) output.note(repairText(file, repair));
    await report(findings);
  }
  return counted(count, "file");
}

function repairText(path: string, repair: TranscriptRepair): string {
  if (repair.state === "written") return `Wrote ${repair.target}`;
  if (repair.state === "exists") return `${repair.target} exists already and was not touched`;
  if (repair.state === "newer") return `${path}: ${repair.message}`;
  return `${path}: no record of it can be read, so there is nothing to write a copy of.`;
}
