import type { CommandDefinition } from "../command.ts";
import { allAgents, exactKeyArgument, keyArgument, purge, since } from "../common-options.ts";
import { parseAge, parseBytes, parseNumber } from "../option-values.ts";

/** Commands that change sessions take an exact key or id, so that a prefix never matches a wrong session. */
export const lifeCycleCommands: readonly CommandDefinition[] = [
  {
    name: "new",
    description: "make a new, empty session",
    arguments: [{ name: "[label...]", description: "what people call it; the key is made from it" }],
    options: [{ flags: "--key <key>", description: "a key of your own; refused when it is taken" }],
    examples: ["new Harbour plans", "new --key agent:main:cli:direct:plans --json"],
    load: () => import("../commands/new.ts"),
  },
  {
    name: "rename",
    description: "give a session another key or label; its id and records stay",
    arguments: [exactKeyArgument, { name: "[new-key]", description: "the new key" }],
    options: [{ flags: "--label <text>", description: 'what people call it; "" takes the label away' }],
    examples: [
      "rename notes agent:main:cli:direct:harbour",
      "rename agent:main:cli:direct:harbour notes --label Notes",
    ],
    load: () => import("../commands/rename.ts"),
  },
  {
    name: "reset",
    description: "archive the session and start a new one under its key",
    arguments: [exactKeyArgument],
    options: [
      { flags: "--bare", description: "keep no settings of the old session either" },
      { ...purge, description: "delete the old session for good instead of archiving it, with --yes" },
    ],
    examples: ["reset notes", "reset notes --purge --yes"],
    load: () => import("../commands/reset.ts"),
  },
  {
    name: "fork",
    description: "make a session that begins with the records of another",
    arguments: [exactKeyArgument],
    options: [
      { flags: "--at <record>", description: "the last record they share: id or number (default: all of them)" },
      { flags: "--key <key>", description: "the key of the new one (default: <key>-fork)" },
      { flags: "--label <text>", description: "what people call it (default: as the other)" },
    ],
    examples: ["fork notes --at 1", "fork notes --key agent:main:cli:direct:third --json"],
    load: () => import("../commands/fork.ts"),
  },
  {
    name: "rewind",
    description: "go back to an earlier record; what is left behind stays readable",
    arguments: [exactKeyArgument],
    options: [{ flags: "--to <record>", description: "the new head: id, number, or start" }],
    examples: ["rewind notes --to 1", "rewind notes --to start --json"],
    load: () => import("../commands/rewind.ts"),
  },
  {
    name: "delete",
    description: "archive a session, or delete it for good with --purge --yes; delete all sessions of a user",
    arguments: [{ ...exactKeyArgument, name: "[key]" }],
    options: [
      purge,
      {
        flags: "--user <prefix>",
        description: "delete for good: the sessions whose keys begin with these whole parts",
      },
      { flags: "--whole-namespace", description: "delete for good: all sessions of --namespace" },
      { flags: "--dry-run", description: "with one of them: count only, and delete nothing" },
      {
        flags: "--shred",
        description:
          "delete for good, and destroy the keys in an encrypted store: backups cannot be read for it either",
      },
      {
        flags: "--proof <file>",
        description: "with --shred: write the proof of deletion to a new file (default: print it)",
      },
      { flags: "--reason <text>", description: "with --shred: what the proof says; name no person in it" },
      { flags: "--keep-forks", description: "with --shred: forks that stay keep the records that they share" },
    ],
    examples: [
      "delete agent:main:cli:direct:notes-fork --purge --yes",
      "delete --user agent:main:web:direct:ada --dry-run",
    ],
    load: () => import("../commands/delete.ts"),
  },
  {
    name: "restore",
    description: "make an archived session the current one of its key again",
    arguments: [],
    options: [{ flags: "--archive <id>", description: "its id, as `sessions --archived` shows it" }],
    examples: ["restore --archive id-archived", "restore --archive id-archived-2 --json"],
    load: () => import("../commands/restore.ts"),
  },
  {
    name: "redact",
    description: "permanently erase the content of records, with --yes; each leaves a tombstone in its place",
    arguments: [exactKeyArgument, { name: "<record...>", description: "ids or numbers" }],
    options: [{ flags: "--reason <text>", description: "what the tombstone says" }],
    examples: ["redact notes 1 --yes", "redact notes 2 --reason 'a password' --yes --json"],
    load: () => import("../commands/redact.ts"),
  },
  {
    name: "secrets",
    description: "find keys and tokens in sessions, and redact them with --redact --yes",
    arguments: [{ name: "[key...]", description: "these sessions (default: all of the agent, archived ones too)" }],
    options: [since, { flags: "--redact", description: "replace each inside of its record, which keeps the rest" }],
    afterInterrupt: "What was redacted stays so. Run the same command again to continue.",
    examples: ["secrets", "secrets notes --redact --yes --json"],
    load: () => import("../commands/secrets.ts"),
  },
  {
    name: "entry",
    description: "read and change what is kept of a session besides its records",
    arguments: [
      { name: "<key>", description: "key or id; exactly, for a change" },
      { name: "[action]", description: "get (default), set or unset" },
      { name: "[field]", description: "the field; without one, get shows all" },
      { name: "[value]", description: "for set: JSON where it is JSON, else text" },
    ],
    options: [{ flags: "--text", description: "the value is text, whatever it looks like" }],
    examples: ["entry notes get label", "entry notes set sendPolicy deny --json"],
    load: () => import("../commands/entry.ts"),
  },
  {
    name: "approvals",
    description: "list the tool calls that wait for a decision, and decide on one",
    arguments: [
      exactKeyArgument,
      { name: "[text...]", description: "with --refuse or --withdraw: what the model reads" },
    ],
    options: [
      { flags: "--approve <id>", description: "allow the call; the program that resumes the turn runs it" },
      { flags: "--refuse <id>", description: "refuse the call" },
      { flags: "--withdraw <id>", description: "take the question back, for the program that asked" },
    ],
    examples: ["approvals notes", "approvals notes --json"],
    load: () => import("../commands/approvals.ts"),
  },
  {
    name: "policy",
    description: "print whether an agent may send in a session, the rule, and when the session resets",
    arguments: [keyArgument],
    options: [
      { flags: "--channel <name>", description: "of the message (default: the session's)" },
      { flags: "--chat-type <type>", description: "direct, group or channel (default: the session's)" },
    ],
    examples: ["policy notes", "policy notes --channel discord --json"],
    load: () => import("../commands/policy.ts"),
  },
  {
    name: "prune",
    description: "print which sessions are old or too many, archive them with --yes, purge old archives",
    arguments: [],
    options: [
      { flags: "--older-than <age>", description: "without activity for longer, such as 30d", parse: parseAge },
      {
        flags: "--keep <n>",
        description: "keep at most this number of active sessions, the newest",
        parse: parseNumber,
      },
      { flags: "--max-bytes <size>", description: "all together at most so large, such as 2GiB", parse: parseBytes },
      {
        flags: "--grace <age>",
        description: "how long an archive stays before it is purged (default: 30d)",
        parse: parseAge,
      },
      { flags: "--keep-archives", description: "purge no archive, whatever its age" },
      {
        flags: "--unused-files <age>",
        description: "delete files that no record names and that were put longer ago, such as 7d",
        parse: parseAge,
      },
      { flags: "--dry-run", description: "only the plan, even with --yes" },
      allAgents,
    ],
    examples: ["prune --older-than 30d", "prune --keep 500 --max-bytes 2GiB --yes --json"],
    load: () => import("../commands/prune.ts"),
  },
];
