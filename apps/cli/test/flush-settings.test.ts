import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import { describe, expect, it } from "vitest";
import { objects, runHere, sentBody, temporaryDirectory } from "./harness.ts";

const key = "agent:main:cli:direct:work";
const windowTokens = 40_000;

interface Heard {
  /** What the requests had in their system prompt behind the configured text, each text once, with # for figures. */
  readonly system: readonly string[];
  /** The user messages that the flush put in, as stored. */
  readonly asked: readonly string[];
}

/** A conversation that fills so much of its window, a twenty-fifth with each turn, with these settings for the flush. */
async function conversationTo(percent: number, memoryFlush: Readonly<Record<string, unknown>>): Promise<Heard> {
  const directory = temporaryDirectory();
  await using provider = createProviderSimulator({ fallback: () => "Fine.", models: { "*": { windowTokens } } });
  await provider.start();
  try {
    const session = { memoryFlush: { timeZone: "UTC", ...memoryFlush }, checkpoint: { enabled: false } };
    writeFileSync(join(directory.path, "config.json"), JSON.stringify({ tools: "all", system: "Base.", session }));
    const environment = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
    const chat = ["chat", "--key", key, "--model", "anthropic/claude-opus-5", "--window", String(windowTokens)];
    for (let filled = 0; filled < percent;) {
      // The provider of the test counts four bytes for a token.
      const text = "word ".repeat((windowTokens * 0.04 * 4) / 5);
      const run = await runHere(directory.path, [...chat, "--once", text, "--json", "--quiet"], { environment });
      expect([run.code, run.stderr]).toEqual([0, ""]);
      filled = (objects(run.stdout)[0]?.["gauge"] as { percent: number } | undefined)?.percent ?? 100;
    }
    expect(provider.refusals).toEqual([]);
    const shown = await runHere(directory.path, ["show", key, "--json", "--quiet"]);
    return {
      system: [
        ...new Set(
          provider.requests
            .map(sentBody)
            .filter((body) => body["max_tokens"] !== undefined && body["tools"] !== undefined)
            .map((body) => String(body["system"]).replace("Base.", "").replaceAll(/\d+/g, "#"))
            // The line that says how full the window is, in every request.
            .map((system) => system.replace("[Context: #k/#k tokens (#%)]", "").trim()),
        ),
      ],
      asked: objects(shown.stdout).flatMap(({ record }) => {
        const { message } = (record ?? {}) as { message?: { source?: string; content: string } };
        return message?.source === "flush" ? [message.content] : [];
      }),
    };
  } finally {
    directory.remove();
  }
}

const thresholds = [
  { percent: 20, prompt: "Write down what matters.", injectAs: "system" },
  { percent: 40, prompt: "Store it.", injectAs: "user" },
];

describe("the settings of the memory flush, in a conversation", () => {
  it("are on without a setting, with the built-in threshold of 50 % first", { tags: ["slow"] }, async () => {
    expect(await conversationTo(40, {})).toEqual({ system: [""], asked: [] });
    expect(await conversationTo(54, {})).toEqual({
      system: ["", "Context at #%. Consider noting key decisions to memory."],
      asked: [],
    });
  });

  it("name the thresholds, their prompts and their deliveries", { tags: ["slow"] }, async () => {
    expect(await conversationTo(10, { thresholds })).toEqual({ system: [""], asked: [] });
    expect(await conversationTo(25, { thresholds })).toEqual({ system: ["", "Write down what matters."], asked: [] });
    const { system, asked } = await conversationTo(45, { thresholds });
    expect([system[1], asked[0]]).toEqual(["Write down what matters.", "Store it."]);
  });

  it("deliver a prompt without `injectAs` as a marked message of the user", async () => {
    const marked = [{ percent: 20, prompt: "Store it in memory/YYYY-MM-DD.md." }];
    const { asked, system } = await conversationTo(25, { thresholds: marked });
    const today = new Date().toISOString().slice(0, 10);
    expect(asked[0]).toBe(`[SYSTEM: memory flush]\nStore it in memory/${today}.md.`);
    expect(system).toEqual([""]);
  });

  it("switch it off", { tags: ["slow"] }, async () => {
    const off = { system: [""], asked: [] };
    expect(await conversationTo(60, { enabled: false })).toEqual(off);
    expect(await conversationTo(45, { enabled: false, thresholds })).toEqual(off);
  });
});
