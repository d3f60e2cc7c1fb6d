// Claude Code's part in the pairs: a transcript to import, and lines that its SDK mirrors.
import type * as ForClaude from "../../../packages/adapter-claude-agent-sdk/src/index.ts";
import type { SessionRef, SessionStore } from "../../../packages/core/src/index.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A framework that continues a session by a turn with a tool. Gives the texts that its model was sent. */
export interface Participant {
  readonly name: string;
  take(store: SessionStore, ref: SessionRef, turn: number): Promise<string>;
}

/** What the SDK reads a store with. */
export interface ClaudeSdk {
  readonly getSessionMessages: (id: string, options: Fields) => Promise<readonly { readonly uuid: string }[]>;
}

/** Lines that Claude Code writes behind what its SDK finds in the store. */
export const claudeMirrorOf = (claudeSdk: ClaudeSdk, forClaude: typeof ForClaude): Participant => ({
  name: "claude-agent-sdk",
  async take(store, ref, turn) {
    const sessionId = "5e551011-0000-4000-8000-000000000002";
    const sessionStore = forClaude.createClaudeSessionStore({ store, refOf: () => ref });
    const found = await claudeSdk.getSessionMessages(sessionId, { dir: import.meta.dirname, sessionStore });
    const key = { projectKey: "-pairs", sessionId };
    const sent = JSON.stringify((await sessionStore.load(key)) ?? []);
    let parentUuid: string | null = found.at(-1)?.uuid ?? null;
    const line = (at: number, fields: Fields): { readonly type: string } => {
      const uuid = `00000000-0000-4000-8000-${String(turn * 100 + at).padStart(12, "0")}`;
      const made = { ...lineFrame, parentUuid, uuid, sessionId, timestamp: new Date().toISOString(), ...fields };
      parentUuid = uuid;
      return made as unknown as { readonly type: string };
    };
    const reply = (content: Fields): Fields => {
      const message = {
        id: `msg_${turn}_${String(content["type"])}`,
        type: "message",
        role: "assistant",
        content: [content],
      };
      return {
        type: "assistant",
        message: { ...message, model: "claude-opus-4-7", usage: { input_tokens: 3, output_tokens: 5 } },
      };
    };
    const result = { type: "tool_result", tool_use_id: `call_${turn}`, content: `${turn}:00` };
    const entries = [
      line(1, { type: "user", message: { role: "user", content: `Claude: turn ${turn}?` } }),
      line(2, reply({ type: "tool_use", id: `call_${turn}`, name: "clock", input: {} })),
      line(3, { type: "user", message: { role: "user", content: [result] } }),
      line(4, reply({ type: "text", text: `Claude says it is ${turn} o'clock.` })),
    ];
    for (const entry of entries) await sessionStore.append(key, [entry]);
    return sent;
  },
});

const lineFrame = { isSidechain: false, userType: "external", cwd: "/srv/pairs", version: "2.1.274", gitBranch: "" };

/** A transcript of Claude Code. */
export const transcript: readonly Fields[] = [
  {
    uuid: "00000000-0000-4000-8000-000000000001",
    parentUuid: null,
    type: "user",
    message: { role: "user", content: "Claude: what is in a.txt?" },
  },
  {
    uuid: "00000000-0000-4000-8000-000000000002",
    parentUuid: "00000000-0000-4000-8000-000000000001",
    type: "assistant",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "claude-opus-4-7",
      content: [{ type: "tool_use", id: "toolu_1", name: "Read", input: { file_path: "a.txt" } }],
      stop_reason: "tool_use",
      usage: { input_tokens: 3, output_tokens: 5 },
    },
  },
  {
    uuid: "00000000-0000-4000-8000-000000000003",
    parentUuid: "00000000-0000-4000-8000-000000000002",
    type: "user",
    message: {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "the secret word is heron" }],
    },
  },
  {
    uuid: "00000000-0000-4000-8000-000000000004",
    parentUuid: "00000000-0000-4000-8000-000000000003",
    type: "assistant",
    message: {
      id: "msg_2",
      type: "message",
      role: "assistant",
      model: "claude-opus-4-7",
      content: [{ type: "text", text: "Claude read it." }],
      stop_reason: "end_turn",
      usage: { input_tokens: 9, output_tokens: 5 },
    },
  },
].map((line, at) => ({
  ...line,
  isSidechain: false,
  cwd: "/home/u/project",
  sessionId: "5e551011-0000-4000-8000-000000000001",
  version: "2.1.132",
  timestamp: new Date(Date.UTC(2026, 4, 7, 18, 0, at)).toISOString(),
}));
