import { isJsonFields, type JsonFields } from "@throughline/openclaw-format/internal";
import type { ForeignFormat, FormatMatch } from "../foreign-format.ts";
import { firstObjects } from "../sample-lines.ts";
import { geminiWriter } from "./write-gemini.ts";
import { createGeminiReader } from "./read-gemini.ts";

const anyName = /./;
const sessionFile = /^session-.{1,200}\.jsonl$/;
const agentFile = /^[A-Za-z0-9_-]{1,200}\.jsonl$/;

/** Gemini CLI's sessions: `tmp/<name of the project>/chats/session-<time>-<id>.jsonl`, and those of its sub-agents below. */
export const geminiFormat: ForeignFormat = {
  name: "gemini",
  program: "Gemini CLI",
  unit: "line",
  places: [
    {
      variables: ["GEMINI_CLI_HOME"],
      home: "",
      files: [
        [".gemini", "tmp", anyName, "chats", sessionFile],
        [".gemini", "tmp", anyName, "chats", anyName, agentFile],
      ],
    },
  ],
  detect: (sample) => {
    let best: FormatMatch | null = null;
    for (const line of firstObjects(sample)) {
      if (typeof line["sessionId"] === "string" && typeof line["projectHash"] === "string") return "certain";
      if (isMessage(line)) best = "likely";
    }
    return best;
  },
  createReader: createGeminiReader,
  companion: {
    path: (file) => {
      const folder = /^(.{0,4000}?[/\\]\.gemini[/\\]tmp[/\\][^/\\]{1,255})[/\\]chats[/\\]/.exec(file)?.[1];
      return folder === undefined ? null : `${folder}/.project_root`;
    },
    entryOf: (text) => (text.trim() === "" ? {} : { cwd: text.trim() }),
  },
  writer: geminiWriter,
};

/** A file whose header was lost still says by its messages whose it is. */
function isMessage({ id, type, timestamp, content, thoughts, tokens }: JsonFields): boolean {
  if (typeof id !== "string" || typeof timestamp !== "string" || content === undefined) return false;
  return type === "gemini" && (Array.isArray(thoughts) || isJsonFields(tokens));
}
