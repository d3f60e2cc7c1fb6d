import { isFields, parsedFields } from "@throughline/core/internal";
import { readKeptUsage, type RecentUsage } from "@throughline/usage/internal";
import type { CommandContext } from "../command.ts";
import { usdText } from "../counted.ts";
import type { Host } from "../host.ts";
import { currentUsagePath, markCounted, openStoreUsage, pricesOf } from "./usage-file.ts";
import { costText, durationText } from "./usage-table.ts";

const hourMs = 60 * 60 * 1000;
/** Windows of five hours are counted from the first call after a pause. An older pause is not looked for. */
const longestWorkMs = 48 * hourMs;

/** Prints one line for a shell prompt, or for the status line of Claude Code, which passes its session on stdin. */
export async function printStatusLine(context: CommandContext): Promise<void> {
  const { output, host } = context;
  const nowMs = Date.now();
  const times = { totalSinceMs: new Date(nowMs).setHours(0, 0, 0, 0), blocksSinceMs: nowMs - longestWorkMs };
  const path = currentUsagePath(context);
  const { total, blocks } = path === null ? await counted(context, times) : kept(path, context, times);
  const block = blocks.findLast(({ endMs }) => endMs > nowMs) ?? null;
  const session = await givenSession(host.stdin);
  if (output.isJson) {
    await output.object({ kind: "usageStatus", ...session, today: total, block });
    return;
  }
  const parts = [
    session.model,
    session.sessionUsd === null ? null : `${usdText(session.sessionUsd)} session`,
    `${costText(total)} today`,
    block === null ? null : `${costText(block)} block, ${durationText(Math.floor((block.endMs - nowMs) / 1000))} left`,
  ];
  await output.line(parts.filter((part) => part !== null).join(" | "));
}

interface Times {
  readonly totalSinceMs: number;
  readonly blocksSinceMs: number;
}

function kept(path: string, context: CommandContext, times: Times): RecentUsage {
  return readKeptUsage(path, { namespace: context.scope.namespace, ...times }, pricesOf(context));
}

/** Counts what sessions that were active lately lack. */
async function counted(context: CommandContext, { totalSinceMs, blocksSinceMs }: Times): Promise<RecentUsage> {
  const startedMs = Date.now();
  const { scope, signal } = context;
  const reader = openStoreUsage(context, await context.openStore("read"));
  try {
    const query = { namespace: scope.namespace, activeSinceMs: blocksSinceMs, signal };
    const { total } = await reader.report({ ...query, sinceMs: totalSinceMs });
    return { total, blocks: await reader.blocks({ ...query, sinceMs: blocksSinceMs }) };
  } finally {
    reader.close();
    markCounted(context, startedMs);
  }
}

/** Holds what Claude Code states about the session that shows the line. */
interface GivenSession {
  readonly model: string | null;
  /** States the cost of the session as the program counts it. It is not added to ours. */
  readonly sessionUsd: number | null;
}

async function givenSession(stdin: Host["stdin"]): Promise<GivenSession> {
  const given = parsedFields(await textOf(stdin));
  const model = given?.["model"];
  const cost = given?.["cost"];
  const name = isFields(model) ? (model["display_name"] ?? model["id"]) : null;
  const usd = isFields(cost) ? cost["total_cost_usd"] : null;
  return {
    model: typeof name === "string" ? name : null,
    sessionUsd: typeof usd === "number" && Number.isFinite(usd) && usd >= 0 ? usd : null,
  };
}

/** Limits the wait for a stdin that no program writes to or closes. */
const longestWaitMs = 200;
const mostCharacters = 100_000;

async function textOf(stdin: Host["stdin"]): Promise<string> {
  if (stdin.isTTY === true) return "";
  let text = "";
  const timer = setTimeout(() => stdin.destroy(), longestWaitMs);
  try {
    for await (const chunk of stdin.setEncoding("utf8")) {
      text += String(chunk);
      if (text.length > mostCharacters) break;
    }
  } catch (error) {
    // The stream ends early when it is destroyed, and what came until then is used.
    if ((error as { readonly code?: unknown }).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
  } finally {
    clearTimeout(timer);
  }
  return text;
}
