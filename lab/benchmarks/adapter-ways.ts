// Turns of the Claude Agent SDK and of the ADK for `adapter-turns.ts`, through our adapters and in the frameworks' own stores.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createAdkSessionService } from "../../packages/adapter-adk/src/index.ts";
import { createClaudeSessionStore } from "../../packages/adapter-claude-agent-sdk/src/index.ts";
import type { SessionStore } from "../../packages/core/src/index.ts";

/** A way to keep turns: filled first, then timed. */
export interface Kept {
  readonly name: string;
  fill(turns: number): Promise<void>;
  turn(number: number): Promise<void>;
}

type Item = Readonly<Record<string, unknown>>;

/** A text of a length. */
export const words = (length: number): string => "lorem ipsum ".repeat(Math.ceil(length / 12)).slice(0, length);

/** The part of a session store of the Claude Agent SDK that a turn needs. */
interface LineStore {
  append(key: { readonly projectKey: string; readonly sessionId: string }, entries: never[]): Promise<void>;
}

const key = { projectKey: "-srv-bench", sessionId: "5e551011-0000-4000-8000-000000000009" };

function lines(turn: number): Item[] {
  const uuid = (at: number): string => `00000000-0000-4000-8000-${String(turn * 4 + at).padStart(12, "0")}`;
  const line = (at: number, type: string, message: Item): Item => ({
    parentUuid: turn === 0 && at === 1 ? null : uuid(at - 1),
    isSidechain: false,
    userType: "external",
    cwd: "/srv/bench",
    sessionId: key.sessionId,
    version: "2.1.274",
    type,
    message,
    uuid: uuid(at),
    timestamp: new Date(Date.UTC(2026, 4, 7) + turn * 4 + at).toISOString(),
  });
  const reply = (at: number, content: Item): Item => {
    const usage = { input_tokens: 10, output_tokens: 5 };
    const message = { id: `msg_${turn}_${at}`, type: "message", role: "assistant", model: "claude-opus-4-7", usage };
    return line(at, "assistant", { ...message, content: [content] });
  };
  const result = { type: "tool_result", tool_use_id: `toolu_${turn}`, content: words(1000) };
  return [
    line(1, "user", { role: "user", content: words(200) }),
    reply(2, { type: "tool_use", id: `toolu_${turn}`, name: "Read", input: { file_path: "a.txt" } }),
    line(3, "user", { role: "user", content: [result] }),
    reply(4, { type: "text", text: words(500) }),
  ];
}

/** The four lines of a turn, each in a call of its own, as in eager mode. */
export function claudeLines(name: string, store: LineStore): Kept {
  return {
    name,
    async fill(turns) {
      for (let turn = 0; turn < turns; turn += 100) {
        const batch = Array.from({ length: Math.min(100, turns - turn) }, (_, at) => lines(turn + at)).flat();
        await store.append(key, batch as never[]);
      }
    },
    async turn(number) {
      for (const entry of lines(number)) await store.append(key, [entry] as never[]);
    },
  };
}

/** Our store of the SDK's transcripts. */
export function claudeStore(store: SessionStore): LineStore {
  return createClaudeSessionStore({ store }) as LineStore;
}

/** The SDK's own. */
export async function ownClaudeStore(): Promise<LineStore> {
  const from = createRequire(new URL("../../packages/adapter-claude-agent-sdk/package.json", import.meta.url));
  const sdk = (await import(pathToFileURL(from.resolve("@anthropic-ai/claude-agent-sdk")).href)) as {
    readonly InMemorySessionStore: new () => LineStore;
  };
  return new sdk.InMemorySessionStore();
}

interface AdkSession {
  readonly id: string;
}
interface AdkService {
  createSession(request: Item): Promise<AdkSession>;
  getSession(request: Item): Promise<AdkSession | undefined>;
  appendEvent(request: { readonly session: AdkSession; readonly event: Item }): Promise<unknown>;
}

/** What the ADK exports, as far as it is used here. */
export interface Adk {
  readonly InMemorySessionService: new () => AdkService;
  readonly BaseSessionService: abstract new () => AdkService;
}

/** The ADK, from a folder that it was installed into. */
export async function loadAdk(folder: string): Promise<Adk> {
  const path = createRequire(join(folder, "package.json")).resolve("@google/adk").replace("/cjs/", "/esm/");
  return (await import(pathToFileURL(path).href)) as Adk;
}

/** Our service of the ADK's sessions. */
export function adkService({ BaseSessionService }: Adk, store: SessionStore): AdkService {
  return createAdkSessionService(BaseSessionService, { store });
}

function adkEvents(turn: number): readonly Item[] {
  const event = (at: number, author: string, content: Item): Item => ({
    id: `event-${turn}-${at}`,
    invocationId: `e-${turn}`,
    author,
    content,
    actions: { stateDelta: {}, artifactDelta: {}, requestedAuthConfigs: {}, requestedToolConfirmations: {} },
    timestamp: Date.UTC(2026, 4, 7) + turn * 4 + at,
  });
  const id = `adk-${turn}`;
  const response = { id, name: "read", response: { output: words(1000) } };
  return [
    event(1, "user", { role: "user", parts: [{ text: words(200) }] }),
    event(2, "teller", { role: "model", parts: [{ functionCall: { id, name: "read", args: { path: "a.txt" } } }] }),
    event(3, "teller", { role: "user", parts: [{ functionResponse: response }] }),
    event(4, "teller", { role: "model", parts: [{ text: words(500) }] }),
  ];
}

/** A run as the ADK's runner makes it: the session is read, and four events are appended. */
export function adkRuns(name: string, service: AdkService): Kept {
  const named = { appName: "bench", userId: "u", sessionId: "s" };
  const append = async (session: AdkSession, turn: number): Promise<void> => {
    for (const event of adkEvents(turn)) await service.appendEvent({ session, event });
  };
  return {
    name,
    async fill(turns) {
      const session = await service.createSession(named);
      for (let turn = 0; turn < turns; turn++) await append(session, turn);
    },
    async turn(number) {
      const session = await service.getSession(named);
      if (session === undefined) throw new Error("the session is gone");
      await append(session, number);
    },
  };
}
