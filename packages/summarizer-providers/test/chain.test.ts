import { ThroughlineError, type Summarizer, type SummaryRequest } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { createExtractiveSummarizer } from "../src/extractive-summarizer.ts";
import { createSummarizerBreakers } from "../src/summarizer-breakers.ts";
import { createSummarizerChain } from "../src/summarizer-chain.ts";
import { createTestClock } from "./test-clock.ts";

const request: SummaryRequest = {
  text: "[User]: Please read src/a.ts.\n\n[Assistant]: I read it. Shall I change it?",
  previousSummary: null,
  maxOutputTokens: 200,
};
const failing: Summarizer = { summarize: () => Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:11434")) };
const saying = (summary: string, source = "test"): Summarizer => ({
  summarize: async () => ({ summary, source, usage: { calls: 1 } }),
});

describe("a chain of summarizers", () => {
  it("asks in its order, and the next after a failure, which is counted", async () => {
    const breakers = createSummarizerBreakers({ clock: createTestClock() });
    const failed: string[] = [];
    const chain = createSummarizerChain({
      summarizers: [
        { name: "ollama", summarizer: failing },
        { name: "anthropic", summarizer: saying("All is well.", "anthropic") },
        { name: "never", summarizer: failing },
      ],
      breakers,
      onFailed: ({ name }) => void failed.push(name),
    });
    expect(await chain.summarize(request)).toEqual({
      summary: "All is well.",
      source: "anthropic",
      usage: { calls: 1 },
    });
    expect(failed).toEqual(["ollama"]);
    expect(breakers.status()).toMatchObject([
      { name: "anthropic", failures: 0 },
      { name: "ollama", failures: 1 },
    ]);
  });

  it("counts a text that fails the audit as a failure, for the breaker too", async () => {
    const breakers = createSummarizerBreakers({ clock: createTestClock(), threshold: 1 });
    const bad = [
      "",
      "   \n",
      "I'm sorry, I cannot help with that.",
      '<tool_call>{"name":"read"}</tool_call>',
      "word ".repeat(400).trim(),
    ];
    for (const [index, summary] of bad.entries()) {
      const name = `bad-${index}`;
      const chain = createSummarizerChain({
        summarizers: [
          { name, summarizer: saying(summary) },
          { name: "extractive", summarizer: createExtractiveSummarizer(), hasBreaker: false },
        ],
        breakers,
      });
      expect((await chain.summarize(request)).source).toBe("extractive");
      expect(breakers.status().find((one) => one.name === name)).toMatchObject({ state: "open", failures: 1 });
      expect(breakers.status()).toHaveLength(index + 1);
    }
  });

  it("asks the next one when a text says nothing of a long conversation, or fails the audit of who asks", async () => {
    const chain = createSummarizerChain({
      summarizers: [
        { name: "lazy", summarizer: saying("Ok.", "lazy") },
        { name: "wordy", summarizer: saying("They read one file and did not change it.", "wordy") },
        { name: "brief", summarizer: saying("They read a file.", "brief") },
      ],
    });
    const long = { ...request, text: "[User]: Please read src/a.ts again.\n\n".repeat(100) };
    expect((await chain.summarize(long)).source).toBe("wordy");
    const audit = (summary: string): string | null => (summary.length > 20 ? "too-large" : null);
    expect((await chain.summarize({ ...long, audit: (text) => (text === "Ok." ? "empty" : audit(text)) })).source).toBe(
      "brief",
    );
  });

  it("never leaves out its last one, so that a retry does not wait for a breaker", async () => {
    const breakers = createSummarizerBreakers({ clock: createTestClock(), threshold: 1 });
    let asked = 0;
    const main: Summarizer = { summarize: () => Promise.reject(new Error(`down: ${(asked += 1)}`)) };
    const chain = createSummarizerChain({
      summarizers: [
        { name: "ollama", summarizer: failing },
        { name: "main", summarizer: main },
      ],
      breakers,
    });
    for (let attempt = 1; attempt <= 4; attempt++) {
      await expect(chain.summarize(request)).rejects.toMatchObject({ code: "SUMMARY_FAILED" });
      expect(asked).toBe(attempt);
    }
    expect(breakers.status()).toMatchObject([{ name: "ollama", state: "open" }]);
  });

  it("works without any model at all", async () => {
    const chain = createSummarizerChain({
      summarizers: [{ name: "extractive", summarizer: createExtractiveSummarizer() }],
    });
    expect((await chain.summarize(request)).summary).toContain("Please read src/a.ts.");
  });

  it("says of everyone why there is no summary", async () => {
    const empty = createSummarizerChain({ summarizers: [] });
    await expect(empty.summarize(request)).rejects.toMatchObject({ code: "SUMMARY_FAILED" });
    const chain = createSummarizerChain({
      summarizers: [
        { name: "ollama", summarizer: failing },
        { name: "main", summarizer: saying("") },
      ],
    });
    await expect(chain.summarize(request)).rejects.toMatchObject({
      code: "SUMMARY_FAILED",
      retryable: true,
      details: {
        attempts: [
          { name: "ollama", message: "connect ECONNREFUSED 127.0.0.1:11434" },
          { name: "main", message: "What main wrote is no summary: empty." },
        ],
      },
    });
  });

  it("ends with the caller's signal, before it asks and in the middle, and asks nobody else then", async () => {
    const chain = (first: Summarizer): Summarizer =>
      createSummarizerChain({
        summarizers: [
          { name: "first", summarizer: first },
          { name: "second", summarizer: saying("Wrong.") },
        ],
      });
    await expect(chain(failing).summarize({ ...request, signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: "ABORTED",
    });
    const controller = new AbortController();
    const waiting: Summarizer = {
      summarize: () => {
        controller.abort();
        return Promise.reject(new ThroughlineError("ABORTED", "The summary was aborted."));
      },
    };
    await expect(chain(waiting).summarize({ ...request, signal: controller.signal })).rejects.toMatchObject({
      code: "ABORTED",
    });
  });
});
