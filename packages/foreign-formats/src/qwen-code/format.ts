import { isFields, type Fields } from "@throughline/core/internal";
import { agentCompanion } from "../agent-companion.ts";
import { fileOfLines, type ForeignFormat } from "../foreign-format.ts";
import { matchOfLines } from "../sample-lines.ts";
import { createQwenCodeReader } from "./read-qwen-code.ts";

const anyName = /./;
const sessionFile = /^[0-9a-fA-F-]{32,36}\.jsonl$/;
const agentFile = /^agent-[A-Za-z0-9_-]{1,200}\.jsonl$/;

/**
 * The format covers Qwen Code's sessions, `projects/<folder of the project>/chats/<session id>.jsonl`, archived
 * sessions, and those of sub-agents.
 */
export const qwenCodeFormat: ForeignFormat = {
  name: "qwen-code",
  program: "Qwen Code",
  layout: () => fileOfLines,
  places: [
    {
      variables: ["QWEN_RUNTIME_DIR", "QWEN_HOME"],
      home: ".qwen",
      files: [
        ["projects", anyName, "chats", sessionFile],
        ["projects", anyName, "chats", "archive", sessionFile],
        ["projects", anyName, "subagents", anyName, agentFile],
      ],
    },
  ],
  detect: (sample) => matchOfLines(sample, (line) => (isQwenLine(line) ? "certain" : null)),
  createReader: createQwenCodeReader,
  companion: agentCompanion(agentFile),
  resume: (sessionId) => ["qwen", "--resume", sessionId],
};

/**
 * The program's lines have the ids of Claude Code's lines. Only Qwen Code stores a message as parts, and the facts of
 * the program in `systemPayload`.
 */
export function isQwenLine({ uuid, sessionId, message, systemPayload }: Fields): boolean {
  if (typeof uuid !== "string" || typeof sessionId !== "string") return false;
  return systemPayload !== undefined || (isFields(message) && Array.isArray(message["parts"]));
}
