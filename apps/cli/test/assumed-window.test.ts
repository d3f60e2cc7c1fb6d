import { createProviderSimulator } from "@throughline/testing";
import { afterAll, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

const directory = temporaryDirectory();
afterAll(() => directory.remove());

interface Asked {
  readonly windowTokens: unknown;
  readonly notes: string;
}

/** One turn with a server of OpenAI's kind, which states no window. */
async function ask(args: readonly string[] = [], environment: Readonly<Record<string, string>> = {}): Promise<Asked> {
  await using provider = createProviderSimulator({ fallback: () => "Hello." });
  await provider.start();
  const { stdout, stderr } = await runHere(
    directory.path,
    ["chat", "--once", "hi", "--key", "window", "--model", "openai/gpt-5", "--json", ...args],
    { environment: { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${provider.url}/v1`, ...environment } },
  );
  expect(provider.refusals).toEqual([]);
  const { gauge } = objects(stdout).at(-1) as { readonly gauge: { readonly windowTokens: unknown } };
  return { windowTokens: gauge.windowTokens, notes: stderr };
}

describe("the window of a model whose provider states none", () => {
  it("is 200,000 tokens, which a note says [C38]", async () => {
    const { windowTokens, notes } = await ask();
    expect(windowTokens).toBe(200_000);
    expect(notes).toContain("The provider does not state the window of gpt-5; 200,000 tokens are assumed.");
  });

  it("is as the setting says, and unknown where the setting is 0 [C55]", async () => {
    expect(await ask(["--window", "64000"])).toMatchObject({ windowTokens: 64_000 });
    const { windowTokens, notes } = await ask([], { THROUGHLINE_WINDOW_TOKENS: "0" });
    expect([windowTokens, notes]).toEqual([null, expect.not.stringContaining("assumed")]);
  });
});
