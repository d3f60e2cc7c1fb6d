import { join } from "node:path";
import { sessionRef } from "@throughline/core";
import { createModel } from "@throughline/models";
import { createServer } from "@throughline/server";
import { createAgentSessions } from "@throughline/session/whole-turn";
import { expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { openStore } from "../src/open-store.ts";
import { objects, runHere, seed, temporaryDirectory } from "./harness.ts";

type Fields = Readonly<Record<string, unknown>>;

const count = testSize({ short: 12, long: 50 });
const windowTokens = 20_000;
const [provider, modelId] = ["anthropic", "claude-opus-5"];

const words = (turn: number): string => `Look after quay ${turn} at every tide, and note who came in. `;

/** Makes conversations of many sizes: with and without counts of the provider, results of tools and compactions. */
function draftsOf(session: number): readonly Fields[] {
  const turns = Array.from({ length: 2 + (session % 17) }, (_, turn): readonly Fields[] => {
    const usage =
      session % 3 === 0 ? { usage: { input: 700 * (turn + 1), output: 60, cacheRead: 0, cacheWrite: 0 } } : {};
    const reply = { role: "assistant", provider, model: modelId, stopReason: "stop", ...usage };
    const call = { type: "toolCall", id: `t${turn}`, name: "read", arguments: { path: `quay-${turn}` } };
    const result = { role: "toolResult", toolCallId: `t${turn}`, toolName: "read", content: words(turn).repeat(6) };
    const middle = session % 4 === 1 ? [{ ...reply, content: [call] }, result] : [];
    return [
      { role: "user", content: words(turn).repeat(1 + (session % 9)) },
      ...middle,
      { ...reply, content: [{ type: "text", text: words(turn).repeat(1 + (session % 5)) }] },
    ].map((message) => ({ type: "message", message }));
  });
  const compaction = { type: "compaction", summary: words(session).repeat(4), tokensBefore: 9000, tokensAfter: 900 };
  return turns.flatMap((each, turn) => (session % 5 === 2 && turn === 1 ? [...each, compaction] : each));
}

it(
  `states one size of ${count} contexts over HTTP, in context, in /status and in compactions, with parts that add up`,
  { timeout: testSize({ short: 180_000, long: 900_000 }) },
  async () => {
    const { path: home, remove } = temporaryDirectory();
    const keys = Array.from({ length: count }, (_, session) => `agent:main:cli:direct:quay-${session}`);
    await seed(
      home,
      keys.map((key, session) => ({ key, entry: { contextTokens: windowTokens }, drafts: draftsOf(session) as never })),
    );
    const storeUrl = `sqlite:${join(home, "sessions.db")}`;
    const open = () => openStore(storeUrl, { workingDirectory: home, create: false });
    const server = await createServer({
      openStore: open,
      port: 0,
      localToken: { namespace: "", agents: "*", scopes: ["read"], expiresAtMs: null },
    });
    await using store = await open();
    const model = {
      ...createModel({ provider, modelId, apiKey: "none" }),
      windowTokens,
    };
    await using sessions = createAgentSessions({ store, model, summarizers: [], checkpoint: { enabled: false } });
    const ask = async (key: string, below: string): Promise<Fields> => {
      const url = `${server.url}/api/v1/sessions/${encodeURIComponent(key)}/${below}`;
      const response = await fetch(url, { headers: { authorization: `Bearer ${server.localToken}` } });
      return (await response.json()) as Fields;
    };
    const environment = { ANTHROPIC_API_KEY: "none" };
    const here = async (...args: readonly string[]): Promise<Fields> =>
      objects((await runHere(home, [...args, "--json", "--quiet"], { environment })).stdout)[0] ?? {};
    let compacted = 0;
    const prompts = new Set<number>();
    for (const [session, key] of keys.entries()) {
      const answer = await ask(key, "context");
      const { gauge, breakdown, compactsAtTokens } = answer;
      const { tokens, source } = gauge as { readonly tokens: number; readonly source: string };
      const printed = await here("context", key);
      const status = await (await sessions.open(key)).status();
      expect([key, printed["gauge"], printed["breakdown"]]).toEqual([key, gauge, breakdown]);
      expect([key, status.gauge.tokens, status.compaction.triggerTokens]).toEqual([key, tokens, compactsAtTokens]);
      const parts = Object.values(breakdown as Readonly<Record<string, number>>);
      expect([key, parts.reduce((sum, part) => sum + part, 0)]).toEqual([key, tokens]);
      const planned = await here("compact", key, "--dry-run", "--model", `${provider}/${modelId}`);
      // An estimate leaves out the system prompt, which no log holds. A compaction knows that of the chat.
      const over = Number(planned["tokensBefore"]) - tokens;
      if (source === "actual") expect([key, over]).toEqual([key, 0]);
      else prompts.add(over);
      if (session % 4 !== 0) continue;
      const made = await here("compact", key, "--model", "offline");
      if (made["state"] !== "compacted") continue;
      compacted += 1;
      const { compactions } = (await ask(key, "digest")) as { readonly compactions: readonly Fields[] };
      expect([key, compactions.at(-1)]).toMatchObject([
        key,
        {
          seq: made["seq"],
          tokensBefore: made["tokensBefore"],
          tokensAfter: made["tokensAfter"],
          source: made["source"],
        },
      ]);
      expect((await store.load(sessionRef({ key })))?.head.lastSeq).toBeGreaterThanOrEqual(Number(made["seq"]));
    }
    await server.close();
    remove();
    expect(compacted).toBeGreaterThan(0);
    // It is one prompt, and each sum is rounded by itself.
    expect(prompts.size).toBeGreaterThan(0);
    expect(Math.max(...prompts) - Math.min(...prompts)).toBeLessThanOrEqual(1);
  },
);
