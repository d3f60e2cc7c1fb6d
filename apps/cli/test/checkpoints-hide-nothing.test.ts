import { createProviderSimulator } from "@throughline/testing";
import { describe, expect, it } from "vitest";
import { assistant, objects, runHere, seed, sentBody, temporaryDirectory, user } from "./harness.ts";

const key = "agent:main:cli:direct:work";
const answer = JSON.stringify({
  summary: "Quays are looked after.",
  topics: ["quays", "paint", "ropes"],
  keyDecisions: ["no red paint"],
  openQuestions: ["when?"],
});

describe("a checkpoint", () => {
  it("takes nothing from the records, from the context, or from the next request", async () => {
    const directory = temporaryDirectory();
    await using provider = createProviderSimulator({
      fallback: (request) => (sentBody(request)["tools"] === undefined ? answer : "Fine."),
    });
    await provider.start();
    const environment = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
    const run = async (...args: readonly string[]): Promise<readonly Record<string, unknown>[]> => {
      const done = await runHere(directory.path, [...args, "--json", "--quiet"], { environment });
      expect([args[0], done.code, done.stderr]).toEqual([args[0], 0, ""]);
      return objects(done.stdout);
    };
    const model = ["--model", "anthropic/claude-opus-5"];
    try {
      const drafts = Array.from({ length: 12 }, (_, at) => [user(`Quay ${at}?`), assistant(`Quay ${at}: done.`)]);
      await seed(directory.path, [{ key, drafts: drafts.flat() }]);
      const records = await run("show", key);
      const messages = (await run("context", key, "--provider", "anthropic"))[0]?.["messages"];
      const [made] = await run("checkpoint", key, ...model);
      expect(made).toMatchObject({ coversToSeq: 24, messageCountAtCheckpoint: 24, ...JSON.parse(answer) });
      const old = (shown: readonly Record<string, unknown>[]): readonly unknown[] =>
        shown.filter(({ kind, seq }) => kind === "record" && Number(seq) <= 24);
      expect(old(records)).toHaveLength(24);
      expect(old(await run("show", key))).toEqual(old(records));
      expect((await run("context", key, "--provider", "anthropic"))[0]?.["messages"]).toEqual(messages);
      await run("chat", "--key", key, "--once", "And now?", ...model);
      const sent = sentBody(provider.requests.at(-1))["messages"] as readonly unknown[];
      expect(sent).toHaveLength(25);
      expect(sent.slice(0, -1)).toEqual((messages as readonly unknown[]).slice(0, 24));
      expect(JSON.stringify(sent)).not.toContain("Quays are looked after");
      expect(await run("checkpoints", key)).toMatchObject([
        { id: made?.["id"], topics: ["quays", "paint", "ropes"] },
        {},
      ]);
      expect(provider.refusals).toEqual([]);
    } finally {
      directory.remove();
    }
  });
});
