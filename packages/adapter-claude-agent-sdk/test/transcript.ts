import type { SessionKey, SessionStoreEntry } from "@anthropic-ai/claude-agent-sdk";

/** A UUID of a number. */
export function uuidAt(at: number): string {
  return `00000000-0000-4000-8000-${at.toString(16).padStart(12, "0")}`;
}

export const sessionId: string = "5e551011-0000-4000-8000-000000000001";
export const key: SessionKey = { projectKey: "-home-u-project", sessionId };

/** A line of a transcript: number `at`, behind number `at - 1`. */
export function line(at: number, fields: Readonly<Record<string, unknown>>, from = 1): SessionStoreEntry {
  return {
    parentUuid: at === from ? null : uuidAt(at - 1),
    isSidechain: false,
    userType: "external",
    cwd: "/home/u/project",
    sessionId,
    version: "2.1.274",
    gitBranch: "main",
    type: "user",
    uuid: uuidAt(at),
    timestamp: new Date(Date.UTC(2026, 4, 7, 18, 0, 0, at)).toISOString(),
    ...fields,
  };
}

export function prompt(at: number, text: string, from = 1): SessionStoreEntry {
  return line(at, { message: { role: "user", content: text } }, from);
}

export function reply(at: number, content: readonly unknown[], from = 1): SessionStoreEntry {
  const message = {
    id: `msg_${at}`,
    type: "message",
    role: "assistant",
    model: "claude-opus-4-7",
    content,
    stop_reason: "end_turn",
    usage: { input_tokens: 3, output_tokens: 5 },
  };
  return line(at, { type: "assistant", message }, from);
}

/** A turn with a tool: four lines from number `from` on. */
export function turn(from: number, text: string, first = 1): readonly SessionStoreEntry[] {
  const id = `toolu_${from}`;
  return [
    prompt(from, text, first),
    reply(from + 1, [{ type: "tool_use", id, name: "Read", input: { file_path: "a.txt" } }], first),
    line(
      from + 2,
      {
        message: { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "the word is heron" }] },
        toolUseResult: { type: "text", file: { filePath: "a.txt" } },
        sourceToolAssistantUUID: uuidAt(from + 1),
      },
      first,
    ),
    reply(from + 3, [{ type: "text", text: `I read a.txt, in line ${from + 3}.` }], first),
  ];
}
