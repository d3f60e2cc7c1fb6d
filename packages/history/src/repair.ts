/**
 * Names the changes that a rendering may make to a history, apart from the conversion into the provider's format. All
 * other content matches the log.
 */
export type RepairRule =
  /** An assistant turn that was aborted or failed is dropped, with the results of its calls. */
  | "failed-turn-dropped"
  /** An aborted reply is reduced to its text, because the next message asks to continue it. */
  | "continued-reply-cut"
  /** A reply is left out while a call of it waits for a decision, with the results of its other calls. */
  | "waiting-reply-left-out"
  /** A result is dropped because its call is in a reply that is dropped or left out. */
  | "result-of-dropped-turn"
  /** An error result answers a call without a stored result. */
  | "result-synthesized"
  /** A result without a call is dropped, or sent as text. */
  | "orphan-result"
  /** A second result of the same call is dropped. */
  | "duplicate-result"
  /** A call that was stored twice is dropped. */
  | "duplicate-call"
  /** A result that was stored away from its call is moved to the call. */
  | "result-moved"
  /** A call or a text joins the preceding assistant message. */
  | "assistant-merged"
  /** User content joins the preceding user message. */
  | "user-merged"
  /** A generated user message comes first, because the history starts with the assistant. */
  | "bootstrap-added"
  /** A generated reply stands between the summary and a user message. */
  | "acknowledgement-added"
  /** A generated user message comes last, because the caller asked for it. */
  | "continuation-added"
  /** The assistant message at the end is removed, because the caller asked for it. */
  | "trailing-assistant-removed"
  /** White space at the very end of the history is removed, because a provider rejects it. */
  | "trailing-space-removed"
  /** A generated reply stands between tool results and a user message. */
  | "reply-added"
  /** A generated text fills an empty result. */
  | "empty-result-filled"
  /** A result that arrived after the conversation had continued is sent as text at its position. */
  | "late-result-shown"
  /** A system message inside the list is sent as user text. */
  | "system-message-shown"
  /** A call whose signature is not valid gets the provider's substitute signature. */
  | "signature-replaced"
  | "signature-removed"
  | "call-id-changed"
  | "tool-name-changed"
  | "empty-text-removed"
  | "empty-message-removed"
  | "thinking-removed"
  /** Arguments that are not a JSON object are removed, because no provider accepts them. */
  | "arguments-removed"
  | "lone-surrogate-replaced"
  | "image-replaced"
  /** An image gets the media type and the encoding that the provider accepts. */
  | "image-rewritten"
  | "image-moved"
  | "file-replaced"
  | "unknown-block-replaced"
  | "unknown-role-removed";

/**
 * Describes one change by the record that it affects. Long texts are shortened, because the record holds the whole
 * text.
 */
export interface Repair {
  /** States the rule of the change. */
  readonly rule: RepairRule;
  /** States the record that changed. For an added message it is the record that made the message necessary. */
  readonly recordId: string;
  /** Holds the content of the record; null if a message was added. */
  readonly before: string | null;
  /** Holds the new content; null if content was removed. */
  readonly after: string | null;
}

export interface RepairedItem {
  readonly recordId: string;
  readonly place: number;
}

export type ReportRepair = (rule: RepairRule, item: RepairedItem, before: string | null, after?: string | null) => void;

interface RepairEntry {
  readonly place: number;
  readonly repair: Repair;
}

export interface RepairLog {
  readonly report: ReportRepair;
  /** Returns the current entries. Later reports do not extend the returned span. */
  readonly upToNow: () => RepairSpan;
}

/** Holds the first entries of a log, which only grows. */
export interface RepairSpan {
  readonly entries: readonly RepairEntry[];
  readonly count: number;
}

/**
 * Sorts by record, because each log covers another stage of the same records. Repairs of one record keep the order of
 * the logs.
 */
export function sortedRepairs(spans: readonly RepairSpan[]): Repair[] {
  const all = spans.flatMap(({ entries, count }) => entries.slice(0, count));
  return all.toSorted((one, other) => one.place - other.place).map(({ repair }) => repair);
}

export function createRepairLog(): RepairLog {
  const entries: RepairEntry[] = [];
  const report: ReportRepair = (rule, { recordId, place }, before, after = null) => {
    const repair: Repair = {
      rule,
      recordId,
      before: before === null ? null : excerpt(before),
      after: after === null ? null : excerpt(after),
    };
    entries.push({ place, repair });
  };
  return { report, upToNow: () => ({ entries, count: entries.length }) };
}

const excerptChars = 200;

function excerpt(text: string): string {
  return text.length <= excerptChars ? text : `${text.slice(0, excerptChars).toWellFormed()}…`;
}
