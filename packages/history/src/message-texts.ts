import type { BashExecutionMessage } from "@throughline/core/internal";

/** What a summary begins with in the messages of the programs whose transcripts are read; ours is the first. */
export const summaryPrefixes: readonly string[] = ["[Previous conversation summary]", "[Previous context summary]"];

/** The summary in a text that begins with one of the known prefixes; null when the text is none. */
export function readSummaryText(text: string): string | null {
  const prefix = summaryPrefixes.find((known) => text.startsWith(`${known}\n`));
  return prefix === undefined ? null : text.slice(prefix.length + 1);
}

/** As pi words it, so that a model sees the same whichever program continues the session. */
export function branchSummaryText(summary: string): string {
  return `The following is a summary of a branch that this conversation came back from:\n\n<summary>\n${summary}</summary>`;
}

/** A command the user ran, as pi words it. */
export function bashExecutionText(message: BashExecutionMessage): string {
  const { command, output, exitCode, cancelled, truncated, fullOutputPath } = message;
  const lines = [`Ran \`${command}\``, output === "" ? "(no output)" : `\`\`\`\n${output}\n\`\`\``];
  if (cancelled === true) lines.push("", "(command cancelled)");
  else if (typeof exitCode === "number" && exitCode !== 0) lines.push("", `Command exited with code ${exitCode}`);
  if (truncated === true && typeof fullOutputPath === "string") {
    lines.push("", `[Output truncated. Full output: ${fullOutputPath}]`);
  }
  return lines.join("\n");
}

export const redactedText = "[A message that stood here was removed from the history.]";
