import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import type { ProviderSimulatorOptions } from "@throughline/testing";
import { describe, expect, it } from "vitest";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

const key = "agent:main:cli:direct:work";
const providers: Readonly<Record<string, (url: string) => Readonly<Record<string, string>>>> = {
  "anthropic/claude-opus-5": (url) => ({ ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: url }),
  "ollama/qwen3:8b": (url) => ({ OLLAMA_HOST: url }),
  "openai/gpt-5": (url) => ({ OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${url}/v1` }),
};
const summary = "Topics:\n- ropes\nDecisions:\n- none\nCurrent state:\n- tied\nOpen items:\n- none";

describe.each(Object.entries(providers))("a request to %s that does not fit", (model, environment) => {
  async function ask(options: {
    readonly replies?: ProviderSimulatorOptions["replies"];
    readonly exchanges: number;
  }): Promise<{
    readonly turn: Record<string, unknown>;
    readonly sent: readonly string[];
    readonly refused: readonly string[];
    readonly calls: readonly Record<string, unknown>[];
    readonly records: number;
    /** How often the provider refused the turn after it, in a new process. */
    readonly refusedLater: number;
  }> {
    const directory = temporaryDirectory();
    await using provider = createProviderSimulator({
      replies: options.replies ?? [],
      fallback: ({ body }) => (JSON.stringify(body).includes("write summaries") ? summary : "Done."),
      models: { "*": { windowTokens: 30_000 } },
      ollamaContextTokens: 30_000,
    });
    await provider.start();
    try {
      const drafts = Array.from({ length: options.exchanges }, (_, at) => [
        user(`Question ${at}: ${"tie the rope ".repeat(300)}`),
        assistant(`Answer ${at}.`),
      ]);
      await seed(directory.path, [{ key, drafts: drafts.flat() }]);
      const workspace = join(directory.path, "ws");
      mkdirSync(workspace);
      for (const at of [0, 1, 2, 3])
        writeFileSync(join(workspace, `${at}.txt`), `line of file ${at}, with some more words in it\n`.repeat(1000));
      const given = {
        cwd: workspace,
        environment: { ...environment(provider.url), THROUGHLINE_SESSION_CHECKPOINT_ENABLED: "false" },
      };
      const chat = ["chat", "--key", key, "--once", "go", "--model", model, "--window", "200000", "--json", "--quiet"];
      const run = await runHere(directory.path, chat, given);
      expect([run.code, run.stderr]).toEqual([0, ""]);
      const json = async (command: string, ...more: readonly string[]): Promise<Record<string, unknown>[]> =>
        objects((await runHere(directory.path, [command, key, ...more, "--json", "--quiet"])).stdout);
      // The calls of the turn: neither counting requests nor what a summary is written from.
      const sent = provider.requests
        .filter(({ path }) => !path.endsWith("count_tokens"))
        .map(({ body }) => JSON.stringify(body))
        .filter((body) => !body.includes("write summaries"));
      const refused = provider.refusals.map(({ kind }) => kind);
      const again = await runHere(directory.path, chat, given);
      expect([again.code, again.stderr]).toEqual([0, ""]);
      return {
        turn: objects(run.stdout)[0] ?? {},
        sent,
        refused,
        refusedLater: provider.refusals.length - refused.length,
        calls: (await json("explain")).filter(({ kind }) => kind === "call"),
        records: (await json("show", "--all")).filter(({ type }) => type === "message").length,
      };
    } finally {
      directory.remove();
    }
  }

  it("because of its tool results is made smaller there, with both sizes said, and the turn is done", async () => {
    const content = [0, 1, 2, 3].map(
      (at) => ({ type: "tool-call", name: "read", input: { path: `${at}.txt` } }) as const,
    );
    const { turn, sent, refused, calls, records, refusedLater } = await ask({
      replies: [{ kind: "answer", content }],
      exchanges: 1,
    });
    expect(turn).toMatchObject({ outcome: "done", text: "Done.", calls: 3 });
    expect(refused).toEqual(["overflow"]);
    expect(refusedLater).toBe(0);
    expect(calls.map(({ outcome }) => outcome)).toEqual(["answered", "overflowed", "answered", "answered"]);
    const said = /truncated \(\d+ chars total, showing first \d+ and last \d+\)/;
    expect(sent.map((body) => said.exec(body) !== null)).toEqual([false, false, true]);
    expect(JSON.stringify(calls[2]?.["changes"])).toContain('"what":"tool-result"');
    // The log keeps what the tools gave: question, answer, question, calls, four results, reply.
    expect(records).toBe(9 + 2);
  });

  it("because of its history is compacted, and the turn is done", async () => {
    const { turn, sent, refused, calls, records } = await ask({ exchanges: 40 });
    expect(turn).toMatchObject({ outcome: "done", text: "Done." });
    expect(refused).toContain("overflow");
    expect(calls.map(({ outcome }) => outcome)).toEqual(["overflowed", "answered", "answered"]);
    expect([sent[0], sent.at(-1)].map((body) => body?.includes("[Previous conversation summary]"))).toEqual([
      false,
      true,
    ]);
    expect(records).toBe(82 + 2);
  });
});
