import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock, SessionStore } from "../../packages/core/src/index.ts";
import { createModelComparison, HistoryProblem } from "./compare-with-model.ts";
import { createHistoryPlace, type HistoryStore } from "./history-store.ts";
import type { History } from "./history-steps.ts";
import { createOtherPrograms } from "./other-programs.ts";
import { playStep, type PlayContext } from "./play-step.ts";
import { createSessionModel } from "../../packages/store-conformance/src/model/session-model.ts";

export interface PlayedHistory {
  /** What was compared with the model. */
  readonly comparisons: number;
  /** Null: the store held what the model says at every step and at the end. */
  readonly problem: { readonly step: number; readonly message: string } | null;
}

const startMs = Date.parse("2026-11-22T12:00:00Z");

/**
 * Plays a history on a store and on the model, one step at a time, and compares them: the answer of each step, what any
 * handle sees behind an append, and at the end everything, from every handle, from a new one, and once more from one that
 * has no index.
 */
export async function playHistory(history: History, kind: HistoryStore): Promise<PlayedHistory> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-history-"));
  const model = createSessionModel(startMs);
  const clock: Clock = {
    nowMs: () => model.nowMs,
    sleep: (waitMs) => new Promise((resolve) => void setTimeout(resolve, waitMs)),
  };
  const { pageRecords, pageBytes, derivedDelaysMs } = history;
  const place = createHistoryPlace(folder, clock, { pageRecords, pageBytes });
  const handles: SessionStore[] = derivedDelaysMs.map((delayMs) => kind.open(place, delayMs));
  const compare = createModelComparison(model);
  const context: PlayContext = { kind, place, handles, model, compare, programs: createOtherPrograms(folder, model) };
  let step = 0;
  try {
    for (; step < history.steps.length; step++) await playStep(context, history, step);
    for (const [index, store] of handles.entries()) await compare.all(`at the end, handle ${index}`, store);
    for (const store of handles) await store.close();
    await compareAnew(context, "opened anew");
    if (kind.name === "jsonl") {
      for (const agentId of ["main", "other"])
        context.programs.damage({ kind: "damage", damage: "index removed", agentId, cutAt: 0 });
      await compareAnew(context, "opened without an index");
    }
    return { comparisons: compare.count(), problem: null };
  } catch (error) {
    // Whatever else is thrown is a problem of the store as well, and is shrunk as one.
    const { message, stack } = error as Error;
    const problem = { step, message: error instanceof HistoryProblem ? message : (stack ?? message) };
    return { comparisons: compare.count(), problem };
  } finally {
    await Promise.allSettled(handles.map((store) => store.close()));
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compareAnew({ kind, place, compare }: PlayContext, what: string): Promise<void> {
  await using store = kind.open(place, 0);
  await compare.all(what, store);
}
