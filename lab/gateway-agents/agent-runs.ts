import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { GatewayMode } from "../../apps/server/src/index.ts";
import type { ReceivedRequest, SimulatedReply } from "../../packages/testing/src/index.ts";
import type { ReplyPart } from "../../packages/testing/src/simulated-reply.ts";
import { factsOf, task } from "./request-facts.ts";
import type { Stand } from "./stand.ts";

/** One question to the program. */
export interface AgentStep {
  readonly name: string;
  readonly question: string;
  /** What the provider answers to the main agent, by how many results stand behind the question and how often it was asked. */
  reply(facts: { readonly results: number; readonly time: number; readonly request: ReceivedRequest }): SimulatedReply;
  /** The program gets an interrupt once the answer has begun. */
  readonly isInterrupted?: boolean;
  /** The program sums up its history. */
  readonly isCompaction?: boolean;
  /** So many tokens more than the first request of this step fit; the next one of the step does not. */
  readonly roomTokens?: number;
}

/** A conversation of a program. */
export interface AgentRun {
  readonly name: string;
  readonly program: "claude" | "codex" | "opencode";
  readonly packageName: string;
  readonly mode: GatewayMode;
  readonly credentials: "server" | "caller";
  readonly steps: readonly AgentStep[];
  /** Writes the configuration of the guide; gives the variables that it names. */
  setUp(stand: Stand, home: string, project: string): Readonly<Record<string, string>>;
  words(step: AgentStep, isFirst: boolean): readonly string[];
}

const guide = readFileSync(join(import.meta.dirname, "../../docs/guides/record-any-agent.md"), "utf8");

/** A block of the guide below a heading, for this stand. */
function guideBlock(heading: string, index: number, { baseUrls, token }: Stand): string {
  const [, section = ""] = guide.split(`\n## ${heading}\n`);
  const [, text] = [...(section.split("\n## ", 1)[0] ?? "").matchAll(/```\w+\n([\s\S]*?)```/g)][index] ?? [];
  if (text === undefined) throw new Error(`the guide has no block ${index} below "${heading}"`);
  return text
    .replaceAll("http://127.0.0.1:4788/anthropic", baseUrls.anthropic)
    .replaceAll("http://127.0.0.1:4788/openai", baseUrls.openai)
    .replaceAll("tl_…", token);
}

function exportsOf(block: string): Readonly<Record<string, string>> {
  const lines = block.matchAll(/^export (\w+)=(?:"([^"]*)"|(.*))$/gm);
  return Object.fromEntries([...lines].map(([, name = "", quoted, plain = ""]) => [name, quoted ?? plain]));
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** How the programs call their tools. */
interface Tools {
  shell(command: string): Omit<Extract<ReplyPart, { readonly type: "tool-call" }>, "type">;
  readonly subAgent: Omit<Extract<ReplyPart, { readonly type: "tool-call" }>, "type">;
  /** Waits for what a sub-agent says; null: its call waits. */
  readonly wait: Omit<Extract<ReplyPart, { readonly type: "tool-call" }>, "type"> | null;
}

const description = "look around";
const claudeTools: Tools = {
  shell: (command) => ({ name: "Bash", input: { command, description } }),
  subAgent: { name: "Agent", input: { description, prompt: task, subagent_type: "Explore" } },
  wait: null,
};
const codexTools: Tools = {
  shell: (cmd) => ({ name: "exec", input: `text(await tools.exec_command(${JSON.stringify({ cmd })}))` }),
  subAgent: { name: "spawn_agent", input: { task_name: "look_around", message: task } },
  wait: { name: "wait_agent", input: { timeout_ms: 10_000 } },
};
const opencodeTools: Tools = {
  shell: (command) => ({ name: "bash", input: { command, description } }),
  subAgent: { name: "task", input: { description, prompt: task, subagent_type: "general" } },
  wait: null,
};

const call = (tool: ReturnType<Tools["shell"]>): SimulatedReply => ({
  kind: "answer",
  content: [{ type: "tool-call", ...tool }],
});

function stepsOf(tools: Tools): Readonly<Record<string, AgentStep>> {
  const steps: readonly AgentStep[] = [
    { name: "question", question: "First question", reply: () => "The first answer." },
    { name: "continued", question: "Second question", reply: () => "The second answer." },
    {
      name: "tool",
      question: "Run the program",
      reply: ({ results }) => (results === 0 ? call(tools.shell("echo from-the-shell")) : "The program ran."),
    },
    {
      name: "sub-agent",
      question: "Send a sub-agent",
      reply: ({ results }) => {
        if (results === 0) return call(tools.subAgent);
        return results === 1 && tools.wait !== null ? call(tools.wait) : "The sub-agent was sent.";
      },
    },
    {
      name: "overload",
      question: "Third question",
      reply: ({ time }) => {
        const status = [529, 500, 503][time];
        return status === undefined ? "The third answer." : { kind: "error", status, retryAfterMs: 20 };
      },
    },
    {
      name: "rate limit",
      question: "Fourth question",
      reply: ({ time }) => (time === 0 ? { kind: "error", status: 429, retryAfterMs: 20 } : "The fourth answer."),
    },
    {
      name: "interrupt",
      question: "Tell a long story",
      isInterrupted: true,
      reply: () => ({ kind: "answer", content: "And so on. ".repeat(2000), eventDelayMs: 50 }),
    },
    { name: "after it", question: "Fifth question", reply: () => "The fifth answer." },
    { name: "compaction", question: "Sixth question", isCompaction: true, reply: () => "The sixth answer." },
    { name: "behind it", question: "Seventh question", reply: () => "The seventh answer." },
    // The program counts the parts of its prompt with the provider.
    { name: "count", question: "/context", reply: () => "Nothing is asked." },
    { name: "ended", question: "Last question", reply: () => "The last answer." },
    {
      name: "overflow",
      question: "Run the long program",
      roomTokens: 2000,
      reply: ({ results }) => (results === 0 ? call(tools.shell("seq 1 5000")) : "It counts to 5000."),
    },
  ];
  return Object.fromEntries(steps.map((step) => [step.name, step]));
}

function chosen(tools: Tools, names: readonly string[]): readonly AgentStep[] {
  const steps = stepsOf(tools);
  return names.map((name) => steps[name] as AgentStep);
}

const allSteps = ["question", "continued", "tool", "sub-agent", "overload", "rate limit", "interrupt", "after it"];
/** `opencode run` cannot be told to sum up. */
const compaction = ["compaction", "behind it"];

const claude = {
  program: "claude",
  packageName: "@anthropic-ai/claude-code",
  words: ({ question, isCompaction = false }: AgentStep, isFirst: boolean) => [
    "-p",
    ...(isFirst ? [] : ["--continue"]),
    "--allowedTools=Bash,Agent",
    "--",
    isCompaction ? "/compact" : question,
  ],
} as const;

const codex = {
  program: "codex",
  packageName: "@openai/codex",
  words: ({ question, isCompaction = false }: AgentStep, isFirst: boolean) => [
    "exec",
    "--skip-git-repo-check",
    ...(isFirst ? [] : ["resume", "--last"]),
    // Its instructions and tools alone take more.
    ...(isCompaction ? ["-c", "model_auto_compact_token_limit=14000"] : []),
    question,
  ],
} as const;

const opencode = (model: string | null) =>
  ({
    program: "opencode",
    packageName: "opencode-ai",
    setUp: (stand: Stand, _home: string, project: string) => {
      write(join(project, "opencode.json"), guideBlock("opencode", 0, stand));
      return { THROUGHLINE_TOKEN: stand.token };
    },
    words: ({ question }: AgentStep, isFirst: boolean) => [
      "run",
      ...(isFirst ? [] : ["--continue"]),
      ...(model === null ? [] : ["--model", model]),
      question,
    ],
  }) as const;

const claudeEnvironment = (stand: Stand): Readonly<Record<string, string>> =>
  exportsOf(guideBlock("Claude Code", 0, stand));

/** @param change of the configuration in the guide */
function codexConfiguration(stand: Stand, home: string, change: (toml: string) => string): void {
  write(join(home, ".codex/config.toml"), change(guideBlock("Codex", 0, stand)));
}

const codexSetUp = (stand: Stand, home: string): Readonly<Record<string, string>> => {
  codexConfiguration(stand, home, (toml) => toml);
  return { THROUGHLINE_TOKEN: stand.token };
};

const record = { mode: "record", credentials: "server" } as const;
const guard = { mode: "guard", credentials: "server" } as const;

export const agentRuns: readonly AgentRun[] = [
  {
    ...claude,
    ...record,
    name: "Claude Code",
    steps: chosen(claudeTools, [...allSteps, ...compaction, "count", "ended"]),
    setUp: claudeEnvironment,
  },
  {
    ...claude,
    name: "Claude Code, own key",
    mode: "record",
    credentials: "caller",
    steps: chosen(claudeTools, ["question", "continued"]),
    setUp: (stand) => ({ ...exportsOf(guideBlock("Claude Code", 1, stand)), ANTHROPIC_API_KEY: "own-key" }),
  },
  {
    ...claude,
    ...guard,
    name: "Claude Code",
    steps: chosen(claudeTools, ["question", "overflow", "continued"]),
    setUp: claudeEnvironment,
  },
  { ...codex, ...record, name: "Codex", steps: chosen(codexTools, [...allSteps, ...compaction]), setUp: codexSetUp },
  {
    ...codex,
    name: "Codex, own key",
    mode: "record",
    credentials: "caller",
    steps: chosen(codexTools, ["question", "continued"]),
    setUp: (stand, home) => {
      const [, key = "", headers = ""] =
        /set `(env_key = "\w+")` and `(env_http_headers = \{[^`]*\})`/.exec(guide) ?? [];
      codexConfiguration(stand, home, (toml) => `${toml.replace(/^env_key = .*$/m, key)}${headers}\n`);
      return { OPENAI_API_KEY: "own-key", THROUGHLINE_TOKEN: stand.token };
    },
  },
  {
    ...codex,
    ...record,
    name: "Codex, WebSocket asked for",
    steps: chosen(codexTools, ["question", "continued"]),
    setUp: (stand, home) => {
      codexConfiguration(stand, home, (toml) =>
        toml.replace("supports_websockets = false", "supports_websockets = true"),
      );
      return { THROUGHLINE_TOKEN: stand.token };
    },
  },
  {
    ...codex,
    ...guard,
    name: "Codex",
    steps: chosen(codexTools, ["question", "overflow", "continued"]),
    setUp: codexSetUp,
  },
  { ...opencode(null), ...record, name: "opencode, Anthropic", steps: chosen(opencodeTools, allSteps) },
  {
    ...opencode("openai/gpt-5"),
    ...record,
    name: "opencode, OpenAI",
    steps: chosen(opencodeTools, ["question", "continued", "tool"]),
  },
  {
    ...opencode(null),
    ...guard,
    name: "opencode, Anthropic",
    steps: chosen(opencodeTools, ["question", "overflow", "continued"]),
  },
];

/** What the provider answers while a step runs. */
export function replyOf(step: AgentStep, stand: Stand): (request: ReceivedRequest) => SimulatedReply {
  let time = 0;
  return (request) => {
    const { asker, results } = factsOf(request);
    if (asker === "title") return "A title";
    if (asker === "sub-agent") return "The project is empty.";
    if (step.roomTokens !== undefined && results === 0 && stand.gateway !== null)
      stand.limitWindow(request.promptTokens + step.roomTokens);
    return step.reply({ results, time: time++, request });
  };
}
