import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { SessionStore, StoredRecord } from "@throughline/core";
import { createPostgresStore } from "@throughline/store-postgres";
import { type PostgresServer, startPostgres } from "../../../packages/store-postgres/test/postgres-server.ts";
import { testSize } from "../../../tools/test-size.ts";
import { type GatewayServing, serveGateway } from "./gateway-serving.ts";

let postgres: PostgresServer;
let store: SessionStore;
const nodes: GatewayServing[] = [];
let answers = 0;

beforeAll(async () => {
  const started = await startPostgres();
  if ("unavailable" in started) throw new Error(started.unavailable);
  postgres = started;
  store = createPostgresStore({ url: postgres.url, notify: false });
}, 120_000);
afterEach(async () => {
  for (const node of nodes.splice(0)) await node.close();
});
afterAll(async () => {
  await store?.close();
  await postgres?.stop();
}, 120_000);

async function startNode(): Promise<GatewayServing> {
  const openStore = (): SessionStore => createPostgresStore({ url: postgres.url, notify: false });
  const provider = nodes[0]?.simulator.url;
  const node = await serveGateway(
    { fallback: () => `Answer ${++answers}.` },
    { openStore },
    {},
    provider === undefined ? {} : { baseUrl: provider },
  );
  nodes.push(node);
  return node;
}

interface Said {
  readonly role: string;
  readonly content: string;
}

async function say(history: Said[], content: string, { url }: GatewayServing, token: string): Promise<void> {
  history.push({ role: "user", content });
  const answer = await fetch(`${url}/anthropic/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": token, "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model: "claude-opus-5", max_tokens: 100, messages: history }),
  });
  const body = await answer.text();
  // The body of a refusal says why.
  expect([answer.status, answer.ok ? "" : body]).toEqual([200, ""]);
  const reply = JSON.parse(body) as { readonly content: readonly { readonly text: string }[] };
  history.push({ role: "assistant", content: reply.content.map(({ text }) => text).join("") });
}

/** The texts of the messages of each session. */
async function textsOfSessions(): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, readonly string[]>();
  for (let cursor: string | null = null; ;) {
    const page: Awaited<ReturnType<SessionStore["list"]>> = await store.list({
      namespace: "",
      limit: 1000,
      ...(cursor === null ? {} : { cursor }),
    });
    for (const { ref } of page.sessions) {
      const records: StoredRecord[] = [];
      for await (const { records: read } of store.read(ref)) records.push(...read);
      found.set(
        ref.key,
        records
          .filter(({ record }) => record.type === "message")
          .map(({ record }) => JSON.stringify(record["message"])),
      );
    }
    if (page.nextCursor === null) return found;
    cursor = page.nextCursor;
  }
}

/** For each conversation: in how many sessions its messages are, and how many of them are not there exactly once. */
async function placesOf(
  all: readonly (readonly Said[])[],
): Promise<readonly { readonly sessions: number; readonly odd: number }[]> {
  const sessions = [...(await textsOfSessions())];
  return all.map((history) => {
    const own = new Set<string>();
    let odd = 0;
    for (const { content } of history) {
      const holders = sessions.flatMap(([key, texts]) =>
        texts.filter((text) => text.includes(JSON.stringify(content))).map(() => key),
      );
      for (const key of holders) own.add(key);
      if (holders.length !== 1) odd += 1;
    }
    return { sessions: own.size, odd };
  });
}

const conversations = testSize({ short: 12, long: 100 });

describe("two nodes that a quick client asks in turns", () => {
  it(
    "know the response that the other has just given, also with a key of the server's",
    { tags: ["slow"], timeout: 60_000 },
    async () => {
      const [here, there] = [await startNode(), await startNode()];
      let previous: string | null = null;
      const texts: string[] = [];
      for (let call = 0; call < 8; call++) {
        const input = `Question ${call} behind a response.`;
        const answer = await fetch(`${(call % 2 === 0 ? here : there).url}/openai/v1/responses`, {
          method: "POST",
          headers: { authorization: `Bearer ${here.token}` },
          body: JSON.stringify({
            model: "gpt-6",
            input,
            ...(previous === null ? {} : { previous_response_id: previous }),
          }),
        });
        expect(answer.status).toBe(200);
        previous = ((await answer.json()) as { readonly id: string }).id;
        texts.push(input);
      }
      for (const node of nodes.splice(0)) await node.close();
      const holders = [...(await textsOfSessions())].filter(([, own]) =>
        own.some((text) => /behind a response/.test(text)),
      );
      expect(holders.map(([, own]) => texts.every((text) => own.join().includes(text)))).toEqual([true]);
    },
  );

  it("keep conversations apart that begin alike", { timeout: 60_000 }, async () => {
    const [here, there] = [await startNode(), await startNode()];
    const all: Said[][] = [[], [], [], []];
    for (let call = 0; call < 3; call++)
      await Promise.all(
        all.map((history, index) =>
          say(history, "They all say this.", (call + index) % 2 === 0 ? here : there, here.token),
        ),
      );
    for (const node of nodes.splice(0)) await node.close();
    // What was asked is the same in all of them.
    const answered = all.map((history) => history.filter(({ role }) => role === "assistant"));
    expect(await placesOf(answered)).toEqual(all.map(() => ({ sessions: 1, odd: 0 })));
  });

  it(
    `keep ${conversations} conversations of four calls in one session each`,
    { tags: ["slow"], timeout: 600_000 },
    async () => {
      const [here, there] = [await startNode(), await startNode()];
      const all: Said[][] = [];
      const converse = async (index: number): Promise<void> => {
        const history: Said[] = [];
        all.push(history);
        for (let call = 0; call < 4; call++)
          await say(history, `Question ${call} of conversation ${index}.`, call % 2 === 0 ? here : there, here.token);
      };
      for (let from = 0; from < conversations; from += 4)
        await Promise.all(
          Array.from({ length: Math.min(4, conversations - from) }, (_, index) => converse(from + index)),
        );
      for (const node of nodes.splice(0)) await node.close();
      const places = await placesOf(all);
      expect(places.filter(({ sessions, odd }) => sessions !== 1 || odd > 0)).toEqual([]);
    },
  );
});
