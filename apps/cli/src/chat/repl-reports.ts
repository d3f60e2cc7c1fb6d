import { readWindow } from "@throughline/core";
import { contextReport } from "@throughline/tokens";
import { counted } from "../counted.ts";
import { blocksText } from "../record-text.ts";
import { shorten } from "../text-table.ts";
import { terminalSafeLine } from "../terminal-safe.ts";
import type { ReplScene } from "./repl-commands.ts";

const shownTextCharacters = 200;
const shownResultCharacters = 100;
const usualMessages = 20;

/** `/history [N]`: the last messages, each on a line: 200 characters of a text, 100 of a tool's result. */
export async function showHistory({ context, conversation }: ReplScene, argument: string): Promise<void> {
  const { output, signal } = context;
  const { session } = conversation;
  if (session === null) {
    await output.line("Nothing was said yet.");
    return;
  }
  const wanted = /^\d{1,6}$/.test(argument) ? Number(argument) : usualMessages;
  const { records } = await readWindow(conversation.store, session.ref, { signal });
  const messages = records.filter(({ type, side }) => type === "message" && !side);
  const shown = wanted === 0 ? [] : messages.slice(-wanted);
  if (shown.length < messages.length)
    await output.line({ text: `… ${counted(messages.length - shown.length, "earlier message")}`, style: "dim" });
  for (const { record, seq } of shown) {
    const message = record["message"] as { readonly role?: unknown; readonly content?: unknown };
    const isResult = message.role === "toolResult";
    const text = terminalSafeLine(blocksText(message.content));
    const most = isResult ? shownResultCharacters : shownTextCharacters;
    const cut = text.length > most ? `${text.slice(0, most).toWellFormed()}…` : text;
    await output.line({ text: `#${seq} ${String(message.role)}`, style: "cyan" }, `  ${cut}`);
  }
}

/** `/context`: the line, the bar, and where the number comes from. */
export async function showContext({ context: { output }, conversation }: ReplScene): Promise<void> {
  if (conversation.session === null) {
    await output.line("Context usage: ~0 tokens (nothing was said yet)");
    return;
  }
  const { gauge } = await conversation.session.messages();
  const [used = "", bar] = contextReport(gauge);
  await output.line(used);
  const percent = gauge.percent ?? 0;
  if (bar !== undefined)
    await output.line({ text: bar, style: percent < 50 ? "green" : percent < 80 ? "yellow" : "red" });
  await output.line({ text: sourceText(gauge.source), style: "dim" });
}

function sourceText(source: string): string {
  if (source === "actual") return "counted by the provider at the last call";
  return source === "actual+delta" ? "the provider's last count and an estimate of what is new" : "estimated";
}

/** `/status`: the conversation in figures. */
export async function showStatus({ context: { output }, conversation }: ReplScene): Promise<void> {
  const { session, chosen, ref, store } = conversation;
  const state = await store.load(ref);
  const gauge = session === null ? null : (await session.messages()).gauge;
  const { entry, head, messageCount } = state ?? { entry: null, head: null, messageCount: 0 };
  const percent = gauge?.displayPercent == null ? "?" : `${gauge.displayPercent.toFixed(1)} %`;
  const rows: readonly (readonly [string, string])[] = [
    ["session", `${ref.key}${state === null ? " (not made yet)" : `, id ${state.sessionId}`}`],
    ["model", `${chosen.name} (${chosen.reason})`],
    ["messages", `${messageCount}, ${counted(head?.lastSeq ?? 0, "record")}`],
    ["tokens", gauge === null ? "?" : `~${gauge.tokens} of ${gauge.windowTokens ?? "an unknown window"}, ${percent}`],
    ["spent", `${numberOf(entry?.inputTokens)} in, ${numberOf(entry?.outputTokens)} out`],
    ["compactions", String(numberOf(entry?.compactionCount))],
    ["breaker", "none: no summaries are made in this build"],
    ["pending", session?.interrupted == null ? "nothing" : `turn ${session.interrupted.turnId} was interrupted`],
    ["store", `${store.capabilities.name}, ${store.capabilities.defaultDurability}`],
  ];
  for (const [name, text] of rows)
    await output.line({ text: name.padEnd(13), style: "cyan" }, shorten(terminalSafeLine(text), 400));
}

function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
