import { basename, dirname, join } from "node:path";
import { isFolder } from "@throughline/config/internal";
import type { SessionRef, SessionStore } from "@throughline/core";
import { listSessions, resolveSession, sessionRow, systemRandom } from "@throughline/core/internal";
import { exportTranscript } from "@throughline/transfer";
import {
  assertNoFile,
  type ExportFormat,
  type TranscriptFormat,
  transcriptFormats,
  writeNewFile,
} from "@throughline/transfer/internal";
import { scanText, type TranscriptLevel } from "@throughline/transcript-view/internal";
import type { CommandContext } from "./command.ts";
import { counted } from "./counted.ts";
import { usageError } from "./error-report.ts";
import { namedPath } from "./named-path.ts";
import { openInBrowser } from "./page/open-in-browser.ts";
import { rowFilter } from "./session-filter.ts";

/** Holds the options of `export` that are for `html` and `markdown`. */
export interface TranscriptChoices {
  readonly output?: string;
  readonly all?: boolean;
  readonly latest?: boolean;
  readonly here?: boolean;
  readonly open?: boolean;
  readonly level?: TranscriptLevel;
  readonly redact?: "on" | "off";
  readonly redactPattern?: readonly string[];
  readonly images?: boolean;
}

export function isTranscript(format: ExportFormat | TranscriptFormat): format is TranscriptFormat {
  return (transcriptFormats as readonly string[]).includes(format);
}

/** Returns the given options that no other format has, as a person types them. */
export function transcriptFlags(choices: TranscriptChoices): readonly string[] {
  const { latest, here, open, level, redact, redactPattern, images } = choices;
  const given = {
    "--latest": latest,
    "--here": here,
    "--open": open,
    "--level": level,
    "--redact": redact,
    "--redact-pattern": redactPattern,
    "--images": images,
  };
  return Object.entries(given).flatMap(([flag, value]) => (value === undefined || value === false ? [] : [flag]));
}

/** Writes a session as files for people. Overwrites no existing file. */
export async function exportTranscriptFiles(
  context: CommandContext,
  key: string | undefined,
  choices: TranscriptChoices & { readonly to: TranscriptFormat },
): Promise<number> {
  const { host, output, signal } = context;
  assertOneSession(key, choices);
  const { to, level, redact = "on", redactPattern: patterns = [], images = false } = choices;
  const store = await context.openStore("read");
  const ref = await chosenSession(context, store, key, choices);
  const target = choices.output === undefined ? host.workingDirectory : namedPath(host, choices.output);
  const isNamed = choices.output !== undefined && !isFolder(target);
  const transcript = await exportTranscript(store, ref, {
    to,
    redact: redact === "on",
    patterns,
    images,
    home: host.userHome,
    signal,
    ...(level === undefined ? {} : { level }),
    ...(isNamed ? { fileName: basename(target) } : {}),
  });
  const folder = isNamed ? dirname(target) : target;
  const paths = transcript.fileNames.map((name) => join(folder, name));
  for (const path of paths) await assertNoFile(path);
  output.note(scanText(transcript));
  const { sessionId } = transcript.state;
  for (const [index, path] of paths.entries()) {
    const records = transcript.records[index] ?? 0;
    const { sizeBytes } = await writeNewFile(path, transcript.file(index + 1), systemRandom);
    if (output.isJson) {
      const { replaced } = transcript;
      await output.object({ kind: "export", key: ref.key, sessionId, format: to, path, records, sizeBytes, replaced });
    } else await output.line(`${path}\t${ref.key}\t${counted(records, "record")}\t${counted(sizeBytes, "byte")}`);
    await output.flush();
  }
  if (output.isJson) await output.end(paths.length);
  if (choices.open === true) await openFile(context, paths[0] ?? "");
  return 0;
}

/** @throws {ThroughlineError} USAGE unless the options name one session */
function assertOneSession(
  key: string | undefined,
  { all, latest, here, to }: TranscriptChoices & { to: string },
): void {
  if (all === true) throw usageError(`--to ${to} writes one session: give a KEY or --latest in place of --all.`);
  if ((key === undefined) === (latest !== true)) throw usageError(`--to ${to} takes either a KEY or --latest.`);
  if (here === true && latest !== true) throw usageError("--here is for --latest.");
}

async function chosenSession(
  { host, scope, signal }: CommandContext,
  store: SessionStore,
  key: string | undefined,
  { here }: TranscriptChoices,
): Promise<SessionRef> {
  if (key !== undefined) return (await resolveSession(store, key, scope, { signal })).ref;
  const isWanted = rowFilter(host, here === true ? { here } : {});
  const { namespace, agentId } = scope;
  for await (const state of listSessions(store, { namespace, agentId, sort: "updated", signal })) {
    const row = sessionRow(state);
    // A session that another one started is a part of that one's work, and a page without messages shows nothing.
    if (row.spawnedBy === null && row.messageCount > 0 && isWanted(row)) return state.ref;
  }
  throw usageError(
    here === true
      ? "This folder has no session with messages. `throughline sessions` lists those of every folder."
      : "The store has no session with messages. `throughline sync` imports those of other programs.",
  );
}

/** The file is written, and a person can open it by its path. */
async function openFile(context: CommandContext, path: string): Promise<void> {
  const problem = await openInBrowser(context, path);
  if (problem !== null) context.output.note(`${problem}. Open the file in a browser: ${path}`);
}
