import { join } from "node:path";
import { transcriptFileNameOf } from "@throughline/openclaw-format/internal";
import { exportAll, ExportLosses, exportToFile } from "@throughline/transfer/internal";
import { exportSession } from "@throughline/transfer";
import type { ExportedFile, ExportFormat, ExportRemark, TranscriptFormat } from "@throughline/transfer/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { damageOf } from "../damaged-session.ts";
import { usageError } from "../error-report.ts";
import { lossTexts } from "../export-losses.ts";
import {
  exportTranscriptFiles,
  isTranscript,
  type TranscriptChoices,
  transcriptFlags,
} from "../export-transcript-files.ts";
import { namedPath } from "../named-path.ts";
import { isFolder } from "@throughline/config/internal";
import { resolveSession } from "@throughline/core/internal";

interface ExportOptions extends TranscriptChoices {
  readonly all?: boolean;
  readonly to?: ExportFormat | TranscriptFormat;
  readonly output?: string;
  readonly content?: boolean;
  readonly allAgents?: boolean;
  readonly archived?: boolean;
}

const findingsExitCode = 3;

/** Overwrites no existing file. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as ExportOptions;
  const [key] = input.arguments;
  const { host, output, scope, signal } = context;
  const { to = "jsonl" } = options;
  if (isTranscript(to)) return exportTranscriptFiles(context, key, { ...options, to });
  const [flag] = transcriptFlags(options);
  if (flag !== undefined) throw usageError(`${flag} is for --to html and --to markdown.`);
  if ((key === undefined) === (options.all !== true)) throw usageError("export takes either a KEY or --all.");
  if (options.all === true && options.output === undefined) throw usageError("--all needs a directory: -o DIR.");
  const includeContent = options.content === true;
  if (includeContent && to !== "otlp-json") throw usageError("--content is for --to otlp-json.");
  const { workingDirectory } = host;
  const store = await context.openStore("read");
  const target = options.output === undefined ? null : namedPath(host, options.output);
  if (key === undefined) {
    const query = { namespace: scope.namespace, ...(options.allAgents === true ? {} : { agentId: scope.agentId }) };
    const files = exportAll(store, target ?? "", {
      to,
      signal,
      workingDirectory,
      includeContent,
      archived: options.archived === true,
      ...query,
    });
    return printFiles(context, files, to);
  }
  const state = await resolveSession(store, key, scope, { signal });
  if (target !== null) {
    const path = isFolder(target)
      ? join(target, transcriptFileNameOf({ sessionId: state.sessionId, key: state.ref.key }))
      : target;
    return printFiles(
      context,
      [await exportToFile(store, state.ref, path, { to, signal, workingDirectory, includeContent })],
      to,
    );
  }
  // A transcript may contain terminal control sequences, and an exact export must not change them.
  if (output.isTerminal)
    throw usageError("An export is not written to a terminal; name a file with -o or redirect it.");
  const losses = new ExportLosses();
  const onRemark = (remark: ExportRemark): void => {
    if (!losses.take(remark)) output.note(remarkText(remark));
  };
  for await (const chunk of exportSession(store, state.ref, { to, signal, workingDirectory, includeContent, onRemark }))
    await output.bytes(chunk);
  for (const text of lossTexts(losses)) output.note(text);
  return losses.isConversationLeftOut ? findingsExitCode : 0;
}

async function printFiles(
  { output }: CommandContext,
  files: AsyncIterable<ExportedFile> | Iterable<ExportedFile>,
  format: ExportFormat,
): Promise<number> {
  let count = 0;
  let isIncomplete = false;
  for await (const { path, key, sessionId, records, sizeBytes, remarks, error } of files) {
    if (error !== null) {
      isIncomplete = true;
      const damage = damageOf(error, key ?? "");
      if (damage !== null) output.finding(damage);
      else output.note(`${key}: ${error.message}`);
      continue;
    }
    count += 1;
    const losses = new ExportLosses();
    for (const remark of remarks) if (!losses.take(remark)) output.note(`${path}: ${remarkText(remark)}`);
    for (const text of lossTexts(losses)) output.note(`${path}: ${text}`);
    isIncomplete ||= losses.isConversationLeftOut;
    if (output.isJson) await output.object({ kind: "export", key, sessionId, format, path, records, sizeBytes });
    else await output.line(`${path}\t${key ?? "index"}\t${counted(records, "record")}\t${counted(sizeBytes, "byte")}`);
    await output.flush();
  }
  if (output.isJson) await output.end(count);
  return isIncomplete ? findingsExitCode : 0;
}

function remarkText({ seq, id, what, reason }: ExportRemark): string {
  return `${what}: ${seq === null ? "" : `record ${seq} (${id}): `}${reason}`;
}
