type Fields = Readonly<Record<string, unknown>>;

export const threadId = "T-0199aaaa-bbbb-7ccc-8ddd-eeeeffff0001";

export function ampUser(content: readonly Fields[], more: Fields = {}): Fields {
  return { role: "user", messageId: 0, content, meta: { sentAt: 1_790_000_000_000 }, ...more };
}

export function ampReply(content: readonly Fields[], usage: Fields = {}): Fields {
  const counts = { inputTokens: 12, outputTokens: 80, cacheCreationInputTokens: 900, cacheReadInputTokens: 3400 };
  const stated = { model: "claude-opus-4-5-20251101", ...counts, timestamp: "2026-09-21T13:46:45.000Z", ...usage };
  return {
    role: "assistant",
    messageId: 1,
    content,
    state: { type: "complete", stopReason: "tool_use" },
    usage: stated,
  };
}

export function ampCall(id: string, name: string, input: Fields): Fields {
  return { type: "tool_use", complete: true, id, name, input, blockState: {} };
}

export function ampResult(id: string, run: Fields): Fields {
  return { type: "tool_result", toolUseID: id, run };
}

export function ampThread(messages: readonly Fields[], more: Fields = {}): Fields {
  const repository = { type: "git", url: "https://u:secret@example.com/r.git", ref: "refs/heads/main", sha: "abc" };
  const tree = { displayName: "proj x", uri: "file:///home/u/proj%20x", repository };
  const about = { v: 42, id: threadId, created: 1_790_000_000_000, title: "Fix the loop", agentMode: "smart" };
  return {
    ...about,
    messages,
    env: { initial: { trees: [tree], platform: { os: "linux" } } },
    nextMessageId: 9,
    ...more,
  };
}

/** A message of each kind. */
export const amp: Fields = ampThread([
  ampUser([{ type: "text", text: "Fix the bound" }]),
  ampReply([
    { type: "thinking", thinking: "It is off.", signature: "sig", provider: "anthropic" },
    ampCall("toolu_01", "Bash", { cmd: "grep n a.rs" }),
    ampCall("toolu_02", "edit_file", { path: "/w/a.rs" }),
  ]),
  ampUser([
    ampResult("toolu_01", { status: "done", result: { output: "7: n\n", exitCode: 0 }, progress: [] }),
    ampResult("toolu_02", { status: "error", error: { message: "no such file" } }),
  ]),
  { role: "info", content: [{ type: "summary", summary: { type: "message", summary: "Short." } }] },
  ampReply([{ type: "text", text: "Done." }]),
]);
