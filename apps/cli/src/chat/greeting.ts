import type { InterruptedTurn } from "@throughline/session/internal";
import { shellWord, turnHolder } from "@throughline/core/internal";
import type { Session } from "@throughline/session";
import { counted } from "../counted.ts";
import { terminalSafeLine } from "../terminal-safe.ts";
import { shorten } from "../cells.ts";
import { ageText } from "../time-text.ts";
import type { ChosenModel } from "@throughline/agent/internal";

export function modelText({ name, isOffline, reason }: ChosenModel): string {
  if (!isOffline) return `model: ${name} (${reason})`;
  return `model: offline rules, not a language model (${reason}); --model provider/name chooses one`;
}

/** Returns for example `Restored: 3 previous turns`; null without turns. */
export function restoredText({ restored }: Session): string | null {
  return restored.turns === 0 ? null : `Restored: ${counted(restored.turns, "previous turn")}`;
}

function interruptedText({ owner, sinceMs, text }: InterruptedTurn, shown: number): string {
  const when = sinceMs === null ? "" : ` ${ageText(sinceMs, Date.now())} ago`;
  const said = text === null ? "" : `: ${JSON.stringify(shorten(terminalSafeLine(text), 60))}`;
  const reply = shown === 0 ? "" : ` ${counted(shown, "character")} of its reply ${shown === 1 ? "is" : "are"} kept.`;
  return `The last turn, of ${turnHolder(owner)}, was interrupted${when}${said}.${reply} Its messages are stored; /continue resumes it.`;
}

/** Explains how the last turn can be finished; null for a session whose last turn ended. */
export function unfinishedText({ pendingApprovals, interruptedTurn, partialReply, key }: Session): string | null {
  // Calls of an interrupted turn are asked about again when the turn is resumed.
  if (interruptedTurn !== null) return interruptedText(interruptedTurn, partialReply?.text.length ?? 0);
  if (pendingApprovals.length === 0) return null;
  const calls = counted(pendingApprovals.length, "tool call");
  return `Waits for an answer: ${calls}. \`throughline approvals ${shellWord(key)}\` lists and decides; the program that asked runs what is approved. A message refuses the rest.`;
}
