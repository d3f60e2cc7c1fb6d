// What a turn takes while a model is at work beside it, over what it takes without: a checkpoint in the making, checkpoints
// that begin and are written after every turn, a poor summary being made again, and a compaction whose summarizer needs ten
// seconds. All in turns, in one process, over SQLite. With --check the 99th percentile of a turn with a checkpoint decides.
// node --conditions=@throughline/source lab/benchmarks/turn-with-checkpoint.ts [--turns 300] [--check]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { ChatModel, Summarizer } from "../../packages/core/src/index.ts";
import { createAgentSessions } from "../../packages/session/src/whole-turn/agent-sessions.ts";
import type { AgentSession } from "../../packages/session/src/whole-turn/agent-session.ts";
import type { AgentSessions } from "../../packages/session/src/whole-turn/agent-sessions.ts";
import type { WholeTurnEvent } from "../../packages/session/src/whole-turn/whole-turn-event.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { createExtractiveSummarizer } from "../../packages/summarizer-providers/src/index.ts";

const { values } = parseArgs({
  options: { turns: { type: "string", default: "300" }, check: { type: "boolean", default: false } },
});
const turns = Number(values.turns);
/** The 99th percentile of a turn over that of the control: with one checkpoint in flight, and with one after every turn. */
const mostOverControl: Readonly<Partial<Record<Kind, number>>> = { checkpoint: 1.25, checkpoints: 2 };
const warmUps = 40;
const windowTokens = 200_000;
const slowSummaryMs = 10_000;
const words = "The parser reads each line, keeps what it cannot read, and says so in a finding. ".repeat(8);

type Kind = "nothing" | "checkpoint" | "checkpoints" | "retry" | "compaction";
const kinds: readonly Kind[] = ["nothing", "checkpoint", "checkpoints", "retry", "compaction"];

interface Row {
  readonly kind: Kind;
  readonly sessions: AgentSessions;
  readonly session: AgentSession;
  /** What happened while the turns were measured. */
  readonly events: Set<string>;
  readonly took: number[];
  /** Resolves when the work beside the turns has begun. */
  readonly begun: Promise<void>;
  /** From now on a prompt is as large as shortly before a compaction. */
  fill(): void;
  /** From now on the summarizer takes its time. */
  hang(): void;
}

/** Answers at once: what is measured is ours. */
function createModel(sizeTokens: () => number): ChatModel {
  return {
    provider: "anthropic",
    api: "anthropic",
    chat: ({ modelId: model }) => {
      const usage = { input: sizeTokens(), output: 10, cacheRead: 0, cacheWrite: 0 };
      const content = [{ type: "text" as const, text: "An answer." }];
      const message = { role: "assistant" as const, content, provider: "anthropic", model, usage, stopReason: "stop" };
      return Promise.resolve({ message, stopReason: "stop", usage });
    },
  };
}

async function untilAborted(signal: AbortSignal | undefined, mostMs: number): Promise<void> {
  await sleep(mostMs, undefined, { ...(signal === undefined ? {} : { signal }), ref: false });
}

async function open(folder: string, kind: Kind): Promise<Row> {
  let tokens = 20_000;
  let isSlow = false;
  const begun = Promise.withResolvers<void>();
  const events = new Set<string>();
  const summarizer: Summarizer = {
    async summarize({ signal }) {
      if (!isSlow) throw new Error("no server there");
      begun.resolve();
      await untilAborted(signal, kind === "compaction" ? slowSummaryMs : 600_000);
      return {
        summary: "Topics: the parser.\nDecisions: none.\nCurrent state: under way.",
        source: "slow",
        usage: null,
      };
    },
  };
  const sessions = createAgentSessions({
    store: createSqliteStore({ path: join(folder, `${kind}.db`) }),
    model: { chat: createModel(() => (tokens += 20)), modelId: "claude-sonnet-4-5", windowTokens },
    summarizers: [summarizer],
    extractive: createExtractiveSummarizer(),
    retry: { intervalSeconds: kind === "retry" ? 1 : 0, firstDelayMs: 1 },
    compaction: { keepRecentTokens: 1000, background: kind === "compaction" },
    checkpoint: {
      enabled: kind === "checkpoint" || kind === "checkpoints",
      tokenThresholdPercents: [5],
      ...(kind === "checkpoints" ? { turnThreshold: 1, minTokensForGen: 0 } : {}),
      writers: [
        {
          name: "slow",
          write: async ({ signal }) => {
            begun.resolve();
            await untilAborted(signal, kind === "checkpoints" ? 1 : 600_000);
            return JSON.stringify({ summary: "The parser keeps what it cannot read, and a finding says so." });
          },
        },
      ],
    },
    onEvent: ({ name }: WholeTurnEvent) => void events.add(name),
  });
  const session = await sessions.open("agent:main:bench:direct:one");
  if (kind === "nothing") begun.resolve();
  return {
    kind,
    sessions,
    session,
    events,
    took: [],
    begun: begun.promise,
    fill: () => void (tokens = (windowTokens - 30_000) * 0.92),
    hang: () => void (isSlow = true),
  };
}

async function turn({ session, took }: Row, at: number): Promise<void> {
  const begin = performance.now();
  await session.runTurn(`Question ${at}: ${words}`);
  took.push(performance.now() - begin);
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

const folder = mkdtempSync(join(tmpdir(), "turn-with-checkpoint-"));
const rows = await Promise.all(kinds.map((kind) => open(folder, kind)));
for (const row of rows) {
  for (let index = 0; index < warmUps; index++) await turn(row, index);
  // Everywhere a summary that no model wrote, so that all histories are alike.
  const { kind } = await row.session.compact();
  if (kind !== "compacted") throw new Error(`${row.kind}: ${kind}`);
  row.hang();
  for (let index = 0; index < warmUps; index++) await turn(row, index);
  if (row.kind === "compaction") {
    row.fill();
    await turn(row, 0);
    await turn(row, 1);
  }
  await row.begun;
  row.took.length = 0;
  row.events.clear();
}
for (let index = 0; index < turns; index++) {
  // Each goes first as often as the others.
  const first = index % rows.length;
  for (const row of [...rows.slice(first), ...rows.slice(0, first)]) await turn(row, index);
}
let isOver = false;
const [plain = []] = rows.map(({ took }) => took.toSorted((one, other) => one - other));
for (const { kind, took, events } of rows) {
  const sorted = took.toSorted((one, other) => one - other);
  const shares = [0.5, 0.99].map((share) => {
    const ms = at(sorted, share);
    return `p${share * 100} ${ms.toFixed(2)} ms, ${(ms / at(plain, share)).toFixed(2)} x`;
  });
  const ended = ["checkpoint.written", "retry.improved", "compaction.applied"].filter((name) => events.has(name));
  const most = mostOverControl[kind] ?? Infinity;
  isOver ||= at(sorted, 0.99) / at(plain, 0.99) > most;
  process.stdout.write(
    `${kind.padEnd(11)} in flight: ${shares.join("; ")}; longest ${(sorted.at(-1) ?? 0).toFixed(0)} ms` +
      `${most === Infinity ? "" : `; p99 at most ${most} x`}${ended.length === 0 ? "" : ` (${ended.join(", ")} meanwhile)`}\n`,
  );
}
for (const { sessions } of rows) await sessions.close();
rmSync(folder, { recursive: true });
if (values.check && isOver) process.exitCode = 1;
