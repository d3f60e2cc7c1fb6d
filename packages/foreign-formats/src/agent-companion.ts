import type { ForeignFormat } from "./foreign-format.ts";
import { objectIn } from "./sample-lines.ts";

/**
 * Describes the file that Claude Code, and Qwen Code after it, keeps beside the file of a sub-agent:
 * `agent-<id>.meta.json`.
 *
 * @param agentFile matches the names of the files of sub-agents
 */
export function agentCompanion(agentFile: RegExp): NonNullable<ForeignFormat["companion"]> {
  return {
    path: (file) => (agentFile.test(file.split(/[/\\]/).at(-1) ?? "") ? file.replace(/jsonl$/, "meta.json") : null),
    entryOf: (text) => {
      const { description, agentType } = objectIn(text);
      const title = typeof description === "string" ? { title: description, titleBy: "import" } : {};
      return { ...title, ...(typeof agentType === "string" ? { displayName: agentType } : {}) };
    },
  };
}
