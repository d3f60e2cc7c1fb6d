import type { CommandDefinition, OptionDefinition } from "./command.ts";
import { parseChoice, parseCount, parseLimit, parseNumber, parseTime } from "./option-values.ts";

const keyArgument = { name: "<key>", description: "key, id, or the beginning of a key, id or label" };
const exactKeyArgument = { name: "<key>", description: "key or id, exactly" };
const optionalKeyArgument = { name: "[key]", description: "key, id, or the beginning of a key, id or label" };

const limit: OptionDefinition = { flags: "--limit <n>", description: "at most so many, or all", parse: parseLimit };
const since: OptionDefinition = {
  flags: "--since <time>",
  description: "from this time on: ISO, or an age such as 2d",
  parse: parseTime,
};
const until: OptionDefinition = {
  flags: "--until <time>",
  description: "before this time: ISO, or an age such as 2d",
  parse: parseTime,
};
const allAgents: OptionDefinition = { flags: "--all-agents", description: "the sessions of every agent" };
const archived: OptionDefinition = { flags: "--archived", description: "archived sessions too" };
const role: OptionDefinition = {
  flags: "--role <role>",
  description: "messages of this role only: user, assistant, toolResult, …",
};

/** Every command there is, in the order the help shows them. */
export const commandTable: readonly CommandDefinition[] = [
  {
    name: "demo",
    description: "show what the store withstands: kill -9, a torn file, another program's transcripts",
    arguments: [],
    options: [],
    examples: ["demo", "demo --json"],
    load: () => import("./commands/demo.ts"),
  },
  {
    name: "sessions",
    description: "list sessions, newest first",
    arguments: [],
    options: [
      limit,
      { flags: "--cursor <cursor>", description: "go on where a list ended" },
      since,
      until,
      { flags: "--sort <order>", description: "updated or key", parse: parseChoice("updated", "key") },
      allAgents,
      archived,
    ],
    examples: ["sessions --limit 10 --since 2d", "sessions --all-agents --archived --json"],
    load: () => import("./commands/sessions.ts"),
  },
  {
    name: "show",
    description: "show a session's records",
    arguments: [keyArgument],
    options: [
      { flags: "--tail <n>", description: "the last so many only", parse: parseCount },
      { flags: "--after-seq <n>", description: "records after this sequence number only", parse: parseNumber },
      role,
      { flags: "--follow", description: "go on with what is appended, until interrupted" },
      { flags: "--all", description: "also what compactions left behind" },
      { flags: "--all-branches", description: "every record, other branches and side records too" },
      { flags: "--raw", description: "the records as JSON, one a line" },
    ],
    examples: ["show notes --tail 5", "show notes --all-branches --raw"],
    load: () => import("./commands/show.ts"),
  },
  {
    name: "context",
    description: "show what would be sent to a model now",
    arguments: [keyArgument],
    options: [
      {
        flags: "--provider <name>",
        description:
          "whose messages: neutral, anthropic, openai, openai-responses, ollama, gemini, mistral, bedrock or text (default: neutral)",
      },
      { flags: "--model <name>", description: "the model, if not the session's own" },
      { flags: "--window <tokens>", description: "the model's window", parse: parseCount },
    ],
    examples: ["context notes --window 200000", "context notes --provider anthropic --json"],
    load: () => import("./commands/context.ts"),
  },
  {
    name: "append",
    description: "append record drafts from stdin, one JSON object a line; each is acknowledged once durable",
    arguments: [exactKeyArgument],
    options: [
      {
        flags: "--batch <n>",
        description: "each so many lines are one append: all or none of them",
        parse: parseCount,
      },
      {
        flags: "--durability <level>",
        description: "none, process or disk (default: the store's)",
        parse: parseChoice("none", "process", "disk"),
      },
      { flags: "--expect-head <id>", description: 'refuse unless this record is the head; "" means an empty session' },
      { flags: "--idempotency-key <key>", description: "of the first append; the n-th one gets <key>:<n>" },
    ],
    examples: ["append notes < drafts.jsonl", "append notes --batch 2 --durability process --json < drafts.jsonl"],
    load: () => import("./commands/append.ts"),
  },
  {
    name: "import",
    description: "import transcripts; the files are never changed, and a second time adds nothing",
    arguments: [{ name: "<path...>", description: "files or directories" }],
    options: [
      {
        flags: "--from <format>",
        description: "auto, openclaw, pi, claw0 or jsonl (default: auto)",
        parse: parseChoice("auto", "openclaw", "pi", "claw0", "jsonl"),
      },
      { flags: "--key <key>", description: "the key of a single file's session" },
      { flags: "--dry-run", description: "say what would be done, change nothing" },
    ],
    examples: ["import session.jsonl --dry-run", "import session.jsonl --key agent:main:import:direct:example --json"],
    load: () => import("./commands/import.ts"),
  },
  {
    name: "export",
    description: "write sessions in a format that other programs read",
    arguments: [optionalKeyArgument],
    options: [
      { flags: "--all", description: "every session of the agent" },
      {
        flags: "--to <format>",
        description: "jsonl, openclaw or pi (default: jsonl)",
        parse: parseChoice("jsonl", "openclaw", "pi"),
      },
      { flags: "-o, --output <path>", description: "file, or directory with --all (default: stdout)" },
      allAgents,
      archived,
    ],
    examples: ["export notes --to pi", "export --all --to openclaw -o exported"],
    load: () => import("./commands/export.ts"),
  },
  {
    name: "copy",
    description: "copy sessions to another store; numbers and lines stay as they are",
    arguments: [optionalKeyArgument],
    options: [
      { flags: "--all", description: "every session of the agent" },
      { flags: "--to-store <url>", description: "the store to copy to; made when it is not there" },
      allAgents,
    ],
    examples: ["copy notes --to-store jsonl:other", "copy --all --to-store jsonl:other --json"],
    load: () => import("./commands/copy.ts"),
  },
  {
    name: "search",
    description: "find a phrase in the records of every session",
    arguments: [{ name: "<query...>", description: "the words, in this order" }],
    options: [
      limit,
      since,
      until,
      role,
      { flags: "--session <key>", description: "in this session only" },
      allAgents,
      archived,
    ],
    examples: ["search harbour lights --limit 5", "search harbour --role user --json"],
    load: () => import("./commands/search.ts"),
  },
  {
    name: "doctor",
    description: "say what is wrong with the store, or with transcripts that were not imported",
    arguments: [{ name: "[path]", description: "a file or directory instead of the store" }],
    options: [{ flags: "--repair", description: "write a clean copy beside each file that needs one; originals stay" }],
    examples: ["doctor", "doctor session.jsonl --repair --json"],
    load: () => import("./commands/doctor.ts"),
  },
  {
    name: "config",
    description: "print the effective settings and what set each of them",
    arguments: [],
    options: [{ flags: "--check", description: "only say whether the configuration is in order" }],
    examples: ["config", "config --check"],
    load: () => import("./commands/config.ts"),
  },
];
