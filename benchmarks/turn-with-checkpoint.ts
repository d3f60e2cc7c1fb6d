// What a turn takes while a checkpoint of its session is in the making, over what it takes without: both in turns, in one
// process, over SQLite. node --conditions=@throughline/source benchmarks/turn-with-checkpoint.ts [--turns 300]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import type { ChatModel } from "../packages/core/src/index.ts";
import { createAgentSessions } from "../packages/session/src/whole-turn/index.ts";
import type { AgentSessions } from "../packages/session/src/whole-turn/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";

const { values } = parseArgs({ options: { turns: { type: "string", default: "300" } } });
const turns = Number(values.turns);

/** Answers at once: what is measured is ours. */
function createModel(): ChatModel {
  let input = 20_000;
  return {
    provider: "anthropic",
    api: "anthropic",
    chat: ({ model }) => {
      input += 20;
      const usage = { input, output: 10, cacheRead: 0, cacheWrite: 0 };
      const content = [{ type: "text" as const, text: "An answer." }];
      const message = { role: "assistant" as const, content, provider: "anthropic", model, usage, stopReason: "stop" };
      return Promise.resolve({ message, stopReason: "stop", usage });
    },
  };
}

/** With a writer that never comes to an end: the checkpoint of the first turn is in the making in all that follow. */
function start(folder: string, isChecked: boolean): AgentSessions {
  return createAgentSessions({
    store: createSqliteStore({ path: join(folder, `${isChecked ? "with" : "without"}.db`) }),
    model: { chat: createModel(), modelId: "claude-sonnet-4-5", windowTokens: 200_000 },
    summarizers: [],
    retry: { intervalSeconds: 0 },
    checkpoint: {
      enabled: isChecked,
      tokenThresholdPercents: [5],
      writers: [
        {
          name: "slow",
          write: ({ signal }) =>
            new Promise((_, reject) => {
              signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
            }),
        },
      ],
    },
  });
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

const folder = mkdtempSync(join(tmpdir(), "turn-with-checkpoint-"));
const rows = await Promise.all(
  [true, false].map(async (isChecked) => {
    const sessions = start(folder, isChecked);
    return { isChecked, sessions, session: await sessions.open("agent:main:bench:direct:one"), took: [] as number[] };
  }),
);
for (let turn = 0; turn < turns; turn++) {
  // Each goes first as often as the other.
  for (const { session, took } of turn % 2 === 0 ? rows : rows.toReversed()) {
    const begin = performance.now();
    await session.runTurn(`Question ${turn}`);
    took.push(performance.now() - begin);
  }
}
const sorted = rows.map(({ took }) => took.slice(20).toSorted((one, other) => one - other));
for (const share of [0.5, 0.99]) {
  const [checked = 0, plain = 0] = sorted.map((took) => at(took, share));
  const ratio = (checked / plain).toFixed(2);
  process.stdout.write(
    `p${share * 100}: ${checked.toFixed(2)} ms with a checkpoint in the making, ${plain.toFixed(2)} ms without, ratio ${ratio}\n`,
  );
}
for (const { sessions } of rows) await sessions.close();
rmSync(folder, { recursive: true });
