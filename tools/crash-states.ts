import process from "node:process";
import { parseArgs } from "node:util";
import { exploreCrashes } from "../packages/store-jsonl/test/crash-explorer.ts";
import { lifeOfHastySessions, lifeOfPartials, lifeOfSessions } from "../packages/store-jsonl/test/crash-steps.ts";
import { exploreForeignActs } from "../packages/store-jsonl/test/foreign-acts.ts";
import { countFallible, liveWithFault } from "../packages/store-jsonl/test/fault-explorer.ts";

/**
 * The full size of the JSONL store's crash suite: every state a power cut may leave at any moment of a life of sessions,
 * writes torn at every byte, with one store for the whole life and with one for each step, recoveries crashed again, and
 * every call of it failing once; and after every kill and power cut each act of another program on the transcript. `--part 2/3` does the second third of it: all parts together are the whole.
 * node --conditions=@throughline/source tools/crash-states.ts [--cut 1] [--recover 20] [--recovered 40] [--part 1/1]
 */
if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      cut: { type: "string", default: "1" },
      recover: { type: "string", default: "20" },
      recovered: { type: "string", default: "40" },
      part: { type: "string", default: "1/1" },
    },
  });
  const [number = 1, count = 1] = values.part.split("/").map(Number);
  const part = { index: number - 1, count };
  const startMs = performance.now();
  const seconds = (): string => ((performance.now() - startMs) / 1000).toFixed(0);
  const problems: string[] = [];
  const faults: string[] = [];
  let lives = 0;
  let states = 0;
  for (const [name, life] of [
    ["sessions", lifeOfSessions],
    ["hasty sessions", lifeOfHastySessions],
    ["partials", lifeOfPartials],
  ] as const) {
    for (const isReopened of [false, true]) {
      const result = await exploreCrashes(life(), {
        cutEveryBytes: Number(values.cut),
        recoverEvery: Number(values.recover),
        statesPerRecovery: Number(values.recovered),
        isReopened,
        part,
      });
      problems.push(...result.problems);
      states += result.states;
      process.stdout.write(
        `power cuts, ${name}, ${isReopened ? "a store for each step" : "one store"}: ${result.moments} moments, ` +
          `${result.states} states, ${result.problems.length} problems, ${seconds()} s\n`,
      );
    }
    const calls = await countFallible(life());
    for (const code of ["EIO", "ENOSPC"] as const)
      for (let place = 1 + part.index; place <= calls; place += count, lives++)
        faults.push(...(await liveWithFault(life(), { place, code })));
  }
  const acts = await exploreForeignActs({ statesPerMoment: Infinity, cutEveryBytes: Number(values.cut), part });
  problems.push(...acts.problems);
  states += acts.states;
  process.stdout.write(
    `acts of another program: ${acts.states} states, ${acts.problems.length} problems, ${seconds()} s\n`,
  );
  process.stdout.write(`failed calls: ${lives} lives, ${faults.length} problems, ${seconds()} s\n`);
  for (const problem of [...problems, ...faults].slice(0, 10)) process.stdout.write(`${problem}\n`);
  process.stdout.write(
    `part ${values.part}: ${states} states, ${lives} lives with a failed call, ${problems.length + faults.length} problems\n`,
  );
  process.exitCode = problems.length + faults.length === 0 ? 0 : 1;
}
