import type { StoredRecord, ToolResultMessage } from "@throughline/core";
import { blocksText } from "@throughline/core/internal";
import { visibleText } from "@throughline/transcript-view/internal";
import { counted } from "../../counted.ts";
import { terminalSafe, terminalSafeLine } from "../../terminal-safe.ts";
import { toolTargets } from "../tool-line.ts";
import type { Signs } from "./signs.ts";
import type { Styles } from "./styles.ts";

/** Older results are printed by `throughline show`. */
const mostKept = 50;
const mostLines = 2000;

interface Folded {
  readonly title: string;
  readonly text: string;
}

/** Holds the results of tools, of which the screen shows one row each. */
export class FoldedTexts {
  readonly #targets = new Map<string, string>();
  #kept: readonly Folded[] = [];

  /** Keeps what a record has beyond its row. */
  take({ record }: StoredRecord): void {
    for (const { id, target } of toolTargets(record)) this.#targets.set(id, target);
    const message = record["message"] as ToolResultMessage | undefined;
    if (message?.role !== "toolResult") return;
    const title = `${message.toolName ?? "tool"} ${this.#targets.get(message.toolCallId) ?? ""}`.trim();
    this.#targets.delete(message.toolCallId);
    this.#kept = [...this.#kept, { title, text: blocksText(message.content) }].slice(-mostKept);
  }

  /** Returns the rows of the newest text that was not shown yet. Null where none is left. */
  unfold(styles: Styles, signs: Signs): readonly string[] | null {
    const newest = this.#kept.at(-1);
    if (newest === undefined) return null;
    this.#kept = this.#kept.slice(0, -1);
    const lines = newest.text.split("\n");
    const rows = lines
      .slice(0, mostLines)
      .map((line) => `  ${terminalSafe(visibleText(line)).replaceAll("\t", "    ")}`);
    const left = lines.length - rows.length;
    return [
      "",
      `${signs.tool} ${styles.bold(terminalSafeLine(newest.title))}`,
      ...rows,
      ...(left > 0 ? [styles.dim(`  ${signs.ellipsis} ${counted(left, "more line")}`)] : []),
    ];
  }
}
