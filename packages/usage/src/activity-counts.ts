import type { StoredRecord } from "@throughline/core";
import { isFailedTool, isFields, type Fields } from "@throughline/core/internal";
import { quarterOf } from "./time-labels.ts";

/** Holds what happened in a session within a quarter of an hour. */
export interface ActivityCounts {
  /** Counts the quarters of an hour since 1970 in UTC. */
  readonly quarter: number;
  readonly messages: number;
  readonly toolCalls: number;
  readonly failedTools: number;
}

/** Adds up counts by their quarter of an hour. */
export class ActivitySum {
  readonly #sums = new Map<number, { -readonly [Name in keyof ActivityCounts]: ActivityCounts[Name] }>();

  constructor(counts: readonly ActivityCounts[] = []) {
    for (const each of counts) this.add(each);
  }

  add({ quarter, messages, toolCalls, failedTools }: ActivityCounts): void {
    let sum = this.#sums.get(quarter);
    if (sum === undefined) this.#sums.set(quarter, (sum = { quarter, messages: 0, toolCalls: 0, failedTools: 0 }));
    sum.messages += messages;
    sum.toolCalls += toolCalls;
    sum.failedTools += failedTools;
  }

  counts(): readonly ActivityCounts[] {
    return Array.from(this.#sums.values(), (sum) => ({ ...sum }));
  }
}

/** Returns what a record adds; null for a record that is no message. */
export function activityOf({ record }: StoredRecord, atMs: number): ActivityCounts | null {
  const { message } = record;
  if (record.type !== "message" || !isFields(message)) return null;
  const isCommand = message["role"] === "bashExecution";
  const toolCalls = isCommand ? 1 : callsIn(message);
  return { quarter: quarterOf(atMs), messages: 1, toolCalls, failedTools: isFailedTool(record) ? 1 : 0 };
}

function callsIn({ content }: Fields): number {
  if (!Array.isArray(content)) return 0;
  return content.filter((block: unknown) => isFields(block) && block["type"] === "toolCall").length;
}

type PackedCounts = readonly [quarter: number, messages: number, toolCalls: number, failedTools: number];

/** A list of values takes a third of the space of an object. */
export function packActivity(counts: readonly ActivityCounts[]): string {
  return JSON.stringify(
    counts.map(({ quarter, messages, toolCalls, failedTools }): PackedCounts => {
      return [quarter, messages, toolCalls, failedTools];
    }),
  );
}

export function unpackActivity(text: string): readonly ActivityCounts[] {
  if (text === "") return [];
  return (JSON.parse(text) as readonly PackedCounts[]).map(([quarter, messages, toolCalls, failedTools]) => {
    return { quarter, messages, toolCalls, failedTools };
  });
}
