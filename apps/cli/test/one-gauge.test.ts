import { join } from "node:path";
import { updateEntry } from "@throughline/core/internal";
import { createProviderSimulator } from "@throughline/testing";
import { createModel } from "@throughline/models";
import { chatSettings } from "@throughline/config/internal";
import { createSessions } from "@throughline/session";
import { createAgentSessions } from "@throughline/session/whole-turn";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore } from "../src/open-store.ts";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

const key = "agent:main:cli:direct:work";
const model = "anthropic/claude-opus-5";
let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

describe("the gauge", () => {
  it("is one number, whoever shows it, and context estimates with what the session has learned of the tokenizer", async () => {
    await using provider = createProviderSimulator({ fallback: () => "The quay is looked after. ".repeat(60) });
    await provider.start();
    const environment = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
    const home = directory.path;
    for (let turn = 0; turn < 4; turn++) {
      const text = `Look after quay ${turn} at every tide, and note who came in. `.repeat(60);
      const args = ["chat", "--key", key, "--model", model, "--tools", "none", "--once", text, "--quiet"];
      expect(await runHere(home, args, { environment })).toMatchObject({ code: 0, stderr: "" });
    }
    const words = "And what of the lights on the northern quay tonight? ".repeat(80);
    const draft = { type: "message", message: { role: "user", content: words } };
    await runHere(home, ["append", key], { stdin: `${JSON.stringify(draft)}\n` });
    const { stdout } = await runHere(home, ["context", key, "--json", "--quiet"]);
    const shown = objects(stdout)[0]?.["gauge"] as { tokens: number; source: string };
    await using store = await openStore(`sqlite:${join(home, "sessions.db")}`, {
      workingDirectory: home,
      create: false,
    });
    const own = createModel({
      provider: "anthropic",
      modelId: "claude-opus-5",
      apiKey: "sk-test",
      baseUrl: provider.url,
    });
    // A count holds for the system prompt it was made with.
    const system = String(chatSettings.settings.find((setting) => setting.key === "system")?.default);
    await using sessions = createSessions({ store, model: own, system });
    const { gauge } = await (await sessions.open(key)).messages();
    expect(shown).toMatchObject({ tokens: gauge.tokens, source: "actual+delta" });
    const state = await store.load((await sessions.open(key)).ref);
    expect(state?.entry["throughline"]).toHaveProperty("calibration");
    // Without what was learned it would be another number.
    await updateEntry(store, state!.ref, ({ throughline: _learned, ...entry }) => entry);
    const fresh = await runHere(home, ["context", key, "--json", "--quiet"]);
    const [unlearned = {}] = objects(fresh.stdout);
    expect(unlearned["gauge"]).not.toMatchObject({ tokens: shown.tokens });
  });

  it("takes the count of replies that another program appended, in context, /status, the prompt and the compaction alike", async () => {
    await using provider = createProviderSimulator({ fallback: () => "The quay is looked after. ".repeat(20) });
    await provider.start();
    const environment = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
    const home = directory.path;
    const [name = "", modelId = ""] = model.split("/");
    const drafts = Array.from({ length: 12 }, (_, turn) => [
      { role: "user", content: `Look after quay ${turn} at every tide, and note who came in. `.repeat(20) },
      {
        role: "assistant",
        provider: name,
        model: modelId,
        content: [{ type: "text", text: `Quay ${turn} is looked after.` }],
        stopReason: "stop",
        usage: { input: 14_000 * (turn + 1), output: 100, cacheRead: 0, cacheWrite: 0 },
      },
    ]).flat();
    const lines = drafts.map((message) => `${JSON.stringify({ type: "message", message })}\n`).join("");
    expect(await runHere(home, ["append", key], { stdin: lines })).toMatchObject({ code: 0 });
    const gaugeOf = async () => {
      const { stdout } = await runHere(home, ["context", key, "--json", "--quiet"]);
      return objects(stdout)[0]?.["gauge"];
    };
    expect(await gaugeOf()).toMatchObject({ tokens: 168_100, source: "actual" });
    const own = createModel({ provider: name, modelId, apiKey: "sk-test", baseUrl: provider.url });
    await using store = await openStore(`sqlite:${join(home, "sessions.db")}`, {
      workingDirectory: home,
      create: false,
    });
    await using sessions = createAgentSessions({
      store,
      model: { ...own, windowTokens: 200_000 },
      summarizers: [],
      checkpoint: { enabled: false },
    });
    const session = await sessions.open(key);
    expect((await session.messages()).gauge).toMatchObject({ tokens: 168_100, source: "actual" });
    expect((await session.status()).gauge.tokens).toBe(168_100);
    await session.close();
    const args = [
      "chat",
      "--key",
      key,
      "--model",
      model,
      "--window",
      "180000",
      "--tools",
      "none",
      "--once",
      "Go on.",
      "--json",
    ];
    const run = await runHere(home, args, { environment });
    const [turn = {}] = objects(run.stdout);
    const planned = (turn["events"] as { readonly name: string; readonly data: unknown }[]).filter(
      ({ name: event }) => event === "compaction.planned",
    );
    expect(planned).toMatchObject([{ data: { tokensBefore: expect.any(Number) } }]);
    const { tokensBefore } = (planned[0]?.data ?? {}) as { readonly tokensBefore: number };
    expect(tokensBefore).toBeGreaterThan(168_100);
    expect(tokensBefore).toBeLessThan(168_200);
  });
});
