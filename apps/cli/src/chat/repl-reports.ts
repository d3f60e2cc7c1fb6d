import { readWindow } from "@throughline/core";
import { contextReport } from "@throughline/tokens";
import { counted } from "../counted.ts";
import { blocksText } from "@throughline/queries/records";
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
  await session.refresh();
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
