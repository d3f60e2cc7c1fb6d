import { Client, StreamableHTTPClientTransport, type ClientOptions } from "@modelcontextprotocol/client";
import { openSession, type RecordDraft, type SessionStore, type SessionRef } from "@throughline/core";
import {
  serveMemoryOverHttp,
  type MemoryHttpServer,
  type MemoryScope,
  type MemoryServerOptions,
} from "@throughline/mcp";
import { afterEach } from "vitest";

/** The two generations of the protocol, as a client of today asks for them. */
export const generations: readonly (readonly [name: string, options: ClientOptions])[] = [
  ["2025-11-25", {}],
  ["2026-07-28", { versionNegotiation: { mode: { pin: "2026-07-28" } } }],
];

const ownScope: MemoryScope = {
  namespace: "",
  agentId: "main",
  agents: ["main"],
  keyPrefixes: [],
  allowNotes: false,
};

/** What a call gave. */
interface Answer {
  readonly text: string;
  readonly isError: boolean;
  /** Empty without any. */
  readonly structured: Readonly<Record<string, unknown>>;
}

export interface Serving {
  readonly client: Client;
  readonly url: string;
  /** What the server told of failures. */
  readonly errors: unknown[];
  call(name: string, args?: Readonly<Record<string, unknown>>): Promise<Answer>;
}

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

/** A server over a store, and a client of it. */
export async function serve(
  store: SessionStore | MemoryServerOptions["openStore"],
  scope: Partial<MemoryScope> = {},
  options: Partial<MemoryServerOptions> = {},
  clientOptions: ClientOptions = {},
): Promise<Serving> {
  const errors: unknown[] = [];
  const server: MemoryHttpServer = await serveMemoryOverHttp({
    version: "1.2.3",
    openStore: typeof store === "function" ? store : async () => store,
    resultTokens: 5000,
    callTimeoutMs: 30_000,
    onError: (error) => errors.push(error),
    host: "127.0.0.1",
    port: 0,
    admit: async () => ({ ...ownScope, ...scope }),
    ...options,
  });
  const client = new Client({ name: "test", version: "1" }, clientOptions);
  await client.connect(new StreamableHTTPClientTransport(new URL(server.url)));
  open.push(async () => {
    await client.close();
    await server.close();
  });
  return {
    client,
    url: server.url,
    errors,
    async call(name, args = {}) {
      const { content, isError, structuredContent } = await client.callTool({ name, arguments: { ...args } });
      const [first] = content;
      if (content.length !== 1 || first?.type !== "text") throw new Error("a result is one text");
      return {
        text: first.text,
        isError: isError === true,
        structured: (structuredContent ?? {}) as Answer["structured"],
      };
    },
  };
}

/** The address of a session of an agent. */
export function refOf(agentId: string, name: string, namespace = ""): SessionRef {
  return { namespace, agentId, key: `agent:${agentId}:cli:direct:${name}` };
}

/** Makes a session with messages of user and assistant in turn. */
export async function fill(
  store: SessionStore,
  ref: SessionRef,
  texts: readonly string[],
  entry: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  await openSession(store, ref, { entry });
  const drafts = texts.map((text, index) => said(index % 2 === 0 ? "user" : "assistant", text));
  for (let at = 0; at < drafts.length; at += 500) await store.append(ref, drafts.slice(at, at + 500));
}

export function said(role: string, text: string): RecordDraft {
  return { type: "message", message: { role, content: [{ type: "text", text }] } } as unknown as RecordDraft;
}

/** A word of the sessions that a client must not find. */
export const secret = "xylophone";

/** Every way to name a session that a client has. */
export async function attempts({ call, client }: Serving, key: string, agent?: string): Promise<readonly string[]> {
  const named = { key, ...(agent === undefined ? {} : { agent }) };
  const uri = `throughline://session/${encodeURIComponent(key)}${agent === undefined ? "" : `?agent=${agent}`}`;
  return [
    (await call("read_session", named)).text,
    (await call("read_session", { ...named, from: 1 })).text,
    (await call("search_sessions", { query: secret, ...named })).text,
    (await call("list_sessions", { prefix: key.slice(0, 12) })).text,
    await client.readResource({ uri }).then(
      (result) => JSON.stringify(result),
      (error: unknown) => String(error),
    ),
  ];
}

/** What a client sees without naming a session. */
export async function overviews({ call, client }: Serving): Promise<string> {
  const texts = [
    await call("search_sessions", { query: secret }),
    await call("search_sessions", { query: "violin", limit: 1 }),
    await call("list_sessions", { limit: 1 }),
    await call("list_sessions"),
    await call("read_memory"),
    await call("read_memory", { query: secret }),
    await client.listResources(),
  ];
  const cursors = texts.map((answer) => JSON.stringify(answer)).join("\n");
  // Cursors are text as well: what is in them is not to name what is not seen.
  const inside = Array.from(cursors.matchAll(/[\w-]{20,}/g), ([part]) => Buffer.from(part, "base64url").toString());
  const deeper = inside.flatMap((text) =>
    Array.from(text.matchAll(/[\w-]{20,}/g), ([part]) => Buffer.from(part, "base64url").toString()),
  );
  return [cursors, ...inside, ...deeper].join("\n");
}
