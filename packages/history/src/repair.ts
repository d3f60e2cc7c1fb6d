/**
 * What a rendering may do to a history, apart from turning it into the provider's shapes. Everything else stays as it
 * is in the log.
 */
export type RepairRule =
  /** An assistant turn that was aborted or ended in an error is left out, with its calls' results. */
  | "failed-turn-dropped"
  /** An aborted reply that the next message asks to be continued is sent as its text alone. */
  | "continued-reply-cut"
  /** A result whose call is in a turn that was left out. */
  | "result-of-dropped-turn"
  /** A call without a stored result is answered by an error result. */
  | "result-synthesized"
  /** A result without a call is left out, or shown as text. */
  | "orphan-result"
  /** A further result of a call that has one. */
  | "duplicate-result"
  /** A call stored a second time. */
  | "duplicate-call"
  /** A result stored away from its call goes to its call. */
  | "result-moved"
  /** A call or a piece of text joins the assistant message before it. */
  | "assistant-merged"
  /** User content joins the user message before it. */
  | "user-merged"
  /** A made-up first user message, because the history begins with the assistant. */
  | "bootstrap-added"
  /** A made-up reply between the summary and a user message. */
  | "acknowledgement-added"
  /** A made-up user message at the end, as asked. */
  | "continuation-added"
  /** The assistant message at the end is left out, as asked. */
  | "trailing-assistant-removed"
  /** White space at the very end of the history, which a provider refuses. */
  | "trailing-space-removed"
  /** A made-up reply between tool results and a user message. */
  | "reply-added"
  /** Words in a result that has none. */
  | "empty-result-filled"
  /** A result that came after the conversation had gone on without it is shown as text where it stands. */
  | "late-result-shown"
  /** A system message inside the list is shown as user text. */
  | "system-message-shown"
  /** A call whose signature cannot hold is sent with the provider's stand-in for one. */
  | "signature-replaced"
  | "signature-removed"
  | "call-id-changed"
  | "tool-name-changed"
  | "empty-text-removed"
  | "empty-message-removed"
  | "thinking-removed"
  /** Arguments that are no JSON object, which no provider takes. */
  | "arguments-removed"
  | "lone-surrogate-replaced"
  | "image-replaced"
  /** An image under the type and in the form that its provider takes. */
  | "image-rewritten"
  | "image-moved"
  | "file-replaced"
  | "unknown-block-replaced"
  | "unknown-role-removed";

/** One change, told by the record it was made to. Long texts are shortened: the record holds the whole. */
export interface Repair {
  /** The rule by which it was made. */
  readonly rule: RepairRule;
  /** The record that it concerns; for an added message, the record that made it necessary. */
  readonly recordId: string;
  /** What the record says; null where something was added. */
  readonly before: string | null;
  /** What was made of it; null where something was removed. */
  readonly after: string | null;
}

/** Whose record it is, and where its message stands in the context. */
export interface RepairedItem {
  readonly recordId: string;
  readonly place: number;
}

export type ReportRepair = (rule: RepairRule, item: RepairedItem, before: string | null, after?: string | null) => void;

interface RepairEntry {
  readonly place: number;
  readonly repair: Repair;
}

/** Repairs with the place of their record. */
export interface RepairLog {
  readonly report: ReportRepair;
  /** What it holds now; further reports are no part of it. */
  readonly upToNow: () => RepairSpan;
}

/** The first entries of a log that only grows. */
export interface RepairSpan {
  readonly entries: readonly RepairEntry[];
  readonly count: number;
}

/** The repairs of some logs in the order of the records; of one record in the order of the logs. */
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
