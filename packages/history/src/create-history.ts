import type { StoredRecord } from "@throughline/core";
import type { Context } from "./build-context.ts";
import { GrowingContext } from "./growing-context.ts";
import { GrowingReplay } from "./growing-replay.ts";
import type { HistoryTarget } from "./history-targets.ts";
import { replayRules, systemOf, type Rendering, type RenderOptions } from "./replay-history.ts";

/** A session's history that grows with its log. What it gives is what building it from all records would give. */
export interface History {
  /** Takes the next records, in order of seq. A main record becomes the head. */
  append(records: readonly StoredRecord[]): void;
  /** Says where the head is after a rewind. */
  moveHead(headId: string | null): void;
  /** @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION */
  context(): Context;
  /** @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION */
  render(): Rendering<unknown>;
  /** What was done so far. */
  readonly work: HistoryWork;
}

/** Counts of what a history has cost. */
export interface HistoryWork {
  readonly recordsRead: number;
  readonly messagesCleaned: number;
  readonly itemsPaired: number;
  readonly turnsMapped: number;
}

/**
 * A history for one provider. A next record of the same branch costs what it is itself; a compaction, an edit, another
 * branch, or a record that reaches back costs a build of the whole.
 */
export function createHistory(target: HistoryTarget, options: RenderOptions = {}): History {
  const growing = new GrowingContext();
  let replay: { readonly key: string; readonly machine: GrowingReplay<unknown> } | null = null;
  const past = { messagesCleaned: 0, itemsPaired: 0, turnsMapped: 0 };
  const machine = (): GrowingReplay<unknown> => {
    const model = growing.currentModel();
    const rules = replayRules(model, target.mapping.rules, options);
    const key = JSON.stringify([growing.generation, rules.target]);
    if (replay?.key !== key) {
      if (replay !== null) addWork(past, replay.machine);
      replay = { key, machine: new GrowingReplay(rules, target.mapping.turn) };
    }
    return replay.machine;
  };
  return {
    append: (records) => {
      for (const record of records) growing.append(record);
    },
    moveHead: (headId) => growing.moveHead(headId),
    context: () => growing.current(),
    render: () => {
      const current = machine();
      current.append(growing.messagesFrom(current.taken));
      const { messages, ...rest } = current.render();
      const { field, first } = systemOf(target.mapping, options);
      return { system: field, messages: messages.length === 0 ? messages : [...first, ...messages], ...rest };
    },
    get work(): HistoryWork {
      const sum = { ...past };
      if (replay !== null) addWork(sum, replay.machine);
      return { recordsRead: growing.recordsRead, ...sum };
    },
  };
}

function addWork(
  sum: { messagesCleaned: number; itemsPaired: number; turnsMapped: number },
  { work }: GrowingReplay<unknown>,
): void {
  sum.messagesCleaned += work.cleaned;
  sum.itemsPaired += work.paired;
  sum.turnsMapped += work.mapped;
}
