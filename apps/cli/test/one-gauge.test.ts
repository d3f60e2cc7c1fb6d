import { join } from "node:path";
import { updateEntry } from "@throughline/core";
import { createProviderSimulator } from "@throughline/provider-simulator";
import { modelFromSettings } from "@throughline/models";
import { chatSettings } from "@throughline/config";
import { createSessions } from "@throughline/session";
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
    const chat = modelFromSettings({ provider: "anthropic", apiKey: "sk-test", baseUrl: provider.url });
    // A count holds for the system prompt it was made with.
    const system = String(chatSettings.settings.find((setting) => setting.key === "system")?.default);
    await using sessions = createSessions({ store, model: { chat, modelId: "claude-opus-5" }, system });
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
});
