import type { SessionRecord } from "./record.ts";

/**
 * Records of Throughline's own: `custom` with `customType: "throughline.<kind>"`, a version `v` and `critical`. If a
 * reader meets an unknown critical kind, or a higher version of a known one, it may list, show and export the session.
 * It must not build a context from it.
 */
export type ThroughlineRecordKind =
  | "call"
  | "turn"
  | "edit"
  | "redaction"
  | "note"
  | "unparsed"
  /** What a gateway passed on: one request and what came of it. */
  | "exchange"
  /** System prompt and tools of a conversation, by hash. */
  | "prompt"
  /** Who let a tool call run, or did not. */
  | "approval";

export interface ThroughlineRecordRule {
  /** The highest version this build reads. */
  readonly version: number;
  readonly critical: boolean;
  /** Whether records of this kind stay off the branch (see `isSideRecord`). */
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

/** The draft of a record of ours. `data` must be JSON. */
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

/** The kind of one of our records, also of kinds this build does not know; null for every other record. */
export function throughlineKind(record: { readonly [field: string]: unknown }): string | null {
  const { type, customType } = record;
  if (type !== "custom" || typeof customType !== "string" || !customType.startsWith(prefix)) return null;
  return customType.slice(prefix.length);
}

/** True when a context must not be built because this record may change it in a way this build cannot know. */
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
