import type { CommandDefinition } from "../command.ts";
import { allAgents, archived, keyArgument, limit, role, since, until, usualModels } from "../common-options.ts";
import { parseCount, parseNumber } from "../option-values.ts";

/** What only looks at sessions. */
export const readingCommands: readonly CommandDefinition[] = [
  {
    name: "sessions",
    description: "list sessions, newest first",
    arguments: [],
    options: [
      limit,
      { flags: "--cursor <cursor>", description: "continue after an earlier page" },
      since,
      until,
      { flags: "--sort <order>", description: "updated or key", choices: ["updated", "key"] },
      { flags: "--here", description: "only sessions of this folder" },
      { flags: "--folder <dir>", description: "only sessions of this folder" },
      { flags: "--program <name>", description: "only sessions of this program: own, claude-code, codex, pi, …" },
      { flags: "--keys", description: "whole keys, however narrow the terminal is" },
      allAgents,
      archived,
    ],
    examples: ["sessions --here --limit 10", "sessions --all-agents --archived --json"],
    load: () => import("../commands/sessions.ts"),
  },
  {
    name: "show",
    description: "show a session's records",
    arguments: [keyArgument],
    options: [
      { flags: "--tail <n>", description: "only the last n records", parse: parseCount },
      { flags: "--at <n>", description: "record n, with five records before it and five after it", parse: parseCount },
      { flags: "--after-seq <n>", description: "records after this sequence number only", parse: parseNumber },
      role,
      { flags: "--follow", description: "wait for new records, until interrupted" },
      { flags: "--all", description: "also the records before compactions" },
      { flags: "--all-branches", description: "every record, other branches and side records too" },
      { flags: "--raw", description: "the records as JSON, one a line" },
    ],
    examples: ["show notes --tail 5", "show notes --all-branches --raw"],
    load: () => import("../commands/show.ts"),
  },
  {
    name: "context",
    description: "show what the next request to the model would hold",
    arguments: [keyArgument],
    options: [
      {
        flags: "--provider <name>",
        description:
          "whose messages: neutral, anthropic, openai, openai-responses, ollama, gemini, mistral, bedrock or text (default: neutral)",
        suggestions: [
          "neutral",
          "anthropic",
          "openai",
          "openai-responses",
          "ollama",
          "gemini",
          "mistral",
          "bedrock",
          "text",
        ],
      },
      { flags: "--model <name>", description: "the model, if not the session's own", suggestions: usualModels },
      { flags: "--window <tokens>", description: "the model's window", parse: parseCount },
      { flags: "--messages", description: "also print the messages" },
    ],
    examples: ["context notes --window 200000", "context notes --provider anthropic --json"],
    load: () => import("../commands/context.ts"),
  },
  {
    name: "explain",
    description: "show what each past model call was sent, and what was summarized or shortened",
    arguments: [keyArgument],
    options: [
      { flags: "--turn <id>", description: "the calls of this turn only" },
      { flags: "--tail <n>", description: "only the last n calls", parse: parseCount },
    ],
    examples: ["explain notes", "explain notes --tail 1 --json"],
    load: () => import("../commands/explain.ts"),
  },
  {
    name: "search",
    description: "find words in the records of every session",
    arguments: [{ name: "<query...>", description: 'words that must all occur; "in quotes" together; beginn*' }],
    options: [
      limit,
      since,
      until,
      role,
      { flags: "--tool <name>", description: "calls of this tool and their answers only" },
      { flags: "--session <key>", description: "in this session only" },
      { flags: "--scan", description: "read every record, index or not" },
      allAgents,
      archived,
    ],
    afterInterrupt: "The printed hits are valid; the rest was not searched. Run it again.",
    examples: ["search harbour lights --limit 5", "search harbour --role user --json"],
    load: () => import("../commands/search.ts"),
  },
  {
    name: "watch",
    description: "print every record that is appended from now on, until interrupted",
    arguments: [keyArgument],
    options: [
      { flags: "--after-seq <n>", description: "from the record after this number on", parse: parseNumber },
      role,
      { flags: "--limit <n>", description: "end after this number of records", parse: parseCount },
    ],
    examples: ["watch notes --after-seq 0 --limit 1", "watch notes --after-seq 1 --limit 1 --json"],
    load: () => import("../commands/watch.ts"),
  },
];
