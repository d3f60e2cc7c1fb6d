import { isFields, type Fields } from "@throughline/core/internal";
import type { ForeignFormat, FormatPlace } from "../foreign-format.ts";
import { createListReader } from "../message-list.ts";
import { historyName, isHistoryName } from "../message-samples.ts";
import { listIn, objectIn } from "../sample-lines.ts";
import { documentIn } from "../sample-units.ts";
import { ClineMessages } from "./cline-messages.ts";

const lists = [[], ["messages"]];

/** Each extension has a folder below the editor's global storage. */
const extensions = ["saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline"];

const task = ["tasks", /./, historyName];

const messagesFile = /^[A-Za-z0-9._-]{1,200}\.messages\.json$/;

const taskPlaces: readonly FormatPlace[] = [
  ".config/Code/User/globalStorage",
  "Library/Application Support/Code/User/globalStorage",
  "AppData/Roaming/Code/User/globalStorage",
].map((home) => ({
  variables: [],
  home,
  // A copy of the extension's folder may have any name.
  files: [...extensions.map((extension) => [extension, ...task]), task],
}));

/** The newer program keeps the sessions of its command line, its editors and its SDK in one place. */
const sessionsPlace: FormatPlace = {
  variables: ["CLINE_DATA_DIR", { name: "CLINE_DIR", below: "data" }],
  home: ".cline/data",
  files: [["sessions", /./, messagesFile]],
};

/**
 * The format covers tasks of Cline and Roo Code, `tasks/<task id>/api_conversation_history.json`, and the sessions of
 * Cline's newer program, `sessions/<session id>/<session id>.messages.json`.
 */
export const clineFormat: ForeignFormat = {
  name: "cline",
  program: "Cline",
  layout: () => ({ unit: "document", lists, sessions: null }),
  places: [...taskPlaces, sessionsPlace],
  detect: (sample) => {
    const document = documentIn(sample, lists);
    if (document !== null && isSession({ ...document.head, ...document.tail })) return "certain";
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
      if (isPlaced) return [...parts.slice(0, -3), "state", "taskHistory.json"].join("/");
      const isMessages = messagesFile.test(parts.at(-1) ?? "");
      return isMessages ? [...parts.slice(0, -1), `${parts.at(-2) ?? ""}.json`].join("/") : null;
    },
    entryOf: (text, sessionId) => {
      const { session_id: id, cwd, metadata } = objectIn(text);
      const title = isFields(metadata) && id === sessionId ? metadata["title"] : undefined;
      return {
        ...(typeof cwd === "string" && cwd !== "" ? { cwd } : {}),
        ...(typeof title === "string" && title.trim() !== "" ? { title: title.trim(), titleBy: "import" } : {}),
      };
    },
    noteOf: (text, sessionId) => {
      const { session_id: id, compaction_path: compaction } = objectIn(text);
      if (id === sessionId && typeof compaction === "string" && compaction !== "")
        return "Cline sends a summary in place of the session's older messages; here all of them are in the context.";
      const [from, to] = deletedRange(text, sessionId);
      if (typeof from !== "number" || typeof to !== "number") return null;
      return `Cline leaves messages ${from + 1} to ${to + 1} of the task out of its requests; here all of them are in the context.`;
    },
  },
  // The command line resumes its own sessions, whose ids end with random letters. A task of the extension has none.
  resume: (sessionId) => (/^\d{1,20}_\w{1,40}$/.test(sessionId) ? ["cline", "--id", sessionId] : null),
  createReader: (options) => createListReader(new ClineMessages(options.path ?? null), options),
};

/** The program's list of tasks states the range of messages that it no longer sends, by index from 0. */
function deletedRange(text: string, taskId: string): readonly unknown[] {
  const tasks = listIn(text);
  const range = tasks.find(({ id }) => id === taskId)?.["conversationHistoryDeletedRange"];
  return Array.isArray(range) ? (range as readonly unknown[]) : [];
}

/** The document of a session states it beside the messages. */
function isSession({ version, updated_at: updatedAt, agent, sessionId }: Fields): boolean {
  return version === 1 && typeof updatedAt === "string" && typeof agent === "string" && typeof sessionId === "string";
}

const roles: ReadonlySet<unknown> = new Set(["user", "assistant", "tool"]);

function isMessage({ role, content }: Fields): boolean {
  if (!roles.has(role)) return false;
  return typeof content === "string" || (Array.isArray(content) && (content as readonly unknown[]).every(isFields));
}
