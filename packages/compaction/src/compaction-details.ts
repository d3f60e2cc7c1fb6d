/** Where a summary came from, best first. */
export type SummarySource = "checkpoint" | "model" | "older-checkpoint" | "extractive" | "stub";

/** What is taken from the conversation without a model. Lists are ranked, best first. */
export interface ExtractedDetails {
  /** Every path that was named, ranked. */
  readonly paths: readonly string[];
  /** Of tools that read, without those that were changed too. */
  readonly readFiles: readonly string[];
  /** Paths of files that tools wrote or edited. */
  readonly modifiedFiles: readonly string[];
  /** Names of functions, types and variables. */
  readonly symbols: readonly string[];
  /** Commands that tools ran. */
  readonly commands: readonly string[];
  /** Ids, addresses, hashes, versions and ticket numbers. */
  readonly identifiers: readonly string[];
  /** Short texts that stood in quotation marks or backticks. */
  readonly quoted: readonly string[];
  /** What the user asked for or ruled out, in their words. */
  readonly constraints: readonly string[];
  /** What the user asked for first, shortened; null when the user said nothing. */
  readonly firstRequest: string | null;
  /** Files under the memory folder that were written since the compaction before. */
  readonly memoryFiles: readonly string[];
}

/** The `details` of a compaction record of ours. */
export interface CompactionDetails extends ExtractedDetails {
  readonly v: 1;
  /** Where the summary came from. */
  readonly source: SummarySource;
  /** Who wrote the summary, as its summarizer calls itself; null for a stub. */
  readonly provider: string | null;
  /** No model wrote the summary: it is to be made again. */
  readonly needsRetry: boolean;
  /** The sequence number of the first message that the summary replaces. */
  readonly summarizedFromSeq: number;
  /** The sequence number of the last message that the summary replaces. */
  readonly summarizedToSeq: number;
  /** The compaction whose summary this one builds on. */
  readonly previousSummaryId: string | null;
  /** What the calls for the summary cost: their number, and their tokens by kind. Absent where no provider stated any. */
  readonly usage?: SummaryUsage;
}

/** `calls`, `input`, `output`, `cacheRead` and `cacheWrite`, as far as the provider states them. */
export type SummaryUsage = Readonly<Record<string, number>>;

const lists = [
  "paths",
  "readFiles",
  "modifiedFiles",
  "symbols",
  "commands",
  "identifiers",
  "quoted",
  "constraints",
  "memoryFiles",
] as const;

/** What a compaction of another program replaced, as its place in the log says. */
export type SummarizedRange = Pick<CompactionDetails, "summarizedFromSeq" | "summarizedToSeq" | "previousSummaryId">;

/**
 * The details of a compaction record; null when they cannot be read. A compaction of GoClaw says no more than whether its
 * summary is to be made again: with the range that it replaced, it is one like ours.
 */
export function readCompactionDetails(
  details: unknown,
  range: () => SummarizedRange | null = () => null,
): CompactionDetails | null {
  if (typeof details !== "object" || details === null) return null;
  const { needsSummaryRetry } = details as { readonly needsSummaryRetry?: unknown };
  if (typeof needsSummaryRetry === "boolean" && !("v" in details)) return foreignDetails(needsSummaryRetry, range());
  const fields = details as Partial<Record<keyof CompactionDetails, unknown>>;
  const isRead =
    fields.v === 1 &&
    typeof fields.source === "string" &&
    typeof fields.needsRetry === "boolean" &&
    Number.isSafeInteger(fields.summarizedFromSeq) &&
    Number.isSafeInteger(fields.summarizedToSeq) &&
    lists.every((list) => isTexts(fields[list]));
  return isRead ? (details as CompactionDetails) : null;
}

function foreignDetails(needsRetry: boolean, range: SummarizedRange | null): CompactionDetails | null {
  if (range === null) return null;
  // `fromEntries` forgets the names; `lists` holds those of the interface.
  const nothing = Object.fromEntries(lists.map((list) => [list, []])) as unknown as ExtractedDetails;
  const source = needsRetry ? "stub" : "model";
  return { ...nothing, firstRequest: null, v: 1, source, provider: null, needsRetry, ...range };
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
