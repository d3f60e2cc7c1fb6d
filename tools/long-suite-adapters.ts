import { files, type LongSuite, tests } from "./long-suite.ts";

/** Random edits of what the frameworks keep themselves, compared with a list that is written whole. */
export const adapterSuites: readonly LongSuite[] = [
  tests("tests-adapter-ai-sdk", "two processes that save one chat 200 times each, 10,000 chats edited at random", {
    project: "packages/adapter-ai-sdk",
    full: files(["random-edits", "two-processes.slow"]),
    quick: files(["two-processes.slow"]),
  }),
  tests(
    "tests-adapter-openai-agents",
    "10,000 random sequences and 2,000 random runs on a session and on the SDK's MemorySession",
    {
      project: "packages/adapter-openai-agents",
      full: files(["random-sessions.slow", "random-runs"]),
      quick: files(["session"]),
    },
  ),
];
