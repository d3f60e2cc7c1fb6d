import type { SessionRecord } from "./record.ts";

/**
 * A Throughline record is `custom` with `customType: "throughline.<kind>"`, a version `v` and `critical`. A reader that
 * meets an unknown critical kind, or a higher version of a known kind, may list, show and export the session. It must
 * not build a context from the session.
 */
export type ThroughlineRecordKind =
  | "call"
  | "turn"
  | "edit"
  | "redaction"
  | "note"
  | "unparsed"
  /** The record holds one request that a gateway passed on, and its outcome. */
  | "exchange"
  /** The record holds the system prompt and the tools of a conversation, by hash. */
  | "prompt"
  /** The record states who allowed or refused a tool call. */
  | "approval";

export interface ThroughlineRecordRule {
  /** This build reads no higher version. */
  readonly version: number;
  readonly critical: boolean;
  /** True keeps records of this kind off the branch (see `isSideRecord`). */
  readonly side: boolean;
}

export const throughlineRecordRules: Readonly<Record<ThroughlineRecordKind, ThroughlineRecordRule>> = {
  call: { version: 1, critical: false, side: true },
  turn: { version: 1, critical: false, side: true },
  edit: { version: 1, critical: true, side: false },
  redaction: { version: 1, critical: false, side: false },
  note: { version: 1, critical: false, side: true },
  unparsed: { version: 1, critical: false, side: true },
  exchange: { version: 1, critical: false, side: true },
  prompt: { version: 1, critical: false, side: true },
  approval: { version: 1, critical: false, side: true },
};

const prefix = "throughline.";

/** Creates the draft of a Throughline record; `data` must be JSON. */
export function throughlineDraft(
  kind: ThroughlineRecordKind,
  data: Readonly<Record<string, unknown>>,
): {
  readonly type: "custom";
  readonly customType: string;
  readonly v: number;
  readonly critical: boolean;
  readonly data: unknown;
} {
  const rule = throughlineRecordRules[kind];
  return { type: "custom", customType: prefix + kind, v: rule.version, critical: rule.critical, data };
}

/** Returns the kind of a Throughline record, also a kind that this build does not know; null for every other record. */
export function throughlineKind(record: { readonly [field: string]: unknown }): string | null {
  const { type, customType } = record;
  if (type !== "custom" || typeof customType !== "string" || !customType.startsWith(prefix)) return null;
  return customType.slice(prefix.length);
}

/**
 * Returns true when the record may change a context in a way that this build cannot know. No context may then be built.
 */
export function isFromNewerVersion(record: SessionRecord): boolean {
  const kind = throughlineKind(record);
  if (kind === null) return false;
  const rule = Object.hasOwn(throughlineRecordRules, kind)
    ? throughlineRecordRules[kind as ThroughlineRecordKind]
    : null;
  if (rule === null) return record["critical"] === true;
  return (
    typeof record["v"] === "number" && record["v"] > rule.version && (record["critical"] === true || rule.critical)
  );
}
