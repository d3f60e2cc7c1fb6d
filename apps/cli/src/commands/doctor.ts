import { dirname } from "node:path";
import { createFinding, hasErrorCode, ThroughlineError } from "@throughline/core";
import type { Finding } from "@throughline/core";
import {
  inspectIndex,
  inspectStore,
  inspectTranscript,
  mergeFindings,
  needsAttention,
  repairTranscript,
} from "@throughline/inspect";
import { classifySessionFile } from "@throughline/openclaw-format";
import { nameSessionId } from "@throughline/transfer";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { createFindingReport } from "../finding-report.ts";
import { findTranscriptFiles, namesBeside, readChunks, readText, repairedSuffix } from "../transcript-files.ts";
import type { TranscriptFile } from "../transcript-files.ts";
import { writeNewFile } from "../write-file.ts";

interface DoctorOptions {
  readonly repair?: boolean;
}

const findingsExitCode = 3;

/** Prints what is wrong with the store, or with files; ends with 3 when somebody should look. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as DoctorOptions;
  const [path] = input.arguments;
  if (path === undefined && options.repair === true) {
    throw usageError(
      "--repair needs a PATH: it writes clean copies of files, and the store repairs itself when it is opened.",
    );
  }
  const report = createFindingReport(context.output);
  const checked =
    path === undefined
      ? await checkStore(context, report.add)
      : await checkFiles(context, path, options.repair === true, report.add);
  await report.close(checked);
  return needsAttention(report.findings) ? findingsExitCode : 0;
}

type Report = (findings: readonly Finding[]) => Promise<void>;

async function checkStore(context: CommandContext, report: Report): Promise<string> {
  const { scope, signal } = context;
  const seen = new Set<string>();
  // What the store notices by itself while it is read comes as an event; its own check may say the same again.
  let noticed: Finding[] = [];
  const store = await context.openStore("read", (finding) => noticed.push(finding));
  const take = async (found: readonly Finding[]): Promise<void> => {
    const fresh = [...noticed, ...found].filter(({ code, path, key, line, recordId, message }) => {
      const identity = JSON.stringify([code, path ?? key, line ?? recordId ?? message]);
      return !seen.has(identity) && seen.add(identity);
    });
    noticed = [];
    await report(fresh);
  };
  const query = { namespace: scope.namespace, ...(scope.isAgentGiven ? { agentId: scope.agentId } : {}) };
  for await (const finding of inspectStore(store, { query, signal })) await take([finding]);
  await take([]);
  return "store";
}

async function checkFiles(context: CommandContext, path: string, isRepair: boolean, report: Report): Promise<string> {
  const { host, output, signal } = context;
  const files = findTranscriptFiles(path, host.workingDirectory);
  for (const file of files) {
    output.progress(`checking ${file.path}`);
    const findings = await checkFile(file, signal);
    const isWanted = isRepair && file.kind === "transcript" && needsAttention(findings);
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
    return mergeFindings([[createFinding("FILE_UNREADABLE", error.message, { path })]]);
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

/** Writes the clean copy; false when there is one already, which may be of an older state, or none can be made. */
async function repairFile({ output, signal }: CommandContext, path: string): Promise<boolean> {
  const target = `${path}${repairedSuffix}`;
  const { sessionId } = classifySessionFile(path.split(/[/\\]/).at(-1) ?? "");
  try {
    await writeNewFile(
      target,
      repairTranscript(readChunks(path), { signal, ...(sessionId === null ? {} : { sessionId }) }),
    );
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
