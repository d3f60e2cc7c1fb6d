import type { BashExecutionMessage } from "@throughline/core/internal";

/** Summaries in transcripts of known programs start with these prefixes. Throughline writes the first one. */
export const summaryPrefixes: readonly string[] = ["[Previous conversation summary]", "[Previous context summary]"];

/** Returns the summary of a text that starts with a known prefix, or null for any other text. */
export function readSummaryText(text: string): string | null {
  const prefix = summaryPrefixes.find((known) => text.startsWith(`${known}\n`));
  return prefix === undefined ? null : text.slice(prefix.length + 1);
}

/** The words match those of pi, so that a model sees the same text in either program. */
export function branchSummaryText(summary: string): string {
  return `The following is a summary of a branch that this conversation came back from:\n\n<summary>\n${summary}</summary>`;
}

/** Formats a command that the user ran, with the words of pi. */
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
