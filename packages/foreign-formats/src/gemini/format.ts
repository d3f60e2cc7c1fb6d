import { isFields, type Fields } from "@throughline/core/internal";
import { fileOfLines, type ForeignFormat, type FormatSample } from "../foreign-format.ts";
import { firstObjects, matchOfLines } from "../sample-lines.ts";
import { documentIn } from "../sample-units.ts";
import { geminiWriter } from "./write-gemini.ts";
import { createGeminiReader } from "./read-gemini.ts";

const anyName = /./;
const sessionFile = /^session-.{1,200}\.jsonl?$/;
const agentFile = /^[A-Za-z0-9_-]{1,200}\.jsonl$/;
/** Older versions stored a session as one document, so the list of messages is inside of it. */
const lists = [["messages"]];

/**
 * The format covers Gemini CLI's sessions, `tmp/<name of the project>/chats/session-<time>-<id>.jsonl`, and those of
 * their sub-agents below.
 */
export const geminiFormat: ForeignFormat = {
  name: "gemini",
  program: "Gemini CLI",
  layout: (sample) => (isWholeSession(sample) ? { unit: "document", lists, sessions: null } : fileOfLines),
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
    if (isWholeSession(sample)) return "certain";
    return matchOfLines(sample, (line) => {
      if (typeof line["sessionId"] === "string" && typeof line["projectHash"] === "string") return "certain";
      return isMessage(line) ? "likely" : null;
    });
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
  resume: (sessionId) => ["gemini", "--resume", sessionId],
};

/** Older versions stored a session as one document: the header with the messages in it. */
function isWholeSession(sample: FormatSample): boolean {
  const document = documentIn(sample, lists);
  if (document === null) return false;
  // A line of a newer version is a header too and may have a list of messages, so such a file is not one document.
  if (sample.path.endsWith(".jsonl") && firstObjects(sample).length > 0) return false;
  const { sessionId, projectHash } = { ...document.head, ...document.tail };
  return (typeof sessionId === "string" && typeof projectHash === "string") || document.elements.some(isMessage);
}

/** A file may have lost its header, but its messages still identify the program. */
function isMessage({ id, type, timestamp, content, thoughts, tokens }: Fields): boolean {
  if (typeof id !== "string" || typeof timestamp !== "string" || content === undefined) return false;
  return type === "gemini" && (Array.isArray(thoughts) || isFields(tokens));
}
