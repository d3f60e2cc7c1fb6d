import { isFields, type Fields } from "@throughline/core/internal";
import type { ForeignFormat, FormatPlace } from "../foreign-format.ts";
import { createListReader } from "../message-list.ts";
import { historyName, isHistoryName } from "../message-samples.ts";
import { listIn } from "../sample-lines.ts";
import { documentIn } from "../sample-units.ts";
import { ClineMessages } from "./cline-messages.ts";

const lists = [[], ["messages"]];

/** Each extension has a folder below the editor's global storage. */
const extensions = ["saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline"];

const task = ["tasks", /./, historyName];

const places: readonly FormatPlace[] = [
  ".config/Code/User/globalStorage",
  "Library/Application Support/Code/User/globalStorage",
  "AppData/Roaming/Code/User/globalStorage",
].map((home) => ({
  variables: [],
  home,
  // A copy of the extension's folder may have any name.
  files: [...extensions.map((extension) => [extension, ...task]), task],
}));

/** The format covers tasks of Cline and Roo Code: `tasks/<task id>/api_conversation_history.json`. */
export const clineFormat: ForeignFormat = {
  name: "cline",
  program: "Cline",
  layout: () => ({ unit: "document", lists, sessions: null }),
  places,
  detect: (sample) => {
    const document = documentIn(sample, lists);
    const messages = document?.elements.filter(({ role }) => role !== undefined) ?? [];
    if (document === null || messages.length === 0 || !messages.every(isMessage)) return null;
    // Only these programs use the file name. In a renamed file, a time on every message identifies the format.
    const isNamed = isHistoryName(sample.path);
    const isDated = messages.every(({ ts }) => typeof ts === "number");
    return isNamed || isDated ? "certain" : null;
  },
  companion: {
    path: (file) => {
      const parts = file.split(/[/\\]/);
      const isPlaced = parts.at(-3) === "tasks" && isHistoryName(file);
      return isPlaced ? [...parts.slice(0, -3), "state", "taskHistory.json"].join("/") : null;
    },
    entryOf: () => ({}),
    noteOf: (text, sessionId) => {
      const [from, to] = deletedRange(text, sessionId);
      if (typeof from !== "number" || typeof to !== "number") return null;
      return `Cline leaves messages ${from + 1} to ${to + 1} of the task out of its requests; here all of them are in the context.`;
    },
  },
  createReader: (options) => createListReader(new ClineMessages(options.path ?? null), options),
};

/** The program's list of tasks states the range of messages that it no longer sends, by index from 0. */
function deletedRange(text: string, taskId: string): readonly unknown[] {
  const tasks = listIn(text);
  const range = tasks.find(({ id }) => id === taskId)?.["conversationHistoryDeletedRange"];
  return Array.isArray(range) ? (range as readonly unknown[]) : [];
}

const roles: ReadonlySet<unknown> = new Set(["user", "assistant", "tool"]);

function isMessage({ role, content }: Fields): boolean {
  if (!roles.has(role)) return false;
  return typeof content === "string" || (Array.isArray(content) && (content as readonly unknown[]).every(isFields));
}
