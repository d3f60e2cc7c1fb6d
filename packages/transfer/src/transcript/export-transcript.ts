import type { ReadOptions, SessionRef, SessionState, SessionStore, StoredRecord } from "@throughline/core";
import {
  assertKnownOptions,
  createWorkSlices,
  givenName,
  loadExisting,
  refused,
  runInSlices,
  sessionRow,
  systemClock,
} from "@throughline/core/internal";
import { foreignFormats } from "@throughline/foreign-formats";
import type { ForeignFormatName } from "@throughline/foreign-formats/internal";
import { promptText } from "@throughline/history/internal";
import {
  callPlace,
  ChapterFinder,
  createHtmlPrinter,
  createMarkdownPrinter,
  type FileFacts,
  type ListedChapter,
  type ReplacedSecrets,
  type RowOptions,
  type TranscriptPrinter,
  type TranscriptRow,
  TranscriptRows,
} from "@throughline/transcript-view/internal";
import { OffBranch } from "./off-branch.ts";
import { ownPatterns } from "./own-rules.ts";
import { SecretScan } from "./secret-scan.ts";
import { type FoundAgent, SubAgents } from "./sub-agents.ts";
import { partNames, transcriptFileName, type TranscriptOptions, transcriptTable } from "./transcript-options.ts";

/** Describes the files of a transcript before they are written. */
interface TranscriptExport {
  /** Holds the state that the files show. */
  readonly state: SessionState;
  /** Lists the names of the files, in order. */
  readonly fileNames: readonly string[];
  /** Counts the records of each file. */
  readonly records: readonly number[];
  /** Counts what the secret scan found, by kind; null when it is off. */
  readonly replaced: readonly ReplacedSecrets[] | null;
  /** Writes a file, in pieces. @param part from 1 @throws {ThroughlineError} INPUT_INVALID for a file that is none */
  file(part: number): AsyncGenerator<Uint8Array, void, void>;
}

const usualRecordsPerFile = 5000;

/**
 * Reads a session for a transcript that people read, as HTML or Markdown: its chapters, its branches and its secrets. The
 * returned `file` reads the records a second time and writes them. Memory does not grow with the session but by its
 * prompts and secrets.
 *
 * @throws {ThroughlineError} SESSION_NOT_FOUND, ABORTED; INPUT_INVALID also for a pattern that has no linear form
 * @example
 * const { file, fileNames } = await exportTranscript(store, ref, { to: "html" });
 * for await (const piece of file(1)) process.stdout.write(piece);
 */
export async function exportTranscript(
  store: SessionStore,
  ref: SessionRef,
  options: TranscriptOptions,
): Promise<TranscriptExport> {
  assertKnownOptions<TranscriptOptions>("exportTranscript", options, transcriptTable);
  const { patterns = [], redact = true, home = "", clock = systemClock } = options;
  const state = await loadExisting(store, ref);
  const scan = redact || patterns.length > 0 ? await SecretScan.create(ownPatterns(patterns), home, redact) : null;
  const branch = await OffBranch.find(store, ref, state.head, options.signal);
  // A call is not shown at the level of words, and so is none of what it started.
  const agents = options.level === "words" ? null : await SubAgents.find(store, state, options.signal);
  const survey = await surveyRecords(store, state, { scan, agents }, options);
  await agents?.place(scan);
  const nowMs = clock.nowMs();
  const shown = factsOf(state, survey, scan, nowMs);
  const first = options.fileName ?? transcriptFileName(shown.name, state, options.to, nowMs);
  const fileNames = partNames(first, survey.parts.length);
  const facts = {
    ...shown,
    level: options.level ?? "compact",
    replaced: redact ? (scan?.counts ?? []) : null,
    agents: agents?.counts ?? null,
    chapters: survey.chapters,
    fileNames,
  };
  return {
    state,
    fileNames,
    records: survey.parts.map(({ records }) => records),
    replaced: facts.replaced,
    file(part) {
      if (survey.parts[part - 1] === undefined)
        throw refused("INPUT_INVALID", `The files of this transcript are 1 to ${survey.parts.length}, not ${part}.`, {
          argument: "part",
        });
      return filePieces({ store, state, scan, agents, branch, options, survey, facts: { ...facts, part } });
    },
  };
}

/** The records of one file. */
interface Part {
  readonly fromSeq: number;
  toSeq: number;
  records: number;
}

interface Survey {
  readonly parts: readonly Part[];
  readonly chapters: readonly ListedChapter[];
}

/** Reads every record once: what it counts and finds stands at the top of the first file. */
async function surveyRecords(
  store: SessionStore,
  { ref, head, entry }: SessionState,
  { scan, agents }: Pick<FilePlan, "scan" | "agents">,
  { recordsPerFile = usualRecordsPerFile, signal }: TranscriptOptions,
): Promise<Survey> {
  const finder = new ChapterFinder({ promptText });
  const parts: Part[] = [{ fromSeq: 1, toSeq: head.lastSeq, records: 0 }];
  const partOfChapter: number[] = [];
  const slices = createWorkSlices();
  await scan?.find([{ seq: 0, value: { ...entry, key: ref.key } }]);
  for await (const { records } of store.read(ref, readOptions(1, head.lastSeq, signal))) {
    await scan?.find(records.filter(({ side }) => !side).map(({ seq, record }) => ({ seq, value: record })));
    for (const stored of records) {
      if (stored.side) continue;
      let part = parts.at(-1) as Part;
      if (part.records >= recordsPerFile) {
        part.toSeq = stored.seq - 1;
        part = { fromSeq: stored.seq, toSeq: head.lastSeq, records: 0 };
        parts.push(part);
      }
      part.records += 1;
      agents?.take(stored);
      finder.take(scan === null ? stored : { ...stored, record: scan.replaced(stored.seq, stored.record) });
      while (partOfChapter.length < finder.chapters.length) partOfChapter.push(parts.length);
      await (scan === null ? slices.next() : scan.pause());
    }
  }
  const chapters = finder.chapters.map((chapter, index) => ({ ...chapter, part: partOfChapter[index] ?? 1 }));
  return { parts, chapters };
}

/** Records that were appended meanwhile are not read. */
function readOptions(fromSeq: number, toSeq: number, signal: AbortSignal | undefined): ReadOptions {
  return { afterSeq: fromSeq - 1, beforeSeq: toSeq + 1, signal };
}

type SessionFacts = Omit<FileFacts, "agents" | "chapters" | "fileNames" | "level" | "part" | "replaced">;

function factsOf(
  state: SessionState,
  { chapters }: Survey,
  scan: SecretScan | null,
  exportedAtMs: number,
): SessionFacts {
  const { program, cwd, key, sessionId, model, createdAtMs, updatedAtMs, ...row } = sessionRow(state);
  const name = givenName(state.entry) ?? chapters[0]?.title ?? row.name;
  const texts = { name, program: programName(program), folder: cwd, key, sessionId, model };
  const { messageCount: messages, head } = state;
  const shown = scan === null ? texts : scan.replaced(0, texts);
  return { ...shown, createdAtMs, updatedAtMs, exportedAtMs, messages, records: head.lastSeq };
}

function programName(format: string | null): string | null {
  return format === null ? null : (foreignFormats.get(format as ForeignFormatName)?.program ?? format);
}

interface FilePlan {
  readonly store: SessionStore;
  readonly state: SessionState;
  readonly scan: SecretScan | null;
  readonly agents: SubAgents | null;
  readonly branch: OffBranch;
  readonly options: TranscriptOptions;
  readonly survey: Survey;
  readonly facts: FileFacts;
}

const pieceCharacters = 64 * 1024;

async function* filePieces(plan: FilePlan): AsyncGenerator<Uint8Array, void, void> {
  const slices = createWorkSlices();
  let piece = "";
  for await (const texts of printed(plan)) {
    for (const text of texts) {
      piece += text;
      if (piece.length >= pieceCharacters) {
        yield Buffer.from(piece);
        piece = "";
      }
      await slices.next();
    }
  }
  if (piece !== "") yield Buffer.from(piece);
}

async function* printed(plan: FilePlan): AsyncGenerator<Iterable<string>, void, void> {
  const { facts, options, survey } = plan;
  const printer: TranscriptPrinter = options.to === "html" ? createHtmlPrinter(facts) : createMarkdownPrinter(facts);
  const rowOptions = rowOptionsOf(facts.level, facts.folder, options);
  const rows = new TranscriptRows(rowOptions, survey.chapters.filter(({ part }) => part < facts.part).length);
  yield printer.head();
  for await (const stored of recordsOf(plan))
    yield* printedRows(plan, printer, await runInSlices(rows.take(stored, plan.branch.has(stored.seq))));
  yield* printedRows(plan, printer, await runInSlices(rows.finish()));
  yield printer.foot();
}

async function* recordsOf({
  store,
  state,
  scan,
  options,
  survey,
  facts,
}: FilePlan): AsyncGenerator<StoredRecord, void, void> {
  const part = survey.parts[facts.part - 1];
  if (part === undefined) return;
  for await (const { records } of store.read(state.ref, readOptions(part.fromSeq, part.toSeq, options.signal)))
    for (const stored of records)
      if (!stored.side) yield scan === null ? stored : { ...stored, record: scan.replaced(stored.seq, stored.record) };
}

/** Behind the row of a call come the sub-agents that it started. */
async function* printedRows(
  plan: FilePlan,
  printer: TranscriptPrinter,
  rows: readonly TranscriptRow[],
): AsyncGenerator<Iterable<string>, void, void> {
  for (const row of rows) {
    yield printer.row(row);
    if (row.callId === null || plan.agents === null) continue;
    for (const agent of plan.agents.at(callPlace(row.seq, row.callId)))
      yield* printedAgent(plan, printer, agent, row.isOffBranch);
  }
}

async function* printedAgent(
  { agents, scan, facts, options }: FilePlan,
  printer: TranscriptPrinter,
  agent: FoundAgent,
  isOffBranch: boolean,
): AsyncGenerator<Iterable<string>, void, void> {
  if (agents === null) return;
  const printed = scan === null ? agent.printed : scan.replaced(agent.scanSeq, agent.printed);
  const rows = new TranscriptRows(rowOptionsOf(facts.level, agent.folder, options));
  const withoutChapters = function* (made: readonly TranscriptRow[]): Generator<string, void, void> {
    for (const row of made) yield* printer.row({ ...row, chapter: null });
  };
  yield printer.startAgent(printed);
  for await (const stored of agents.records(agent, scan))
    yield withoutChapters(await runInSlices(rows.take(stored, isOffBranch)));
  yield withoutChapters(await runInSlices(rows.finish()));
  yield printer.endAgent(printed);
}

function rowOptionsOf(
  level: RowOptions["level"],
  folder: string | null,
  { images }: Pick<TranscriptOptions, "images">,
): RowOptions {
  return { level, hasImages: images === true, folder, promptText };
}
