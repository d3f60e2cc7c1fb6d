import { foreignFormatNames, writableFormatNames } from "@throughline/foreign-formats/internal";
import type { CommandDefinition } from "../command.ts";
import { allAgents, archived, exactKeyArgument, here, keyArgument, optionalKeyArgument } from "../common-options.ts";
import { parseCount } from "../option-values.ts";

const importFormats: readonly string[] = [
  "auto",
  "openclaw",
  "openclaw-sqlite",
  "pi",
  "claw0",
  "goclaw",
  "clawcode",
  ...foreignFormatNames,
  "jsonl",
];

const handOffTargets: readonly string[] = ["claude-code", "codex", "gemini", "pi", "openclaw"];

const exportFormats: readonly string[] = [
  "html",
  "markdown",
  "jsonl",
  "openclaw",
  "pi",
  "claw0",
  "otlp-json",
  ...writableFormatNames,
];

function choiceText(choices: readonly string[]): string {
  return `${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}`;
}

export const transferCommands: readonly CommandDefinition[] = [
  {
    name: "append",
    description: "append record drafts from stdin, one JSON object a line; each is acknowledged once durable",
    arguments: [exactKeyArgument],
    options: [
      {
        flags: "--batch <n>",
        description: "append n lines at a time: all of them or none",
        parse: parseCount,
      },
      {
        flags: "--durability <level>",
        description: "none, process or disk (default: the store's)",
        choices: ["none", "process", "disk"],
      },
      { flags: "--expect-head <id>", description: 'refuse unless this record is the head; "" means an empty session' },
      { flags: "--idempotency-key <key>", description: "of the first append; the n-th one gets <key>:<n>" },
    ],
    examples: ["append notes < drafts.jsonl", "append notes --batch 2 --durability process --json < drafts.jsonl"],
    load: () => import("../commands/append.ts"),
  },
  {
    name: "import",
    description: "import transcripts; the files are never changed, and a second time adds nothing",
    arguments: [{ name: "<path...>", description: "files or directories" }],
    options: [
      {
        flags: "--from <format>",
        description: `${choiceText(importFormats)} (default: auto)`,
        choices: importFormats,
      },
      { flags: "--key <key>", description: "the key of a single file's session" },
      { flags: "--dry-run", description: "say what would be done, change nothing" },
      { flags: "--watch", description: "keep importing what is added, until Ctrl-C" },
    ],
    afterInterrupt: "What was imported stays. Run the same command again to continue.",
    examples: ["import session.jsonl --dry-run", "import session.jsonl --key agent:main:import:direct:example --json"],
    load: () => import("../commands/import.ts"),
  },
  {
    name: "sync",
    description: "import what is new from every program on this machine; the files are never changed",
    arguments: [{ name: "[path...]", description: "files or directories to import as well" }],
    options: [
      { flags: "--watch", description: "keep importing what is added, until Ctrl-C" },
      { flags: "--programs <list>", description: "only these programs: claude-code,codex" },
      { flags: "--dry-run", description: "say what would be done, change nothing" },
    ],
    afterInterrupt: "What was imported stays. Run the same command again to continue.",
    examples: ["sync", "sync --programs claude-code,codex --json"],
    load: () => import("../commands/sync.ts"),
  },
  {
    name: "export",
    description: "write a session as a page for people, or sessions in a format that other programs read",
    arguments: [optionalKeyArgument],
    options: [
      { flags: "--all", description: "every session of the agent" },
      {
        flags: "--to <format>",
        description: `${choiceText(exportFormats)} (default: jsonl)`,
        choices: exportFormats,
      },
      {
        flags: "-o, --output <path>",
        description: "file, or directory with --all (default: stdout; html and markdown: a new file here)",
      },
      { flags: "--latest", description: "html and markdown: the newest session" },
      { ...here, description: "with --latest: of this folder and the folders below it" },
      { flags: "--open", description: "html and markdown: open the file afterwards" },
      {
        flags: "--level <level>",
        description: "html and markdown: full, compact (results to 20 lines) or words (default: compact)",
        choices: ["full", "compact", "words"],
      },
      {
        flags: "--redact <state>",
        description: "html and markdown: on or off, the search for secrets (default: on)",
        choices: ["on", "off"],
      },
      {
        flags: "--redact-pattern <expression>",
        description: "html and markdown: also replace what it matches; repeatable",
        isRepeatable: true,
      },
      { flags: "--images", description: "html and markdown: with images" },
      { flags: "--content", description: "with otlp-json: also what was sent and said" },
      allAgents,
      archived,
    ],
    afterInterrupt: "The files that exist are complete. Run the same command again to write the rest.",
    examples: ["export notes --to html", "export --all --to openclaw -o exported"],
    load: () => import("../commands/export.ts"),
  },
  {
    name: "handoff",
    description: "write a session where another program finds it, and print the command that resumes it there",
    arguments: [keyArgument],
    options: [
      {
        flags: "--to <program>",
        description: `${choiceText(handOffTargets)}; the session here stays as it is`,
        choices: handOffTargets,
      },
    ],
    examples: ["handoff notes --to claude-code", "handoff notes --to codex --json"],
    load: () => import("../commands/handoff.ts"),
  },
  {
    name: "resume",
    description: "print the command that continues a session in its own program and folder",
    arguments: [keyArgument],
    options: [{ flags: "--run", description: "run the command on this terminal" }],
    examples: ["resume notes", "resume notes --json"],
    load: () => import("../commands/resume.ts"),
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
    afterInterrupt: "What was copied stays. Run the same command again to continue.",
    examples: ["copy notes --to-store jsonl:other", "copy --all --to-store jsonl:other --json"],
    load: () => import("../commands/copy.ts"),
  },
  {
    name: "relocate",
    description: "move sessions to another schema of PostgreSQL while programs write to them",
    arguments: [],
    options: [
      {
        flags: "--to-store <url>",
        description: "the schema to move to: postgres://…?schema=NAME; made when it is not there",
      },
      { flags: "--all-namespaces", description: "the sessions of every namespace" },
    ],
    afterInterrupt: "What was moved stays moved, and nothing is at two places. Run the same command again to continue.",
    examples: [
      "relocate --store postgres://db/app --to-store 'postgres://db/app?schema=spread&layout=tenant' --yes",
      "relocate --store postgres://db/app --to-store postgres://new/app --all-namespaces --yes --json",
    ],
    load: () => import("../commands/relocate.ts"),
  },
];
