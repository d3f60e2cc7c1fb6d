import { dirname } from "node:path";
import { createFinding, hasErrorCode, ThroughlineError, shellWord } from "@throughline/core";
import type { Finding, SessionStore } from "@throughline/core";
import { systemRandom } from "@throughline/core/node";
import { inspectIndex, inspectTranscript, mergeFindings, needsAttention, repairTranscript } from "@throughline/inspect";
import { classifySessionFile } from "@throughline/openclaw-format";
import { nameSessionId, writeNewFile } from "@throughline/transfer";
import { checkStore, noteWays } from "../check-store.ts";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { createFindingReport } from "../finding-report.ts";
import { type SqliteFile, foreignDatabaseError, sqliteFileOf } from "@throughline/transfer/foreign";
import { namedPath } from "../named-path.ts";
import { openStore } from "../open-store.ts";
import { parseStoreUrl } from "@throughline/config/store-url";
import { findTranscriptFiles, namesBeside, readChunks, readText, repairedSuffix } from "../transcript-files.ts";
import type { TranscriptFile } from "../transcript-files.ts";

interface DoctorOptions {
  readonly repair?: boolean;
}

const findingsExitCode = 3;

/** Prints what is wrong with the store, or with files; ends with 3 when somebody should look. */
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
  } else if (database === null) await report.close(await checkFiles(context, full, isRepair, report.add));
  else {
    unsaved = await checkDatabase(context, { path: full, database, isRepair }, report.add);
    await report.close(database === "headless" && !isRepair ? "file" : "store");
  }
  if (unsaved !== null) throw nothingSaved(unsaved);
  return needsAttention(report.findings) ? findingsExitCode : 0;
}

function nothingSaved(path: string): ThroughlineError {
  return new ThroughlineError("STORE_CORRUPT", `Nothing could be recovered from ${JSON.stringify(path)}.`, {
    details: { path },
    remedy: "No copy was written, and the file is as it was. Put a backup in its place, as the line above says.",
  });
}

type Report = (findings: readonly Finding[]) => Promise<void>;

/** The path of the store where a repair saved nothing of it; else null. */
async function checkOwnStore(context: CommandContext, isRepair: boolean, report: Report): Promise<string | null> {
  const address = parseStoreUrl(context.storeUrl, context.host.workingDirectory);
  const checked = {
    open: (onFinding: (finding: Finding) => void) => context.openStore("read", onFinding),
    path: address.scheme === "sqlite" ? address.path : null,
    isRepair,
    named: "",
  };
  return (await checkStore(context, checked, report)) ? null : checked.path;
}

interface DatabaseToCheck {
  readonly path: string;
  readonly database: SqliteFile;
  readonly isRepair: boolean;
}

/**
 * A database holds no lines: whoever reads it as a transcript finds nothing but what is wrong with that. Gives its path where
 * a repair saved nothing of it; else null.
 */
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
      // It was named to be looked at. That it makes room for a backup is for whoever works with it.
      recover: false,
      onEvent: (event) => {
        if (event.name === "finding") onFinding(event.finding);
      },
    });
    stores.push(store);
    return store;
  };
  try {
    return (await checkStore(context, { open, path, isRepair, named }, report)) ? null : path;
  } finally {
    for (const store of stores) await store.close();
  }
}

async function checkFiles(context: CommandContext, path: string, isRepair: boolean, report: Report): Promise<string> {
  const { host, output, signal } = context;
  const files = findTranscriptFiles(path, host.workingDirectory);
  for (const file of files) {
    output.progress(`checking ${file.path}`);
    const findings = await checkFile(file, signal);
    const isOurs = file.kind === "transcript" && !findings.some(({ code }) => code === "TRANSCRIPT_FOREIGN");
    const isWanted = isRepair && isOurs && needsAttention(findings);
    const isRepaired = isWanted && (await repairFile(context, file.path));
    await report(isRepaired ? findings.map((finding) => ({ ...finding, repaired: true })) : findings);
  }
  return counted(files.length, "file");
}

async function checkFile({ path, kind }: TranscriptFile, signal: AbortSignal): Promise<readonly Finding[]> {
  try {
    if (kind === "index") {
      return inspectIndex(await readText(path), { path, sessionsDir: dirname(path), fileNames: namesBeside(path) });
    }
    const sessionId = await statedSessionId(path);
    return (await inspectTranscript(readChunks(path), { path, sessionId, signal })).findings;
  } catch (error) {
    // One file that cannot be read must not hide what is wrong with the others.
    if (!ThroughlineError.isInstance(error) || error.code === "ABORTED") throw error;
    return mergeFindings([
      [createFinding(error.code === "FILE_NOT_FOUND" ? error.code : "FILE_UNREADABLE", error.message, { path })],
    ]);
  }
}

/** The id an import would take from the file's name. A link that was named is followed here: only reading comes of it. */
async function statedSessionId(path: string): Promise<string | null> {
  try {
    return await nameSessionId(path);
  } catch (error) {
    if (hasErrorCode(error, "PATH_UNSAFE")) return null;
    throw error;
  }
}

/** Writes the clean copy; false when there is one already, which may be of an older state, or there is nothing to put in it. */
async function repairFile({ output, signal }: CommandContext, path: string): Promise<boolean> {
  const target = `${path}${repairedSuffix}`;
  const { sessionId } = classifySessionFile(path.split(/[/\\]/).at(-1) ?? "");
  try {
    const lines = repairTranscript(readChunks(path), { signal, ...(sessionId === null ? {} : { sessionId }) });
    const clean = await beginningOf(lines);
    if (clean === null) {
      output.note(`${path}: no record of it can be read, so there is nothing to write a copy of.`);
      return false;
    }
    await writeNewFile(target, clean, systemRandom);
    output.note(`Wrote ${target}`);
    return true;
  } catch (error) {
    if (!hasErrorCode(error, "EXPORT_EXISTS", "RECORD_FROM_NEWER_VERSION")) throw error;
    output.note(
      error.code === "EXPORT_EXISTS" ? `${target} exists already and was not touched` : `${path}: ${error.message}`,
    );
    return false;
  }
}

/** A copy with a first record in it; null when there would be none: an empty file repairs nothing. */
async function beginningOf(
  pieces: AsyncGenerator<Uint8Array, void, void>,
): Promise<AsyncGenerator<Uint8Array, void, void> | null> {
  // The header, its line feed, and the first record.
  const first: Uint8Array[] = [];
  while (first.length < 3) {
    const { value, done } = await pieces.next();
    if (done === true) return null;
    first.push(value);
  }
  return joined(first, pieces);
}

async function* joined(
  first: readonly Uint8Array[],
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  yield* first;
  yield* rest;
}
