import type { StoredRecord } from "@throughline/core";

/** The shapes of the answers that the page reads. `docs/http.md` describes every field. */

export interface SessionJson {
  readonly agentId: string;
  readonly key: string;
  readonly sessionId: string;
  readonly name: string;
  readonly program: string | null;
  readonly cwd: string | null;
  readonly forkedFrom: unknown;
  readonly spawnedBy: string | null;
  readonly state: "active" | "archived";
  readonly archiveId: string | null;
  readonly recordCount: number;
  readonly messageCount: number;
  readonly contextTokens: number | null;
  readonly windowTokens: number | null;
  readonly contextPercent: number | null;
  readonly model: string | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly sourceAtMs?: number | null;
  readonly pendingApprovals: number;
  readonly incomplete: string | null;
  readonly firstWords?: string | null;
  readonly head: {
    readonly lastSeq: number;
    readonly headId: string | null;
    readonly turn: { readonly leaseUntilMs: number } | null;
  };
}

export interface ListJson<Item> {
  readonly items: readonly Item[];
  readonly nextCursor: string | null;
  /** Counts the sessions that the server looked at, and those that a filter left out. */
  readonly scanned?: number;
  readonly leftOut?: number;
}

export interface HitJson {
  readonly agentId: string;
  readonly key: string;
  readonly archiveId: string | null;
  readonly sessionId: string;
  readonly seq: number;
  readonly role: string | null;
  readonly tsMs: number | null;
  readonly snippet: string;
  readonly highlights: readonly (readonly [number, number])[];
}

export interface HitGroupJson {
  readonly session: SessionJson;
  readonly hits: readonly HitJson[];
  readonly total: number;
  readonly isTotalExact: boolean;
}

export interface FoundJson<Item> extends ListJson<Item> {
  readonly total?: number;
  readonly isTotalExact?: boolean;
}

export interface OutlineJson {
  readonly sessionId: string;
  readonly lastSeq: number;
  readonly names: {
    readonly type: readonly string[];
    readonly role: readonly string[];
    readonly tool: readonly string[];
  };
  readonly columns: {
    readonly seq: readonly number[];
    readonly parent: readonly (number | null)[];
    readonly type: readonly number[];
    readonly role: readonly (number | null)[];
    readonly tool: readonly (number | null)[];
    readonly side: readonly number[];
    readonly bytes: readonly number[];
    readonly tsMs: readonly (number | null)[];
  };
  readonly nextFromSeq: number | null;
}

export interface RecordJson extends StoredRecord {
  /** Lists the blocks of which a preview holds only the start; null stands for texts beside the content. */
  readonly cut?: readonly { readonly block: number | null; readonly totalBytes: number }[];
}

export interface RecordsJson extends ListJson<RecordJson> {
  readonly lastSeq: number;
  readonly sessionId: string;
  readonly nextSeq: number | null;
}

export interface DigestPrompt {
  readonly seq: number;
  readonly toSeq: number;
  readonly tsMs: number | null;
  readonly text: string;
  readonly tools: number;
  readonly errors: number;
  readonly files: number;
  readonly outputTokens: number | null;
}

export interface AxisBucket {
  readonly fromMs: number;
  readonly toMs: number;
  readonly prompts: number;
  readonly replies: number;
  readonly tools: number;
  readonly errors: number;
  readonly tokens: number;
  readonly fillTokens: number | null;
}

export interface DigestJson {
  readonly lastSeq: number;
  readonly prompts: readonly DigestPrompt[];
  readonly errors: readonly number[];
  readonly shortened: readonly number[];
  /** Lists the records of type `custom` that a transcript shows. A server of an earlier version lists none. */
  readonly marks?: readonly number[];
  readonly branches: readonly { readonly seq: number; readonly records: number }[];
  readonly compactions: readonly {
    readonly seq: number;
    readonly tokensBefore: number | null;
    readonly tokensAfter: number | null;
    readonly source: string | null;
  }[];
  /** Is null for a session without any time. */
  readonly axis: {
    readonly fromMs: number;
    readonly toMs: number;
    readonly buckets: readonly AxisBucket[];
  } | null;
}

export interface PartialJson {
  readonly turnId: string;
  readonly step: number;
  readonly attempt: number;
  readonly text: string;
  readonly updatedMs: number;
}

export interface CallJson {
  readonly callId: string;
  readonly turnId: string;
  readonly step: number;
  readonly attempt: number;
  readonly atMs: number;
  readonly provider: string;
  readonly model: string;
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly messageCount: number;
  readonly windowTokens: number | null;
  readonly changes: readonly CallChangeJson[];
  readonly estimatedTokens: number;
  readonly actual: {
    readonly input: number;
    readonly output: number;
    readonly cacheRead: number;
    readonly cacheWrite: number;
  } | null;
  readonly outcome: string;
  readonly startedMs: number | null;
  readonly endedMs: number | null;
  readonly firstByteMs: number | null;
}

/** Is what the guard made smaller for a call. */
export interface CallChangeJson {
  readonly recordId: string | null;
  readonly what: string;
  readonly reason: string;
  readonly beforeBytes: number;
  readonly afterBytes: number;
}

export interface PlaceJson {
  readonly recordId: string | null;
  readonly seq: number | null;
  readonly reason: string;
  readonly rule?: string | null;
}

export interface CallRequestJson {
  readonly api: string;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly systemHash: string | null;
  readonly toolsHash: string | null;
  readonly maxOutputTokens: number | null;
  readonly system: string | null;
  readonly tools: string | null;
  /** Names for each message the records that it was made from. */
  readonly places: readonly (readonly PlaceJson[])[];
  readonly breakdown: {
    readonly prefixTokens: number;
    readonly summaryTokens: number;
    readonly messageTokens: number;
    readonly toolResultTokens: number;
  };
}

interface RelatedJson {
  readonly key: string | null;
  readonly sessionId: string | null;
  readonly isHere: boolean;
  readonly atSeq?: number | null;
}

export interface RelationsJson {
  readonly parent: RelatedJson | null;
  readonly forkedFrom: RelatedJson | null;
  readonly children: readonly SessionJson[];
  readonly forks: readonly SessionJson[];
  readonly handedOff: readonly { readonly format: string; readonly sessionId: string; readonly path: string }[];
  readonly isComplete: boolean;
}

export interface ResumeJson {
  readonly own: {
    readonly program: string;
    readonly command: string;
    readonly cwd: string | null;
    /** Names what the command needs and this machine lacks; null where the server does not look. */
    readonly missing?: readonly string[] | null;
  } | null;
  readonly here: string;
  readonly handOff: readonly { readonly to: string; readonly command: string }[];
  readonly losses?: readonly { readonly what: string; readonly kind: string; readonly records: number }[];
}

export interface RemarkJson {
  readonly what: string;
  readonly reason: string;
  readonly seq: number | null;
}

export interface ProblemJson {
  readonly code?: string;
  readonly message?: string;
  readonly remedy?: string;
}

export interface UsageSums {
  readonly calls: number;
  readonly seconds: number;
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly costUsd: number | null;
  readonly statedUsd: number;
  readonly unpricedCalls: number;
  readonly doubtfulCalls: number;
}

export interface UsageRowJson extends UsageSums {
  readonly group: Readonly<Record<string, string | null>>;
  readonly name: string | null;
}

export interface UsageReportJson {
  readonly rows: readonly UsageRowJson[];
  readonly total: UsageSums;
  readonly pricesAsOf: string;
  readonly unread: readonly unknown[];
}

interface TurnUsageJson extends UsageSums {
  readonly seq: number | null;
  readonly tsMs: number | null;
  readonly model: string | null;
  readonly fillTokens: number | null;
  readonly isShared: boolean;
}

export interface SessionUsageJson {
  readonly turns: readonly TurnUsageJson[];
  readonly total: UsageSums;
  readonly hasUsage: boolean;
  readonly pricesAsOf: string;
}

export interface ChangedFileJson {
  readonly path: string;
  readonly changes: number;
  readonly failed: number;
  readonly added: number;
  readonly removed: number;
}

export interface FileChangeJson {
  readonly seq: number;
  readonly tool: string;
  readonly what: "write" | "edit" | "patch";
  /** Is null when the log has no result of the call. */
  readonly isError: boolean | null;
  readonly isEverywhere: boolean;
  readonly before: string | null;
  readonly after: string | null;
  readonly patch: string | null;
}

export interface FindingJson {
  readonly code: string;
  readonly severity: string;
  readonly message: string;
  readonly remedy: string;
  readonly recordId: string | null;
}

export interface ContextJson {
  readonly messages: readonly (Readonly<Record<string, unknown>> & { readonly seq: number })[];
  readonly gauge: {
    readonly tokens: number;
    readonly source: string;
    readonly windowTokens: number | null;
    readonly percent: number | null;
  };
  readonly breakdown: {
    readonly systemTokens: number;
    readonly toolsTokens: number;
    readonly summaryTokens: number;
    readonly messageTokens: number;
    readonly toolResultTokens: number;
  };
  readonly repairs: readonly unknown[];
  readonly omitted: readonly { readonly fromSeq: number; readonly toSeq: number; readonly reason: string }[];
  readonly compactsAtTokens?: number | null;
}
