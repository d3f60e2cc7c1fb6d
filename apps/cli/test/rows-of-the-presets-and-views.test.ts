import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import type { ProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";
import type { Run } from "./harness.ts";
import { runInTerminal } from "./terminal.ts";

const main = "anthropic/claude-opus-5";
const key = "agent:main:cli:direct:work";

let directory = temporaryDirectory();
let anthropic: ProviderSimulator;
beforeEach(async () => {
  directory = temporaryDirectory();
  anthropic = createProviderSimulator({ fallback: () => "Yes." });
  await anthropic.start();
});
afterEach(async () => {
  await anthropic.close();
  directory.remove();
});

const environment = (): Readonly<Record<string, string>> => ({
  ANTHROPIC_API_KEY: "sk-test",
  ANTHROPIC_BASE_URL: anthropic.url,
  OPENAI_API_KEY: "",
});

function configure(config: Readonly<Record<string, unknown>>): void {
  writeFileSync(join(directory.path, "config.json"), JSON.stringify(config));
}

async function throughline(...args: readonly string[]): Promise<Run> {
  return runHere(directory.path, [...args, "--json"], { environment: environment() });
}

const asked = (): readonly Readonly<Record<string, unknown>>[] =>
  anthropic.requests
    .filter(({ path }) => path.replace(/\?.*/, "").endsWith("/messages"))
    .map(({ body }) => body as Readonly<Record<string, unknown>>);

const chat = (text: string, ...args: readonly string[]): Promise<Run> =>
  throughline("chat", "--key", key, "--model", main, "--once", text, ...args);

describe("the reply budget of a chat", () => {
  it("is 8192, or what is set, and 8096 under claw0 [GRD-08b, C39b]", async () => {
    for (const config of [{}, { maxOutputTokens: 3000 }, { preset: "claw0" }]) {
      configure(config);
      expect(await chat("Hello")).toMatchObject({ code: 0 });
    }
    expect(asked().map(({ max_tokens }) => max_tokens)).toEqual([8192, 3000, 8096]);
  });
});

describe("checkpoints under goclaw-spec", () => {
  const checkpointRequests = (): readonly Readonly<Record<string, unknown>>[] =>
    asked().filter(({ system }) => JSON.stringify(system ?? "").includes("where a conversation stands"));

  const turn = async (tokens: number): Promise<void> => {
    anthropic.enqueue({ kind: "answer", content: "Yes.", usage: { inputTokens: tokens } });
    expect(await chat("And?", "--tools", "none")).toMatchObject({ code: 0 });
  };
  const quiet = { memoryFlush: { enabled: false } };

  it("are made after 15 messages [CKP-04b, C21b]", async () => {
    configure({ preset: "goclaw-spec", session: quiet });
    for (let at = 1; at <= 14; at++) await turn(10_500);
    expect(checkpointRequests()).toEqual([]);
    await turn(10_500);
    expect(checkpointRequests().length).toBeGreaterThan(0);
  });

  it("are made from 10,000 tokens on [CKP-05b, C22b]", async () => {
    configure({ preset: "goclaw-spec", session: { ...quiet, checkpoint: { turnThreshold: 1 } } });
    await turn(9900);
    await turn(9900);
    expect(checkpointRequests()).toEqual([]);
    await turn(10_100);
    expect(checkpointRequests().length).toBeGreaterThan(0);
  });
});

describe("the view of a context", () => {
  it("breaks the window down into its parts, which add up to what is used", async () => {
    const drafts = Array.from({ length: 12 }, (_, index) => [
      user(`Look after quay ${index}, and never paint it red. `.repeat(10)),
      assistant(`Quay ${index} is looked after. `.repeat(12)),
    ]).flat();
    await seed(directory.path, [{ key, drafts }]);
    // The better summary would be asked for with the answers of this test.
    configure({ session: { compaction: { retryIntervalSeconds: 0 } } });
    expect(await throughline("compact", key, "--model", "offline")).toMatchObject({ code: 0 });
    writeFileSync(join(directory.path, "quays.txt"), "a quay and a quay\n".repeat(200));
    anthropic.enqueue(
      { kind: "answer", content: [{ type: "tool-call", name: "read", input: { path: "quays.txt" } }] },
      { kind: "answer", content: "Read.", usage: { inputTokens: 9000 } },
    );
    expect(await chat("Read quays.txt")).toMatchObject({ code: 0 });
    const [view = {}] = objects((await throughline("context", key, "--window", "100000")).stdout);
    const parts = view["breakdown"] as Readonly<Record<string, number>>;
    expect(Object.keys(parts).toSorted()).toEqual([
      "messageTokens",
      "summaryTokens",
      "systemTokens",
      "toolResultTokens",
      "toolsTokens",
    ]);
    const { tokens } = view["gauge"] as { readonly tokens: number };
    expect(Object.values(parts).reduce((sum, part) => sum + part, 0)).toBe(tokens);
    for (const part of ["systemTokens", "summaryTokens", "messageTokens", "toolResultTokens"])
      expect(parts[part], part).toBeGreaterThan(50);
    const text = await runHere(directory.path, ["context", key, "--window", "100000"]);
    for (const name of ["system, tools", "summary", "messages", "tool results", "free"])
      expect(text.stdout).toMatch(new RegExp(`^ {2}${name} +[\\d,]+$`, "m"));
  });

  it("says that the window is unknown, in the conversation and outside of it [C55, TOK-07]", async () => {
    await seed(directory.path, [{ key, drafts: [user("Hello"), assistant("Good morning.")] }]);
    const { stdout } = await runHere(directory.path, ["context", key]);
    expect(stdout).toMatch(/^~\d+ tokens, window unknown/m);
    expect(stdout).not.toContain("%");
    await using terminal = runInTerminal(directory.path, ["chat", "--key", key, "--model", "offline"], {
      environment: environment(),
      columns: 200,
    });
    await terminal.waitForPrompt();
    terminal.write("/context\r");
    await terminal.waitFor(/Context usage: ~[\d,]+ tokens \(window unknown\)/);
  });
});

describe("what cannot be switched off", () => {
  it("compaction has no such setting, and the line of one that is made up is named", async () => {
    writeFileSync(
      join(directory.path, "config.json"),
      '{\n  "session": {\n    "compaction": {"enabled": false}\n  }\n}\n',
    );
    const run = await throughline("config", "--check");
    expect(run.code).not.toBe(0);
    expect(run.stderr).toMatch(/config\.json:3.*session\.compaction\.enabled/);
  });
});
