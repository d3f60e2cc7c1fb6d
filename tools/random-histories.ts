import process from "node:process";
import { parseArgs } from "node:util";
import { historyStores, type HistoryStore } from "./histories/history-store.ts";
import type { History } from "./histories/history-steps.ts";
import { playHistory } from "./histories/play-history.ts";
import { randomHistory, type HistoryPlan } from "./histories/random-steps.ts";
import { shrinkHistory } from "./histories/shrink-history.ts";

export interface RandomHistoriesOptions extends Omit<HistoryPlan, "seed"> {
  readonly store: HistoryStore;
  readonly histories: number;
  readonly firstSeed: number;
  /** How long a history that failed is made shorter. @default 20000 */
  readonly shrinkMs?: number;
  /** After so many problems there is more to mend than to look for. @default 3 */
  readonly maxProblems?: number;
}

/** A history on which a store was not what the model says. */
export interface RandomHistoryProblem {
  readonly seed: number;
  readonly shrunk: History;
  readonly message: string;
}

/** Plays so many histories, and makes those that fail as short as they can be. */
export async function randomHistories(
  options: RandomHistoriesOptions,
): Promise<{ readonly comparisons: number; readonly problems: readonly RandomHistoryProblem[] }> {
  const { store, histories, firstSeed, shrinkMs = 20_000, maxProblems = 3 } = options;
  const problems: RandomHistoryProblem[] = [];
  let comparisons = 0;
  for (let seed = firstSeed; seed < firstSeed + histories && problems.length < maxProblems; seed++) {
    const history = randomHistory({ ...options, seed });
    const played = await playHistory(history, store);
    comparisons += played.comparisons;
    if (played.problem === null) continue;
    let { message } = played.problem;
    const shape = shapeOf(message);
    const endsAt = performance.now() + shrinkMs;
    const fails = async (shorter: History): Promise<boolean> => {
      const { problem } = await playHistory(shorter, store);
      if (problem === null || shapeOf(problem.message) !== shape) return false;
      ({ message } = problem);
      return true;
    };
    const shrunk = await shrinkHistory(history, fails, () => performance.now() < endsAt);
    problems.push({ seed, shrunk, message });
  }
  return { comparisons, problems };
}

/** What two problems have in common that are the same one: the kind of step, not its number. */
function shapeOf(message: string): string {
  return (message.split("\n")[0] ?? "").replaceAll(/\d+/g, "").slice(0, 25);
}

/**
 * Plays random histories, several handles on one store, and compares what it says with a model of the contract in plain
 * data. The same seed makes the same history.
 * node --conditions=@throughline/source tools/random-histories.ts [--store jsonl|sqlite|memory] [--histories 200] [--seed N]
 *   [--steps 80] [--handles 3] [--damage] [--foreign]
 */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      store: { type: "string", default: "jsonl" },
      histories: { type: "string", default: "200" },
      steps: { type: "string", default: "80" },
      handles: { type: "string", default: "3" },
      seed: { type: "string" },
      damage: { type: "boolean", default: false },
      foreign: { type: "boolean", default: false },
    },
  });
  const store = Object.values(historyStores).find(({ name }) => name === values.store);
  if (store === undefined) throw new Error(`There is no store ${values.store}.`);
  if (store.name !== "jsonl" && (values.damage || values.foreign))
    throw new Error("Only files of a JSON Lines store are for other programs to write.");
  const [histories, steps, handles] = [values.histories, values.steps, values.handles].map(Number) as [
    number,
    number,
    number,
  ];
  const firstSeed = Number(values.seed ?? Date.now() % 1_000_000);
  process.stdout.write(`${store.name}, seeds from ${firstSeed}\n`);
  const { damage: withDamage, foreign: withForeign } = values;
  const played = await randomHistories({ store, histories, firstSeed, steps, handles, withDamage, withForeign });
  for (const { seed, shrunk, message } of played.problems) {
    const shown = shrunk.steps.map((step, index) => `  ${index} ${JSON.stringify(step).slice(0, 400)}\n`).join("");
    process.stdout.write(
      `seed ${seed}, shrunk to ${shrunk.steps.length} steps:\n${shown}${message.slice(0, 3000)}\n\n`,
    );
  }
  const { comparisons, problems } = played;
  process.stdout.write(
    `histories: ${histories} of ${steps} steps, ${handles} handles, ${comparisons} comparisons, ${problems.length} problems\n`,
  );
  return problems.length === 0 && comparisons > 0 ? 0 : 1;
}

if (import.meta.main) process.exitCode = await main();
