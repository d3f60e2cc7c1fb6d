import { createProviderSimulator } from "@throughline/testing";
import type { ProviderSimulator } from "@throughline/testing";
import type { RecordDraft } from "@throughline/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, runHere, seed, temporaryDirectory, user } from "./harness.ts";
import type { Run } from "./harness.ts";
import { runInTerminal } from "./terminal.ts";

const key = "agent:main:cli:direct:work";
const summarizerSystem = "You are a conversation summarizer. Be concise and factual.";
const chatArguments = ["chat", "--key", key, "--model", "anthropic/claude-opus-5"];
let directory = temporaryDirectory();
let provider: ProviderSimulator = createProviderSimulator();
beforeEach(async () => {
  directory = temporaryDirectory();
  provider = createProviderSimulator({
    fallback: ({ body }) =>
      JSON.stringify((body as { system?: unknown }).system).includes("summarizer")
        ? "The user counts the lamps of the quay every week. Lamp four is broken."
        : "Noted.",
  });
  await provider.start();
});
afterEach(async () => {
  await provider[Symbol.asyncDispose]();
  directory.remove();
});

/** The preset and nothing else. */
function environment(): Readonly<Record<string, string>> {
  return {
    THROUGHLINE_PRESET: "claw0",
    ANTHROPIC_API_KEY: "sk-test",
    ANTHROPIC_BASE_URL: provider.url,
    OPENAI_API_KEY: "",
  };
}

async function say(text: string): Promise<Run> {
  const run = await runHere(directory.path, [...chatArguments, "--once", text], { environment: environment() });
  expect(run, run.stderr).toMatchObject({ code: 0, stdout: "Noted.\n" });
  expect(provider.refusals).toEqual([]);
  return run;
}

interface Body {
  readonly system: unknown;
  readonly max_tokens: number;
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
}

function bodies(): readonly Body[] {
  return provider.requests.map(({ body }) => body as Body);
}

/** A tool's answer of the given number of characters, in lines. */
function result(callId: string, characters: number): readonly RecordDraft[] {
  const text = `the lamp of the quay is counted, ${callId}\n`;
  const content = text.repeat(Math.ceil(characters / text.length)).slice(0, characters);
  const call = { type: "toolCall", id: callId, name: "read", arguments: { path: `${callId}.txt` } };
  const asking = {
    role: "assistant",
    content: [call],
    provider: "anthropic",
    model: "claude-opus-5",
    stopReason: "toolUse",
  };
  const answer = {
    role: "toolResult",
    toolCallId: callId,
    toolName: "read",
    content: [{ type: "text", text: content }],
  };
  return [
    user(`Read ${callId}.txt`),
    { type: "message", message: asking },
    { type: "message", message: answer },
    assistant("Read."),
  ];
}

describe("the preset claw0 in chat", () => {
  it("leaves a request alone that fits, with 8,096 tokens for the answer", async () => {
    await seed(directory.path, [{ key, drafts: [...result("one", 250_000)] }]);
    await say("and now?");
    expect(bodies()).toHaveLength(1);
    expect(bodies()[0]).toMatchObject({ max_tokens: 8096 });
    expect(JSON.stringify(bodies()[0])).not.toContain("truncated");
  });

  it("cuts tool results over 216,000 characters to their beginning where a request does not fit", async () => {
    await seed(directory.path, [{ key, drafts: [...result("one", 400_000), ...result("two", 100_000)] }]);
    const { stderr } = await say("and now?");
    const [sent] = bodies();
    const cut = [
      ...JSON.stringify(sent).matchAll(/\[\.\.\. truncated \(400000 chars total, showing first (\d+)\) \.\.\.\]/g),
    ];
    expect(cut).toHaveLength(1);
    for (const [, shown] of cut) {
      expect(Number(shown)).toBeLessThanOrEqual(216_000);
      expect(Number(shown)).toBeGreaterThan(215_000);
    }
    expect(JSON.stringify(sent).includes("and last")).toBe(false);
    expect(bodies().map(({ system }) => JSON.stringify(system).includes("summarizer"))).toEqual([false]);
    expect(stderr).toContain("made smaller");
  });

  it("replaces the older half by one summary where that is not enough [GRD-04, GRD-12, GRD-14, GRD-15, C27b]", async () => {
    const text = "the lamps of the quay are counted every week. ".repeat(300);
    const drafts = Array.from({ length: 20 }, (_, index) => [
      user(`Question ${index}: ${text}`),
      assistant(`Answer ${index}: ${text}`),
    ]).flat();
    await seed(directory.path, [{ key, drafts }]);
    await say("and now?");
    const [asked, sent, ...more] = bodies();
    expect(more).toEqual([]);
    expect(asked).toMatchObject({ max_tokens: 2048 });
    expect([asked?.system].flat()).toEqual([
      expect.toSatisfy((system: unknown) => JSON.stringify(system).includes(summarizerSystem)),
    ]);
    const messages = sent?.messages ?? [];
    expect(JSON.stringify(messages[0]).slice(0, 600)).toContain(
      String.raw`[Previous conversation summary]\nThe user counts the lamps of the quay every week. Lamp four is broken.`,
    );
    expect(JSON.stringify(messages[1]).slice(0, 200)).toContain("Understood, I have the context.");
    // Of 41 messages the newer half stays: from question 10 on.
    const kept = messages.filter(({ content }) => /"(Question|Answer) \d+:/.test(JSON.stringify(content)));
    expect(JSON.stringify(kept[0]).slice(0, 200)).toContain("Question 10:");
    expect(kept).toHaveLength(20);
  });

  it("gives the summarizer plain text, inputs as JSON, and 500 characters of each result", async () => {
    // The older half is short enough to be read in one part, in which no result is made smaller for want of room.
    const text = (index: number): string =>
      "the lamps of the quay are counted every week. ".repeat(index < 10 ? 100 : 480);
    const drafts = Array.from({ length: 20 }, (_, index) => [
      ...(index === 1 ? result("call_1", 2000) : []),
      user(`Question ${index}: ${text(index)}`),
      assistant(`Answer ${index}: ${text(index)}`),
    ]).flat();
    await seed(directory.path, [{ key, drafts }]);
    await say("and now?");
    const [content] = bodies()[0]?.messages.map((message) => message.content) ?? [];
    const prompt = typeof content === "string" ? content : (content as readonly { text: string }[])[0]?.text;
    expect(prompt).toContain('[Assistant calls]: read {"path":"call_1.txt"}');
    const [, shown = ""] = /\[Tool result read\]: ((?:.*\n {2})*.*)/.exec(prompt ?? "") ?? [];
    expect(shown).toMatch(/^the lamp of the quay is counted, call_1\n/);
    expect(shown).toContain("characters left out");
    // Without the line feed that may end its second half.
    const kept = shown.replaceAll("\n  ", "\n").replace(/\n\[….*\]\n/, "").length;
    expect([499, 500]).toContain(kept);
  });

  it("shows the limit of 180,000 tokens and 30 cells [TOK-06, C38c, C52]", { tags: ["slow"] }, async () => {
    await seed(directory.path, [{ key, drafts: [user("hello"), assistant("Hello.")] }]);
    await using terminal = runInTerminal(directory.path, chatArguments, {
      environment: { ...environment(), HOME: directory.path, THROUGHLINE_HOME: directory.path },
      columns: 200,
    });
    await terminal.waitForPrompt();
    terminal.write("/context\r");
    await terminal.waitFor(/Context usage: ~[\d,]+ \/ 180,000 tokens\n\[-{30}\] 0\.\d%/);
  });
});
