// Transcripts of Claude Code, Codex and pi of any size: the same conversation in the lines of each.
import { closeSync, openSync, writeSync } from "node:fs";

export const lineFormats = ["pi", "claude-code", "codex"] as const;
export type LineFormat = (typeof lineFormats)[number];

const words = "Words of a conversation about files, ports and plans. ";
const question = words.repeat(4);
const output = `${words}\n`.repeat(30);
const answer = words.repeat(10);
const signature = "c2lnbmF0dXJl".repeat(20);
const startMs = Date.UTC(2026, 0, 1);
const sessionId = "019e03b2-11a2-7320-9098-5d831813e66c";

const time = (count: number): string => new Date(startMs + count * 10).toISOString();
const uuid = (count: number): string => `00000000-0000-4000-8000-${count.toString(16).padStart(12, "0")}`;

/** The lines of one turn: a question, thinking, a call, its result, the answer. */
const turns: Readonly<Record<LineFormat, (turn: number) => readonly object[]>> = {
  pi: (turn) => {
    const entry = (at: number, message: object): object => {
      const count = turn * 4 + at;
      return {
        type: "message",
        id: uuid(count),
        parentId: count === 0 ? null : uuid(count - 1),
        timestamp: time(count),
        message,
      };
    };
    const call = { type: "toolCall", id: `call_${turn}`, name: "read", arguments: { path: `src/${turn}.ts` } };
    const usage = { input: 3, output: 20, cacheRead: 7, cacheWrite: 5, totalTokens: 35 };
    return [
      entry(0, { role: "user", content: question }),
      entry(1, {
        role: "assistant",
        content: [{ type: "thinking", thinking: words, thinkingSignature: signature }, call],
        usage,
        stopReason: "toolUse",
      }),
      entry(2, {
        role: "toolResult",
        toolCallId: call.id,
        toolName: "read",
        content: [{ type: "text", text: output }],
        isError: false,
      }),
      entry(3, { role: "assistant", content: [{ type: "text", text: answer }], usage, stopReason: "stop" }),
    ];
  },
  "claude-code": (turn) => {
    const line = (at: number, fields: object): object => {
      const count = turn * 5 + at;
      const place = {
        parentUuid: count === 0 ? null : uuid(count - 1),
        isSidechain: false,
        userType: "external",
        cwd: "/srv/app",
      };
      return {
        ...place,
        sessionId,
        version: "2.1.274",
        gitBranch: "main",
        ...fields,
        uuid: uuid(count),
        timestamp: time(count),
      };
    };
    const usage = { input_tokens: 3, cache_creation_input_tokens: 5, cache_read_input_tokens: 7, output_tokens: 20 };
    const reply = (at: number, id: string, block: object): object =>
      line(at, {
        type: "assistant",
        message: {
          id,
          type: "message",
          role: "assistant",
          model: "claude-opus-4-7",
          content: [block],
          stop_reason: null,
          usage,
        },
      });
    const id = `toolu_${turn}`;
    return [
      line(0, { type: "user", message: { role: "user", content: question } }),
      reply(1, `msg_${turn}`, { type: "thinking", thinking: words, signature }),
      reply(2, `msg_${turn}`, { type: "tool_use", id, name: "Read", input: { file_path: `src/${turn}.ts` } }),
      line(3, {
        type: "user",
        message: { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: output }] },
        toolUseResult: { stdout: output },
      }),
      reply(4, `msg_${turn}b`, { type: "text", text: answer }),
    ];
  },
  codex: (turn) => {
    const line = (at: number, type: string, payload: object): object => ({
      timestamp: time(turn * 10 + at),
      type,
      payload,
    });
    const said = (role: string, type: string, text: string): object => ({
      type: "message",
      role,
      content: [{ type, text }],
    });
    const total = {
      input_tokens: turn * 10,
      cached_input_tokens: turn * 7,
      output_tokens: turn * 2,
      reasoning_output_tokens: turn,
    };
    return [
      ...(turn === 0
        ? [
            line(0, "session_meta", {
              id: sessionId,
              cwd: "/srv/app",
              originator: "codex_cli_rs",
              cli_version: "0.128.0",
            }),
          ]
        : []),
      line(1, "turn_context", { cwd: "/srv/app", model: "gpt-5.2-codex", effort: "medium" }),
      line(2, "response_item", said("user", "input_text", question)),
      line(3, "event_msg", { type: "user_message", message: question, images: [] }),
      line(4, "response_item", { type: "reasoning", summary: [], content: null, encrypted_content: signature }),
      line(5, "response_item", {
        type: "function_call",
        name: "exec_command",
        arguments: `{"cmd":"cat src/${turn}.ts"}`,
        call_id: `call_${turn}`,
      }),
      line(6, "response_item", { type: "function_call_output", call_id: `call_${turn}`, output }),
      line(7, "event_msg", { type: "token_count", info: { total_token_usage: total }, rate_limits: null }),
      line(8, "response_item", said("assistant", "output_text", answer)),
      line(9, "event_msg", { type: "agent_message", message: answer }),
    ];
  },
};

const header = { type: "session", version: 3, id: sessionId, timestamp: time(0), cwd: "/srv/app" };

/** Writes one session of at least that size, and gives its number of lines. */
export function writeLines(path: string, format: LineFormat, bytes: number): number {
  const file = openSync(path, "wx");
  let [written, lines, turn] = [0, 0, 0];
  try {
    for (let text = format === "pi" ? `${JSON.stringify(header)}\n` : ""; written < bytes; text = "") {
      while (text.length < 2 ** 20 && written + text.length < bytes) {
        const values = turns[format](turn);
        text += values.map((value) => `${JSON.stringify(value)}\n`).join("");
        turn += 1;
        lines += values.length;
      }
      written += writeSync(file, text);
    }
  } finally {
    closeSync(file);
  }
  return format === "pi" ? lines + 1 : lines;
}
