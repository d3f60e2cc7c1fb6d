import {
  assertKnownOptions,
  createFinding,
  optionKinds,
  type OptionTable,
  shellWord,
} from "@throughline/core/internal";
import { basename, dirname } from "node:path";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import type { Finding } from "@throughline/core";
import { createHeadSampler, foreignFileFormat } from "@throughline/foreign-formats/internal";
import { classifySessionFile, inspectIndex, repairTranscript } from "@throughline/openclaw-format/internal";
import { inspectTranscript } from "./inspect-transcript.ts";
import { mergeFindings, needsAttention } from "@throughline/transfer/internal";
import { findTranscriptFiles, namesBeside, readChunks, readText, repairedSuffix } from "./node/transcript-files.ts";
import type { TranscriptFile } from "./node/transcript-files.ts";

/** Reports the copy that a repair wrote of a transcript, or why it wrote none. */
export type TranscriptRepair =
  /** The copy was written. */
  | {
      readonly state: "written";
      /** States the path of the copy. */
      readonly target: string;
    }
  /** A copy exists already. It may come from an older state of the file. */
  | {
      readonly state: "exists";
      /** States the path of the existing copy. */
      readonly target: string;
    }
  /** No record of the file can be read. An empty copy would repair nothing. */
  | { readonly state: "unreadable" }
  /** A newer program wrote the file. */
  | {
      readonly state: "newer";
      /** States the problem with the file's header, as a sentence. */
      readonly message: string;
    };

/** Holds the options of `checkFiles`. */
export interface CheckFilesOptions {
  /**
   * Resolves to the session id that an import would take from the file's name; null when the name states none. May
   * throw PATH_UNSAFE.
   */
  sessionIdOf(path: string): Promise<string | null>;
  /**
   * Writes clean copies of damaged transcripts. Without it, nothing is written. Throws EXPORT_EXISTS when the target
   * exists.
   */
  readonly writeCopy?: (path: string, bytes: AsyncIterable<Uint8Array>) => Promise<unknown>;
  /** Receives the path of each file before its check. */
  readonly onFile?: (path: string) => void;
  /** Ends the check, also within a file. */
  readonly signal: AbortSignal;
}

/** Reports one checked file. */
export interface CheckedFile {
  /** States the path of the file: the given one, or one below it. */
  readonly path: string;
  /** Lists the findings. The findings of a file with a clean copy are marked as repaired. */
  readonly findings: readonly Finding[];
  /** Reports the clean copy; null when none was requested or the file needs none. */
  readonly repair: TranscriptRepair | null;
}

const { callback, required, signal: signalKind } = optionKinds;
const filesTable: OptionTable<CheckFilesOptions> = {
  sessionIdOf: required(callback),
  writeCopy: callback,
  onFile: callback,
  signal: required(signalKind),
};

/**
 * Checks a transcript or an index, or every transcript and index below a folder, one after the other. A file that
 * cannot be read is a finding.
 * @param path an absolute path
 * @throws {ThroughlineError} FILE_NOT_FOUND or FILE_UNREADABLE for the path itself, ABORTED, and any error of writing a
 * copy
 */
export async function* checkFiles(path: string, options: CheckFilesOptions): AsyncGenerator<CheckedFile, void, void> {
  assertKnownOptions<CheckFilesOptions>("checkFiles", options, filesTable);
  const { writeCopy, signal } = options;
  for (const file of findTranscriptFiles(path)) {
    options.onFile?.(file.path);
    const findings = await checkFile(file, options);
    const isOurs = file.kind === "transcript" && !findings.some(({ code }) => code === "TRANSCRIPT_FOREIGN");
    const isWanted = isOurs && needsAttention(findings);
    const repair = writeCopy !== undefined && isWanted ? await repairFile(file.path, writeCopy, signal) : null;
    const isRepaired = repair?.state === "written";
    yield {
      path: file.path,
      findings: isRepaired ? findings.map((finding) => ({ ...finding, repaired: true })) : findings,
      repair,
    };
  }
}

async function checkFile(
  { path, kind }: TranscriptFile,
  { sessionIdOf, signal }: CheckFilesOptions,
): Promise<readonly Finding[]> {
  try {
    if (kind === "index") {
      return inspectIndex(await readText(path), { path, sessionsDir: dirname(path), fileNames: namesBeside(path) });
    }
    const program = await foreignProgram(path);
    if (program !== null) return [foreignFinding(path, program)];
    const sessionId = await statedSessionId(path, sessionIdOf);
    return (await inspectTranscript(readChunks(path), { path, sessionId, signal })).findings;
  } catch (error) {
    // One file that cannot be read must not hide the findings of the other files.
    if (!ThroughlineError.isInstance(error) || error.code === "ABORTED") throw error;
    return mergeFindings([
      [createFinding(error.code === "FILE_NOT_FOUND" ? error.code : "FILE_UNREADABLE", error.message, { path })],
    ]);
  }
}

async function foreignProgram(path: string): Promise<string | null> {
  const sampler = createHeadSampler();
  for await (const chunk of readChunks(path))
    if (!sampler.push(chunk)) return foreignFileFormat(sampler.sample(path, false))?.program ?? null;
  return foreignFileFormat(sampler.sample(path, true))?.program ?? null;
}

function foreignFinding(path: string, program: string): Finding {
  const remedy = `Import it: \`throughline import ${shellWord(path)}\`. A check reads transcripts of Throughline, OpenClaw and pi only; the file was not changed.`;
  return { ...createFinding("TRANSCRIPT_FOREIGN", `The file is a transcript of ${program}.`, { path }), remedy };
}

/** An import refuses a symbolic link. A check only reads, so it follows a link that the caller named. */
async function statedSessionId(path: string, sessionIdOf: CheckFilesOptions["sessionIdOf"]): Promise<string | null> {
  try {
    return await sessionIdOf(path);
  } catch (error) {
    if (hasErrorCode(error, "PATH_UNSAFE")) return null;
    throw error;
  }
}

async function repairFile(
  path: string,
  writeCopy: NonNullable<CheckFilesOptions["writeCopy"]>,
  signal: AbortSignal,
): Promise<TranscriptRepair> {
  const target = `${path}${repairedSuffix}`;
  const { sessionId } = classifySessionFile(basename(path));
  try {
    const lines = repairTranscript(readChunks(path), { signal, ...(sessionId === null ? {} : { sessionId }) });
    const clean = await withRecord(lines);
    if (clean === null) return { state: "unreadable" };
    await writeCopy(target, clean);
    return { state: "written", target };
  } catch (error) {
    if (hasErrorCode(error, "EXPORT_EXISTS")) return { state: "exists", target };
    if (hasErrorCode(error, "RECORD_FROM_NEWER_VERSION")) return { state: "newer", message: error.message };
    throw error;
  }
}

/** Returns null when the copy would have no record, so that no empty copy is written. */
async function withRecord(
  pieces: AsyncGenerator<Uint8Array, void, void>,
): Promise<AsyncGenerator<Uint8Array, void, void> | null> {
  // A copy is worth writing once its first record exists, which is the third piece after the header and its line feed.
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
