import type { CommandDefinition } from "../command.ts";
import { usualModels } from "../common-options.ts";
import { parseCount } from "../option-values.ts";

export const conversationCommands: readonly CommandDefinition[] = [
  {
    name: "chat",
    description: "talk to an agent; resumes the newest session of this folder",
    asksModel: true,
    arguments: [],
    options: [
      { flags: "--key <key>", description: "this session: a key or id, exactly; a new key makes one" },
      {
        flags: "--model <provider/name>",
        description: "the model that answers; offline needs no key",
        suggestions: usualModels,
      },
      { flags: "--once <text>", description: "one turn, without a terminal; stdin does it too" },
      {
        flags: "--when-busy <what>",
        description:
          "while another process has a turn open: queue, reject or branch (default: queue if the session has a queueMode, else reject)",
        choices: ["queue", "reject", "branch"],
      },
      { flags: "--window <tokens>", description: "the model's window", parse: parseCount },
      { flags: "--workspace <dir>", description: "the folder the tools are confined to (default: the current one)" },
      {
        flags: "--tools <which>",
        description:
          "what the model may do there: read, memory (write in the memory folder too), all or none (default: all on a terminal, else read)",
        choices: ["read", "memory", "all", "none"],
      },
      {
        flags: "--approval <what>",
        description: "before the model changes a file: ask (on a terminal), allow or deny (default: ask)",
        choices: ["ask", "allow", "deny"],
      },
      { flags: "--allow-edits", description: "the same as --approval allow; `--yes` does not allow changes" },
      { flags: "--plain", description: "print line by line, for screen readers" },
    ],
    examples: [
      "chat --once 'hello' --model offline",
      "chat --key notes --once 'what did I say before' --model offline --json",
    ],
    load: () => import("../commands/chat.ts"),
  },
  {
    name: "demo",
    description:
      "show what a conversation withstands: kill -9, a small window, a torn file, another program's transcripts",
    arguments: [],
    options: [
      { flags: "--sabotage", description: "drop a record before the last comparison, which must fail", isHidden: true },
    ],
    examples: ["demo", "demo --json"],
    load: () => import("../commands/demo.ts"),
  },
];

export const programCommands: readonly CommandDefinition[] = [
  {
    name: "diagnose",
    description: "read a provider's error from stdin: an overflow or not, its sizes, and what the guard would do",
    arguments: [],
    options: [
      {
        flags: "--provider <name>",
        description: "the provider, if the error does not name it",
        suggestions: ["anthropic", "openai", "ollama", "gemini", "mistral", "bedrock"],
      },
    ],
    examples: [
      "diagnose <<< 'prompt is too long: 210000 tokens > 200000 maximum'",
      'diagnose --json <<< \'{"status":429,"message":"Too many tokens per minute"}\'',
    ],
    load: () => import("../commands/diagnose.ts"),
  },
  {
    name: "config",
    description: "print the effective settings and what set each of them",
    arguments: [{ name: "[setting]", description: "only this setting, or those that start with this text" }],
    options: [{ flags: "--check", description: "only report whether the configuration is valid" }],
    examples: ["config session.compaction", "config --check"],
    load: () => import("../commands/config.ts"),
  },
  {
    name: "completion",
    description: "print what makes a shell complete commands, options and keys",
    arguments: [{ name: "<shell>", description: "bash, zsh or fish" }],
    options: [],
    examples: ["completion bash", "completion fish"],
    load: () => import("../commands/completion.ts"),
  },
  {
    name: "__demo-talk",
    description: "the process of the demonstration that is killed",
    arguments: [
      { name: "<key>", description: "the session" },
      { name: "<workspace>", description: "the agent's files" },
    ],
    options: [{ flags: "--until <messages>", description: "end at this number of messages", parse: parseCount }],
    isHidden: true,
    examples: ["__demo-talk k w --until 1", "__demo-talk k w --until 2"],
    load: () => import("../commands/demo-talk.ts"),
  },
  {
    name: "__complete",
    description: "answers a shell",
    arguments: [{ name: "[words...]", description: "what was typed, the last one unfinished" }],
    options: [],
    isHidden: true,
    examples: ["__complete -- se", "__complete -- show n"],
    load: () => import("../commands/complete.ts"),
  },
];
