type Fields = Readonly<Record<string, unknown>>;

export const droidId = "0b0e1b5e-0000-4000-8000-0000000000d1";

export const droidStart: Fields = {
  type: "session_start",
  id: droidId,
  title: "where is the bug?",
  sessionTitle: "Find the bug",
  owner: "u",
  version: 2,
  cwd: "/w",
};

export function droidMessage(number: number, role: string, content: unknown, more: Fields = {}): Fields {
  const timestamp = new Date(1_790_000_000_000 + number * 1000).toISOString();
  const parentId = number === 1 ? {} : { parentId: `m${number - 1}` };
  return { type: "message", id: `m${number}`, timestamp, ...parentId, message: { role, content, ...more } };
}

const sonnet = { modelId: "claude-sonnet-4-5" };

/** A line of each kind. */
export const droid: readonly Fields[] = [
  droidStart,
  droidMessage(1, "user", [{ type: "text", text: "<system-reminder>" }], { visibility: "llm_only" }),
  droidMessage(2, "user", [{ type: "text", text: "Where is the bug?" }]),
  droidMessage(
    3,
    "assistant",
    [
      { type: "thinking", thinking: "Hm.", signature: "sig", durationMs: 4 },
      { type: "text", text: "I look." },
      { type: "tool_use", id: "c1", name: "Read", input: { file_path: "a.ts" } },
    ],
    sonnet,
  ),
  droidMessage(4, "user", [{ type: "tool_result", tool_use_id: "c1", content: "line 1", is_error: false }]),
  droidMessage(5, "user", [], { hookEventName: "Stop", hookStatus: "completed" }),
  droidMessage(6, "user", "notice", { visibility: "user_only" }),
  { type: "todo_state", id: "t1", timestamp: "2026-09-21T14:14:00.000Z", todos: [] },
  droidMessage(7, "assistant", [{ type: "text", text: "In line 1." }], sonnet),
  { type: "agent_turn_outcome", turnId: "m2", reason: "completed" },
];
