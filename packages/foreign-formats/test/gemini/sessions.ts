import { callPart, header, reply, responsePart, set, thought, toolCall, typed, type Fields } from "./lines.ts";

/** A session's lines, and what the program resumes it with: role and words of each content. */
export interface ResumedSession {
  readonly lines: readonly Fields[];
  /** Made by `loadConversationRecord` and `convertSessionToClientHistory` of gemini-cli-core 0.61.0. */
  readonly resumed: readonly string[];
}

const asked = typed("u1", [{ text: "Read a and b." }]);
const said = reply("g1", "I read them.", { thoughts: [thought("Plan", "Two files.")] });

export const sessions: Readonly<Record<string, ResumedSession>> = {
  "a message that is written again with its calls": {
    lines: [
      header(),
      asked,
      set({ lastUpdated: "2026-05-07T18:00:02.000Z" }),
      said,
      { ...said, toolCalls: [toolCall("a", "A"), toolCall("b", { error: "No such file." }, "error")] },
      reply("g2", "Done."),
    ],
    resumed: [
      "user: Read a and b.",
      "model: (thinking) I read them. ?a ?b",
      "user: =a A =b No such file.",
      "model: Done.",
    ],
  },
  "calls that are answered one after the other": {
    lines: [
      header(),
      asked,
      said,
      { ...said, toolCalls: [toolCall("a", undefined, "executing")] },
      { ...said, toolCalls: [toolCall("a", "A")] },
      { ...said, toolCalls: [toolCall("a", "A"), toolCall("b", "B")] },
      reply("g2", "Done."),
    ],
    resumed: ["user: Read a and b.", "model: (thinking) I read them. ?a ?b", "user: =a A =b B", "model: Done."],
  },
  "a rewind, and a rewind to a message that is not there": {
    lines: [
      header(),
      typed("u1", "One."),
      reply("g1", "First."),
      typed("u2", "Two."),
      reply("g2", "Second."),
      { $rewindTo: "u2" },
      typed("u3", "Three."),
      reply("g3", "Third."),
    ],
    resumed: ["user: One.", "model: First.", "user: Three.", "model: Third."],
  },
  "a rewind to nothing": {
    lines: [header(), typed("u1", "One."), reply("g1", "First."), { $rewindTo: "u9" }, typed("u2", "Two.")],
    resumed: ["user: Two."],
  },
  "a list that takes the place of the conversation": {
    lines: [
      header(),
      typed("u1", "One."),
      reply("g1", "First."),
      set({
        messages: [
          typed("s1", [{ text: "They spoke." }]),
          reply("s2", [{ text: "Good." }]),
          typed("s3", [{ text: "Read a." }]),
          reply("g3", [{ text: "Plan", thought: true }, { text: "I read." }, callPart("a", "c2ln")], {
            toolCalls: [toolCall("a", "A")],
          }),
          reply("g4", [{ text: "So." }]),
        ],
      }),
      { ...reply("g4", [{ text: "So." }]), toolCalls: [toolCall("b", "B")] },
      typed("u2", "And now?"),
    ],
    resumed: [
      "user: They spoke.",
      "model: Good.",
      "user: Read a.",
      "model: (thinking) I read. ?a",
      "user: =a A",
      "model: So. ?b",
      "user: =b B",
      "user: And now?",
    ],
  },
  "commands, and what the program says to the model when it begins": {
    lines: [
      header(),
      typed("u0", [{ text: "<session_context>\nToday is Monday.\n</session_context>" }]),
      typed("u1", "/help"),
      { id: "i1", timestamp: "2026-05-07T18:00:01.000Z", type: "info", content: "Help is here." },
      typed("u2", "?"),
      typed("u3", ""),
      typed("u4", "Hi"),
      { id: "e1", timestamp: "2026-05-07T18:00:01.000Z", type: "error", content: "The network is down." },
      reply("g1", "", { tokens: null }),
      reply("g2", "Hello."),
    ],
    resumed: ["user: Hi", "model: Hello."],
  },
  "images, and a result with one": {
    lines: [
      header(),
      typed("u1", [{ text: "Look:" }, { inlineData: { mimeType: "image/png", data: "aGk=" } }]),
      reply("g1", "", {
        toolCalls: [
          {
            ...toolCall("a", "A"),
            result: [responsePart("a", "A"), { inlineData: { mimeType: "image/png", data: "aG8=" } }],
          },
        ],
      }),
      reply("g2", "Nice."),
    ],
    resumed: ["user: Look: [image]", "model: ?a", "user: =a A [image]", "model: Nice."],
  },
};
