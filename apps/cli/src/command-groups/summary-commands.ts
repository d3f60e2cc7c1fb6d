import type { CommandDefinition, OptionDefinition } from "../command.ts";
import { exactKeyArgument, keyArgument, usualModels } from "../common-options.ts";
import { parseCount, parseLimit } from "../option-values.ts";

const modelOptions: readonly OptionDefinition[] = [
  { flags: "--dry-run", description: "print what would be done; call no model, change nothing" },
  {
    flags: "--model <provider/name>",
    description: "the model that writes it; offline needs no key",
    suggestions: usualModels,
  },
  { flags: "--window <tokens>", description: "the model's window", parse: parseCount },
];

export const summaryCommands: readonly CommandDefinition[] = [
  {
    name: "compact",
    description: "replace the older part of a session by a summary; the log keeps every record",
    asksModel: true,
    arguments: [exactKeyArgument],
    options: modelOptions,
    examples: ["compact notes --dry-run --model offline", "compact notes --model offline --json"],
    load: () => import("../commands/compact.ts"),
  },
  {
    name: "checkpoint",
    description: "write down where a session stands: summary, topics, decisions, open questions",
    asksModel: true,
    arguments: [exactKeyArgument],
    options: modelOptions,
    examples: ["checkpoint notes --dry-run --model offline", "checkpoint notes --model offline --json"],
    load: () => import("../commands/checkpoint.ts"),
  },
  {
    name: "checkpoints",
    description: "list a session's checkpoints, oldest first",
    arguments: [keyArgument],
    options: [{ flags: "--limit <n>", description: "only the newest n, or all", parse: parseLimit }],
    examples: ["checkpoints notes", "checkpoints notes --limit 1 --json"],
    load: () => import("../commands/checkpoints.ts"),
  },
  {
    name: "memory",
    description: "search memory files and past conversation, as an agent's memory_search does",
    arguments: [
      {
        name: "<action>",
        description: "search, or index: give past conversation the vectors that a search by meaning lacks",
      },
      { name: "[query...]", description: "what to look for; not all of its words have to occur" },
    ],
    options: [
      { flags: "--limit <n>", description: "at most this number of places, up to 20 (default: 5)", parse: parseCount },
      { flags: "--session <key>", description: "only what this session no longer has in its context" },
      { flags: "--workspace <dir>", description: "where the memory files are (default: the current folder)" },
    ],
    examples: ["memory search harbour lights", "memory search harbour --json"],
    load: () => import("../commands/memory.ts"),
  },
];
