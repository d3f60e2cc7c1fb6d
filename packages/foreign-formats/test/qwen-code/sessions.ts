export type Fields = Readonly<Record<string, unknown>>;

export const sessionId = "54519cf2-0636-4c90-924d-6a77bc43ad98";

/** A line of the program. The number is the end of its id, and the line follows the line before. */
export function line(number: number, type: string, fields: Fields): Fields {
  const place = { parentUuid: number === 1 ? null : idOf(number - 1), sessionId, cwd: "/w", version: "0.24.4" };
  const timestamp = `2026-11-30T13:20:${`${number}`.padStart(2, "0")}.000Z`;
  return { uuid: idOf(number), ...place, timestamp, type, ...fields };
}

export function idOf(number: number): string {
  return `818863f4-ca31-451f-af86-${`${number}`.padStart(12, "0")}`;
}

export const said = (number: number, text: string, more: Fields = {}): Fields =>
  line(number, "user", { provenance: "real_user", message: { role: "user", parts: [{ text }] }, ...more });

export const replied = (number: number, parts: readonly Fields[], more: Fields = {}): Fields =>
  line(number, "assistant", { model: "qwen3-coder", message: { role: "model", parts }, ...more });

export const called = (id: string): Fields => ({ functionCall: { id, name: "read_file", args: { path: id } } });

export const answered = (number: number, id: string, text: string, status = "success"): Fields =>
  line(number, "tool_result", {
    message: {
      role: "user",
      parts: [{ functionResponse: { id, name: "read_file", response: { output: text } } }],
    },
    toolCallResult: { callId: id, status },
  });

export const system = (number: number, subtype: string, systemPayload: Fields, more: Fields = {}): Fields =>
  line(number, "system", { subtype, systemPayload, ...more });

interface ResumedSession {
  readonly lines: readonly Fields[];
  /** What Qwen Code 0.24.4 sends after `--resume`, before the new question. */
  readonly resumed: readonly string[];
}

const talk = [said(1, "One"), replied(2, [{ text: "First." }]), said(3, "Two"), replied(4, [{ text: "Second." }])];

/** Sessions, with the messages that the program itself sends when it resumes them. */
export const sessions: Readonly<Record<string, ResumedSession>> = {
  "a plain conversation": {
    lines: talk,
    resumed: ["user: One", "assistant: First.", "user: Two", "assistant: Second."],
  },
  "a call and its result": {
    lines: [
      said(1, "One"),
      replied(2, [{ text: "I look." }, called("c1")]),
      answered(3, "c1", "A"),
      replied(4, [{ text: "It is A." }]),
    ],
    resumed: ["user: One", "assistant: I look. ?c1", "=c1 A", "assistant: It is A."],
  },
  "two calls at once": {
    lines: [
      said(1, "One"),
      replied(2, [called("c1"), called("c2")]),
      answered(3, "c1", "A"),
      answered(4, "c2", "B"),
      replied(5, [{ text: "Both." }]),
    ],
    resumed: ["user: One", "assistant: ?c1 ?c2", "=c1 A", "=c2 B", "assistant: Both."],
  },
  "facts of the program between the messages": {
    lines: [
      said(1, "One"),
      system(2, "attribution_snapshot", { snapshot: {} }),
      replied(3, [{ text: "First." }]),
      system(4, "custom_title", { customTitle: "T", titleSource: "auto" }),
    ],
    resumed: ["user: One", "assistant: First."],
  },
  "a rewind": {
    lines: [
      ...talk,
      system(5, "rewind", { truncatedCount: 2 }, { parentUuid: idOf(2) }),
      said(6, "Three"),
      replied(7, [{ text: "Third." }]),
    ],
    resumed: ["user: One", "assistant: First.", "user: Three", "assistant: Third."],
  },
  "a rewind at the end": {
    lines: [...talk, system(5, "rewind", { truncatedCount: 2 }, { parentUuid: idOf(2) })],
    resumed: ["user: One", "assistant: First."],
  },
  "a branch": {
    lines: [...talk, said(5, "Other", { parentUuid: idOf(2) }), replied(6, [{ text: "Third." }])],
    resumed: ["user: One", "assistant: First.", "user: Other", "assistant: Third."],
  },
  "a compression": {
    lines: [
      ...talk,
      system(5, "chat_compression", {
        info: { originalTokenCount: 100, newTokenCount: 10, compressionStatus: 1 },
        compressedHistory: [
          { role: "user", parts: [{ text: "In short." }] },
          { role: "model", parts: [{ text: "Got it." }] },
        ],
      }),
      said(6, "Three"),
      replied(7, [{ text: "Third." }]),
    ],
    resumed: ["user: In short.", "assistant: Got it.", "user: Three", "assistant: Third."],
  },
  "a parent that is nowhere": {
    lines: [...talk, said(5, "Three", { parentUuid: idOf(99) }), replied(6, [{ text: "Third." }])],
    resumed: ["user: Three", "assistant: Third."],
  },
  "a message in two lines": {
    lines: [
      said(1, "One"),
      replied(2, [{ text: "First, " }]),
      replied(2, [{ text: "and more." }]),
      said(3, "Two"),
      replied(4, [{ text: "Second." }]),
    ],
    resumed: ["user: One", "assistant: First, and more.", "user: Two", "assistant: Second."],
  },
  "a command that the program answered": {
    lines: [
      ...talk,
      said(5, "/about"),
      system(6, "slash_command", {
        phase: "result",
        rawCommand: "/about",
        outputHistoryItems: [{ type: "assistant", text: "Version 1" }],
      }),
      said(7, "Three"),
      replied(8, [{ text: "Third." }]),
    ],
    resumed: ["user: One", "assistant: First.", "user: Two", "assistant: Second.", "user: Three", "assistant: Third."],
  },
  "a notification of the program": {
    lines: [
      ...talk,
      said(5, "A task ended.", { provenance: "system", subtype: "notification" }),
      replied(6, [{ text: "Fine." }]),
    ],
    resumed: [
      "user: One",
      "assistant: First.",
      "user: Two",
      "assistant: Second.",
      "user: A task ended.",
      "assistant: Fine.",
    ],
  },
  "a line that no reply follows": {
    lines: [...talk, said(5, "Three")],
    resumed: ["user: One", "assistant: First.", "user: Two", "assistant: Second.", "user: Three"],
  },
  "text of realtime, which no model gets": {
    lines: [
      ...talk,
      said(5, "Spoken", { subtype: "realtime_message" }),
      said(6, "Three"),
      replied(7, [{ text: "Third." }]),
    ],
    resumed: ["user: One", "assistant: First.", "user: Two", "assistant: Second.", "user: Three", "assistant: Third."],
  },
};
