import type { Durability, ListQuery, ReadOptions, RecordDraft } from "../../packages/core/src/index.ts";
import type { ReadPayload } from "../../packages/core/src/stored-records.ts";

/**
 * Which session a step is about: a key by its number, or one of the agent's archived sessions, whichever there are by
 * then. Everything in a step is chosen like this, so that a history is plain data and goes on without a step of it.
 */
export interface StepAddress {
  readonly key: number;
  readonly archived?: number;
}

/** How the draft of a record is handed over: as fields, or as a line of another program with what is odd about it. */
export type DraftForm =
  | "fields"
  | "line"
  | "spaced line"
  | "line with a carriage return"
  | "line with a member twice"
  | "line with large numbers"
  | "line nested deep"
  | "bytes"
  | "text with a meaning"
  | "header";

export interface DraftPlan {
  readonly form: DraftForm;
  readonly type: string;
  /** Absent: the store makes one. */
  readonly id?: string;
  /** Absent: the head. A number: one of the records there are by then. */
  readonly parent?: number | "none" | "unknown";
  readonly timestamp?: string;
  readonly fields: Omit<RecordDraft, "type" | "id" | "parentId" | "timestamp">;
}

/** Fields of an entry to set, or with `null` around them to remove; `updatedAt` by its distance from the clock. */
export interface EntryPlan {
  readonly set: Readonly<Record<string, unknown>>;
  readonly unset: readonly string[];
  readonly updatedAt?: number | "no time";
}

export interface TurnPlan {
  readonly action: "open" | "renew" | "close" | "within";
  /** Added to the fence that is right. */
  readonly fenceOff: number;
  readonly leaseMs: number;
}

export interface AppendStep {
  readonly kind: "append";
  readonly handle: number;
  /** Who is asked afterwards what there is. */
  readonly reader: number;
  readonly session: StepAddress;
  readonly drafts: readonly DraftPlan[];
  readonly durability?: Durability;
  readonly entry?: EntryPlan;
  readonly idempotencyKey?: string;
  /** One of the session's keyed appends is made again instead. */
  readonly repeat?: number;
  readonly expect?: "head" | "none" | "wrong";
  /** Where the window begins, from 0 to 1 of what there is. */
  readonly window?: number;
  /** A record to rewind to, or before the first. */
  readonly rewind?: number | "none";
  readonly turn?: TurnPlan;
}

export type DamageKind =
  | "index removed"
  | "index journal removed"
  | "index from earlier"
  | "index cut"
  | "index overwritten"
  | "sessions.json removed";

/** What another program does to a whole transcript. */
export type TranscriptAct =
  | "emptied"
  | "header only"
  | "last lines cut"
  | "moved to .reset"
  | "moved to .deleted"
  | "deleted";

export type ForeignLine = "message" | "message with a carriage return" | "custom" | "label" | "name";

export type HistoryStep =
  | AppendStep
  | {
      readonly kind: "save";
      readonly handle: number;
      readonly session: StepAddress;
      /** Null: the id the session has, if there is one. */
      readonly sessionId: string | null;
      readonly revision: "known" | "none" | "wrong";
      readonly entry: EntryPlan;
      readonly durability?: Durability;
    }
  | {
      readonly kind: "move";
      readonly handle: number;
      readonly session: StepAddress;
      readonly action: "rename" | "archive" | "restore";
      readonly toKey: number;
    }
  | { readonly kind: "remove"; readonly handle: number; readonly session: StepAddress; readonly purge: boolean }
  | {
      readonly kind: "redact";
      readonly handle: number;
      readonly session: StepAddress;
      readonly records: readonly number[];
      readonly withUnknown: boolean;
    }
  | {
      readonly kind: "fork";
      readonly handle: number;
      readonly session: StepAddress;
      readonly toKey: number;
      readonly sessionId: string;
      readonly atSeq?: number;
    }
  | {
      readonly kind: "list";
      readonly handle: number;
      readonly query: Omit<ListQuery, "sinceMs" | "untilMs">;
      /** From so long before now. */
      readonly sinceMs?: number;
    }
  | {
      readonly kind: "read";
      readonly handle: number;
      readonly session: StepAddress;
      readonly options: ReadOptions<ReadPayload>;
    }
  | { readonly kind: "verify"; readonly handle: number }
  | { readonly kind: "backup"; readonly handle: number }
  | { readonly kind: "compare all" }
  | { readonly kind: "clock"; readonly byMs: number }
  | { readonly kind: "reopen"; readonly handle: number; readonly derivedDelayMs: number }
  | { readonly kind: "damage"; readonly damage: DamageKind; readonly agentId: string; readonly cutAt: number }
  | {
      readonly kind: "foreign line";
      readonly session: StepAddress;
      readonly line: ForeignLine;
      readonly text: string;
      readonly aheadMs: number;
    }
  | {
      readonly kind: "transcript act";
      readonly session: StepAddress;
      readonly act: TranscriptAct;
      /** How many are cut. */
      readonly lines: number;
    }
  | { readonly kind: "edit"; readonly session: StepAddress; readonly field: string; readonly isUnset: boolean };

/** Steps one after the other on several handles of one store. */
export interface History {
  readonly seed: number;
  readonly handles: number;
  readonly pageRecords: number;
  readonly pageBytes: number;
  /** How long each handle lets derived files lag; Infinity: until it closes. */
  readonly derivedDelaysMs: readonly number[];
  readonly steps: readonly HistoryStep[];
}

/** Agents and keys of the sessions, some of which only a careless map or file name would mistake for others. */
export const historyKeys: readonly (readonly [agentId: string, key: string])[] = [
  ["main", "agent:main:main"],
  ["main", "main"],
  ["main", "__proto__"],
  ["main", "constructor"],
  ["main", "agent:main:telegram:direct:1"],
  ["main", "k\u2028x"],
  ["main", "ключ"],
  ["main", "\u{1F600}"],
  ["other", "agent:other:main"],
  ["main", "A"],
  ["main", "a"],
];
