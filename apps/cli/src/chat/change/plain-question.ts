import type { ChangeAnswer, ChangeQuestion } from "@throughline/agent/internal";
import { terminalSafeLine } from "../../terminal-safe.ts";
import { changeLines } from "./change-lines.ts";

/** A person who hears the lines does not want thousands. */
const mostLines = 40;
const names = { same: "same", added: "added", removed: "removed", gap: "further on" } as const;

/** Returns a change in words, for a terminal without cursor movement and for people who hear it. */
export function plainQuestion(question: ChangeQuestion): readonly string[] {
  const { tool, path, number, total } = question;
  const { summary, lines } = changeLines(question);
  const count = total > 1 ? `, change ${number} of ${total}` : "";
  const shown = lines.slice(0, mostLines).map(({ kind, before, after, text }) => {
    const line = kind === "gap" ? "" : ` line ${before ?? after}`;
    return kind === "gap" ? `${names.gap}:` : `${names[kind]}${line}: ${terminalSafeLine(text)}`;
  });
  const left = lines.length - shown.length;
  return [
    `${tool} ${terminalSafeLine(path)}: ${summary}${count}`,
    ...shown,
    ...(left > 0 ? [`and ${left} more ${left === 1 ? "line" : "lines"}`] : []),
    "Allow this change? y: yes. s: yes, and stop asking in this session. n: no; a reason may follow.",
  ];
}

/** Returns null for a text that is no answer. */
export function plainAnswer(text: string): ChangeAnswer | null {
  const [word = "", ...rest] = text.trim().split(/\s+/);
  const words = rest.join(" ");
  switch (word.toLowerCase()) {
    case "y":
    case "yes":
      return words === "" ? { decision: "once" } : null;
    case "s":
      return words === "" ? { decision: "session" } : null;
    case "n":
    case "no":
      return { decision: "no", words: words === "" ? null : words };
    default:
      return null;
  }
}
