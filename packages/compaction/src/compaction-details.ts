/** Names the sources of a summary, best first. */
export type SummarySource = "checkpoint" | "model" | "older-checkpoint" | "extractive" | "stub";

/** Holds details that rules extract from the conversation, without a model. Each list is ranked, best first. */
export interface ExtractedDetails {
  /** Lists every path that the conversation named. */
  readonly paths: readonly string[];
  /** Lists files that tools read, without files that tools also changed. */
  readonly readFiles: readonly string[];
  /** Lists files that tools wrote or edited. */
  readonly modifiedFiles: readonly string[];
  /** Lists names of functions, types and variables. */
  readonly symbols: readonly string[];
  /** Lists commands that tools ran. */
  readonly commands: readonly string[];
  /** Lists ids, addresses, hashes, versions and ticket numbers. */
  readonly identifiers: readonly string[];
  /** Lists short texts in quotation marks or backticks. */
  readonly quoted: readonly string[];
  /** Lists sentences in which the user demanded or excluded something. */
  readonly constraints: readonly string[];
  /** Holds the user's first request, shortened; null when the user sent no message. */
  readonly firstRequest: string | null;
  /** Lists files under the memory folder that were written since the previous compaction. */
  readonly memoryFiles: readonly string[];
}

/** Holds the `details` of a compaction record that Throughline wrote. */
export interface CompactionDetails extends ExtractedDetails {
  readonly v: 1;
  /** States which source the summary came from. */
  readonly source: SummarySource;
  /** Names the summarizer that wrote the summary; null for a stub. */
  readonly provider: string | null;
  /** Is true when no model wrote the summary, or when it may repeat redacted text. A retry then rewrites it. */
  readonly needsRetry: boolean;
  /** Holds the sequence number of the first message that the summary replaces. */
  readonly summarizedFromSeq: number;
  /** Holds the sequence number of the last message that the summary replaces. */
  readonly summarizedToSeq: number;
  /** Holds the id of the compaction whose summary this one continues; null for the first compaction. */
  readonly previousSummaryId: string | null;
  /** Counts the calls for the summary and their tokens by kind. Absent when no provider stated any. */
  readonly usage?: SummaryUsage;
}

/** Holds `calls`, `input`, `output`, `cacheRead` and `cacheWrite`, as far as the provider states them. */
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

/** Holds the range that another program's compaction replaced. Its record does not state the range, so the log does. */
export type SummarizedRange = Pick<CompactionDetails, "summarizedFromSeq" | "summarizedToSeq" | "previousSummaryId">;

/**
 * Reads the details of a compaction record; null when they are unreadable. A record of GoClaw states only whether its
 * summary needs a retry. The range from the log completes it.
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
  // `fromEntries` loses the key names in its type; `lists` holds exactly the lists of the interface.
  const nothing = Object.fromEntries(lists.map((list) => [list, []])) as unknown as ExtractedDetails;
  const source = needsRetry ? "stub" : "model";
  return { ...nothing, firstRequest: null, v: 1, source, provider: null, needsRetry, ...range };
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
