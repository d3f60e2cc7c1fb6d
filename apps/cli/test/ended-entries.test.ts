import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import type { ProviderSimulatorOptions } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";
import type { Run } from "./harness.ts";

const key = "agent:main:cli:direct:ended";
let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

async function simulator(options: ProviderSimulatorOptions): Promise<ReturnType<typeof createProviderSimulator>> {
  const provider = createProviderSimulator(options);
  await provider.start();
  return provider;
}

interface AskOptions {
  readonly system?: string;
  readonly signal?: AbortSignal;
  readonly onStdout?: () => void;
}

function ask(url: string, args: readonly string[], { system, ...options }: AskOptions = {}): Promise<Run> {
  return runHere(directory.path, ["chat", "--key", key, "--model", "anthropic/claude-opus-5", ...args], {
    environment: {
      ANTHROPIC_API_KEY: "sk-test",
      ANTHROPIC_BASE_URL: url,
      ...(system === undefined ? {} : { THROUGHLINE_SYSTEM: system }),
    },
    ...options,
  });
}

async function entry(): Promise<Readonly<Record<string, unknown>>> {
  const { stdout } = await runHere(directory.path, ["entry", key, "--json"]);
  return objects(stdout)[0]?.["entry"] as Readonly<Record<string, unknown>>;
}

async function lastSeq(): Promise<unknown> {
  const { stdout } = await runHere(directory.path, ["context", key, "--json"]);
  return objects(stdout)[0]?.["lastSeq"];
}

describe("the entry after a turn", () => {
  it("says that the last run was aborted until a turn ends otherwise, without a record for it", async () => {
    const long = { kind: "answer", content: "word ".repeat(400), eventDelayMs: 20 } as const;
    await using provider = await simulator({ replies: [long], fallback: () => "Here again." });
    const interrupt = new AbortController();
    const aborted = await ask(provider.url, ["--once", "Tell me"], {
      signal: interrupt.signal,
      onStdout: () => interrupt.abort(),
    });
    expect(aborted.code).toBe(130);
    expect(await entry()).toMatchObject({ abortedLastRun: true });
    // The mark of the beginning, the words, the part of an answer, its call, and the mark of the end.
    expect(await lastSeq()).toBe(5);
    expect((await ask(provider.url, ["--once", "And now?"])).stdout).toBe("Here again.\n");
    expect(await entry()).toMatchObject({ abortedLastRun: false });
    expect(await lastSeq()).toBe(10);
  });

  it("says whether a system prompt was sent, and nothing of aborts that never were", async () => {
    writeFileSync(join(directory.path, "config.json"), JSON.stringify({ system: "" }));
    await using provider = await simulator({ fallback: () => "Here." });
    expect((await ask(provider.url, ["--once", "Hi"])).code).toBe(0);
    const before = await entry();
    expect([before["systemSent"], before["abortedLastRun"]]).toEqual([undefined, undefined]);
    expect((await ask(provider.url, ["--once", "Hi"], { system: "Be brief." })).code).toBe(0);
    expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain("Be brief.");
    const after = await entry();
    expect([after["systemSent"], after["abortedLastRun"]]).toEqual([true, undefined]);
  });
});

it("an answer that is for nobody is in no form of the output", async () => {
  await seed(directory.path, [{ key, drafts: [user("Hello"), assistant("Hello.")] }]);
  await using provider = await simulator({ fallback: () => "NO_REPLY nothing to store" });
  const text = await ask(provider.url, ["--once", "Hi", "--tools", "all"]);
  expect(text).toMatchObject({ code: 0, stdout: "" });
  const json = await ask(provider.url, ["--once", "Hi", "--tools", "all", "--json"]);
  expect(objects(json.stdout)).toMatchObject([{ kind: "turn", outcome: "done", stopReason: "stop", text: "" }]);
  const { stdout } = await runHere(directory.path, ["show", key, "--json", "--role", "assistant", "--quiet"]);
  expect(stdout).toContain("NO_REPLY nothing to store");
});
