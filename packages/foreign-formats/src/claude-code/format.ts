import { isFields, type Fields } from "@throughline/core/internal";
import { agentCompanion } from "../agent-companion.ts";
import { fileOfLines, type ForeignFormat, type FormatMatch } from "../foreign-format.ts";
import { isQwenLine } from "../qwen-code/format.ts";
import { matchOfLines, objectIn } from "../sample-lines.ts";
import { createClaudeCodeReader } from "./read-claude-code.ts";
import { claudeCodeWriter } from "./write-claude-code.ts";

const sessionFile = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\.jsonl$/i;
const agentFile = /^agent-[A-Za-z0-9_-]{1,64}\.jsonl$/;
const anyName = /./;

/**
 * The format covers Claude Code's sessions, `projects/<folder of the project>/<session id>.jsonl`, and those of their
 * sub-agents below.
 */
export const claudeCodeFormat: ForeignFormat = {
  name: "claude-code",
  program: "Claude Code",
  layout: () => fileOfLines,
  places: [
    {
      variables: ["CLAUDE_CONFIG_DIR"],
      home: ".claude",
      files: [
        ["projects", anyName, sessionFile],
        ["projects", anyName, agentFile],
        ["projects", anyName, anyName, "subagents", agentFile],
        ["projects", anyName, anyName, "subagents", anyName, agentFile],
        ["projects", anyName, anyName, "subagents", anyName, anyName, agentFile],
      ],
    },
  ],
  detect: (sample) => matchOfLines(sample, matchOf),
  createReader: createClaudeCodeReader,
  companion: agentCompanion(agentFile),
  strayTitles: {
    isSession: (name) => sessionFile.test(name),
    titlesIn: (head) =>
      head
        .split("\n")
        .filter((line) => line.includes('"leafUuid"'))
        .map(objectIn)
        .flatMap(({ type, summary, leafUuid }) =>
          type === "summary" && typeof leafUuid === "string" && typeof summary === "string"
            ? [[leafUuid, summary] as const]
            : [],
        ),
  },
  writer: claudeCodeWriter,
  resume: (sessionId) => ["claude", "--resume", sessionId],
};

/** No other program writes lines with these types and fields, so one of them identifies the format. */
const factTypes: ReadonlyMap<unknown, string> = new Map([
  ["summary", "leafUuid"],
  ["file-history-snapshot", "messageId"],
  ["queue-operation", "operation"],
  ["ai-title", "aiTitle"],
  ["custom-title", "customTitle"],
  ["last-prompt", "lastPrompt"],
]);

function matchOf(line: Fields): FormatMatch | null {
  const { type, uuid, sessionId, message } = line;
  if (isQwenLine(line)) return null;
  if (typeof uuid === "string" && typeof sessionId === "string" && ("parentUuid" in line || "isSidechain" in line))
    return "certain";
  const needed = factTypes.get(type);
  if (needed !== undefined && line[needed] !== undefined) return "certain";
  if (type !== "user" && type !== "assistant") return null;
  // Copies by other tools leave fields out. A flat line of claw0 has its content beside its type, so it is excluded.
  const isMessage = isFields(message) && message["content"] !== undefined && line["content"] === undefined;
  return isMessage ? (typeof uuid === "string" && typeof sessionId === "string" ? "certain" : "likely") : null;
}
