import { blocksText, earlierSessions, loadExisting } from "@throughline/core/internal";
import { withinMemory } from "@throughline/core/internal/node";
import type { SessionState, SessionStore, StoredRecord } from "@throughline/core";
import { createTokenEstimator } from "@throughline/tokens";
import { contextReport } from "@throughline/tokens/internal";
import { counted } from "../counted.ts";
import { currentHeading, earlierHeading } from "../earlier-sessions.ts";
import { isBoundary, readTail } from "@throughline/history/internal";
import type { Piece } from "../output.ts";
import { shownFolder } from "../session-names.ts";
import { terminalSafeLine } from "../terminal-safe.ts";
import { forkNotice } from "./fork-notice.ts";
import type { ReplContext } from "./repl-context.ts";

const shownTextCharacters = 200;
const shownResultCharacters = 100;
const usualMessages = 20;

/**
 * Handles `/history [N] [--all]`: one line for each message, with 200 characters of a text or 100 of a tool result.
 * `--all` includes records before compactions and resets; all of them unless N limits the count.
 */
export async function showHistory({ context, conversation }: ReplContext, argument: string): Promise<void> {
  const { output, signal } = context;
  const { session, store } = conversation;
  // A fork that waits for its first message begins with the messages of the import.
  const source = session ?? conversation.origin;
  const wanted = historyArguments(argument);
  if (wanted === null) {
    await output.line({ text: `/history [N] [--all] takes no ${JSON.stringify(argument)}.`, style: "red" });
    return;
  }
  if (source === null) {
    await output.line("There are no messages yet.");
    return;
  }
  await session?.refresh();
  const { isAll, count } = wanted;
  // The whole window is read, to count the messages that are not shown.
  const selection = { isAll, isAllBranches: false, afterSeq: 0, role: shownRole, tail: isAll ? count : Infinity };
  const { head, ref, sessionId } = source;
  const found = count === 0 ? [] : await readTail(withinMemory(store), ref, { head, selection, roleOf }, signal);
  const shown = found.slice(Math.max(0, found.length - count));
  const earlier = isAll ? [] : found.slice(0, found.length - shown.length).filter(({ type }) => type === "message");
  if (earlier.length > 0) await output.line({ text: `… ${counted(earlier.length, "earlier message")}`, style: "dim" });
  const hasEarlier =
    isAll && (await showEarlierSessions(context, store, await loadExisting(store, ref), count - shown.length));
  if (hasEarlier) await output.line({ text: currentHeading(sessionId), style: "dim" });
  for (const stored of shown) await output.line(...historyLine(stored));
}

/** Returns false if the key has no earlier session, or `count` is 0. */
async function showEarlierSessions(
  { output, signal }: ReplContext["context"],
  store: SessionStore,
  current: SessionState,
  count: number,
): Promise<boolean> {
  const newestFirst: { readonly heading: string; readonly records: readonly StoredRecord[] }[] = [];
  let left = count;
  if (left > 0)
    for await (const one of earlierSessions(store, current, signal)) {
      const { state } = one;
      const selection = { isAll: true, isAllBranches: false, afterSeq: 0, role: shownRole, tail: left };
      const records =
        state === null
          ? []
          : await readTail(withinMemory(store), state.ref, { head: state.head, selection, roleOf }, signal);
      newestFirst.push({ heading: earlierHeading(one), records });
      left -= records.length;
      if (left <= 0) break;
    }
  for (const { heading, records } of newestFirst.toReversed()) {
    await output.line({ text: terminalSafeLine(heading), style: "dim" });
    for (const stored of records) await output.line(...historyLine(stored));
  }
  return newestFirst.length > 0;
}

const shownRole = "shown";

/** Returns null for an invalid argument. Without a number, the usual count applies; with `--all`, no limit. */
function historyArguments(argument: string): { readonly isAll: boolean; readonly count: number } | null {
  const words = argument.split(/\s+/).filter((word) => word !== "");
  const isAll = words.includes("--all");
  const [number, ...rest] = words.filter((word) => word !== "--all");
  if (rest.length > 0) return null;
  if (number === undefined) return { isAll, count: isAll ? Infinity : usualMessages };
  return /^\d{1,6}$/.test(number) ? { isAll, count: Number(number) } : null;
}

function roleOf(stored: StoredRecord): string | null {
  return (stored.type === "message" && !stored.side) || isBoundary(stored) ? shownRole : null;
}

function historyLine({ record, seq, type }: StoredRecord): readonly Piece[] {
  if (type !== "message") {
    const summary = typeof record["summary"] === "string" ? record["summary"] : "";
    return [{ text: `#${seq} ${type}`, style: "dim" }, `  ${shortened(summary, shownTextCharacters)}`];
  }
  const { role, content } = (record["message"] ?? {}) as { readonly role?: unknown; readonly content?: unknown };
  const most = role === "toolResult" ? shownResultCharacters : shownTextCharacters;
  return [{ text: `#${seq} ${String(role)}`, style: "cyan" }, `  ${shortened(blocksText(content), most)}`];
}

function shortened(given: string, most: number): string {
  const text = terminalSafeLine(given);
  return text.length > most ? `${text.slice(0, most).toWellFormed()}…` : text;
}

export async function showContext({ context, conversation }: ReplContext): Promise<void> {
  const { output } = context;
  for (const line of await forkNotice(context, conversation)) await output.line(line);
  if (conversation.origin !== null) return;
  if (conversation.session === null) {
    await output.line("Context usage: ~0 tokens (no messages yet)");
    return;
  }
  await showInstructions({ context, conversation });
  const { gauge } = await conversation.session.messages();
  const [used = "", bar] = contextReport(gauge);
  await output.line(used);
  const percent = gauge.percent ?? 0;
  if (bar !== undefined)
    await output.line({ text: bar, style: percent < 50 ? "green" : percent < 80 ? "yellow" : "red" });
  await output.line({ text: sourceText(gauge.source), style: "dim" });
}

async function showInstructions({
  context,
  conversation: { chosen, projectFiles },
}: Pick<ReplContext, "context" | "conversation">): Promise<void> {
  if (projectFiles.length === 0) return;
  const { chat, modelId } = chosen.model;
  const counter = await createTokenEstimator().counterFor({ provider: chat.provider, modelId });
  for (const { path, text } of projectFiles) {
    const name = shownFolder(path, context.host.userHome);
    await context.output.line(`Instructions from ${name}: ~${counter.countText(text)} tokens`);
  }
}

function sourceText(source: string): string {
  if (source === "actual") return "counted by the provider at the last call";
  return source === "actual+delta" ? "the provider's last count and an estimate of what is new" : "estimated";
}
