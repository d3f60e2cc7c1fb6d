import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { HandOffTarget } from "../../packages/transfer/src/hand-off.ts";
import type { AnswerReply } from "../../packages/testing/src/simulated-reply.ts";
import { agentPackages } from "../agent-programs.ts";

/** Where the answers come from, and where the program works. */
export interface Place {
  /** The URL of the provider simulator, or of the server of Gemini's API. */
  readonly url: string;
  readonly home: string;
  readonly project: string;
}

/** A coding agent that can resume a session. */
export interface AgentProgram {
  readonly name: string;
  readonly program: string;
  readonly packageName: string;
  readonly version: string;
  /** The API that it is pointed at. */
  readonly api: "anthropic" | "openai" | "gemini";
  /** What a hand-off names it; null for a program that takes sessions by an import of its own, or none. */
  readonly handOff: HandOffTarget | null;
  /** How it calls a shell. */
  shell(command: string): Extract<Exclude<AnswerReply["content"], string>[number], { readonly type: "tool-call" }>;
  /** Writes its settings; gives the variables that it needs. */
  setUp(place: Place): Readonly<Record<string, string>>;
  /** The words that ask a question in a new session. */
  ask(question: string): readonly string[];
  /** The words that ask a question in a resumed session, from the command for a terminal. */
  resume(command: readonly string[], question: string): readonly string[];
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

const call = (name: string, input: unknown): ReturnType<AgentProgram["shell"]> => ({ type: "tool-call", name, input });
const description = "look around";
/** The name of the provider that Codex is configured with; a session that states another one is refused. */
export const provider = "stand";

const claude: AgentProgram = {
  name: "Claude Code",
  program: "claude",
  packageName: "@anthropic-ai/claude-code",
  version: agentPackages["@anthropic-ai/claude-code"] ?? "",
  api: "anthropic",
  handOff: "claude-code",
  shell: (command) => call("Bash", { command, description }),
  setUp: ({ url }) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: "any" }),
  ask: (question) => ["-p", "--allowedTools=Bash", "--", question],
  resume: ([, ...words], question) => ["-p", ...words, "--", question],
};

const codex: AgentProgram = {
  name: "Codex",
  program: "codex",
  packageName: "@openai/codex",
  version: agentPackages["@openai/codex"] ?? "",
  api: "openai",
  handOff: "codex",
  shell: (cmd) => call("exec", `text(await tools.exec_command(${JSON.stringify({ cmd })}))`),
  setUp: ({ url, home }) => {
    write(
      join(home, ".codex/config.toml"),
      `model_provider = "${provider}"\n\n[model_providers.${provider}]\nname = "Stand"\nbase_url = "${url}/v1"\n` +
        `env_key = "STAND_KEY"\nwire_api = "responses"\nsupports_websockets = false\n`,
    );
    return { STAND_KEY: "any" };
  },
  ask: (question) => ["exec", "--skip-git-repo-check", question],
  resume: ([, resume = "", id = ""], question) => ["exec", "--skip-git-repo-check", resume, id, question],
};

const gemini: AgentProgram = {
  name: "Gemini CLI",
  program: "gemini",
  packageName: "@google/gemini-cli",
  version: agentPackages["@google/gemini-cli"] ?? "",
  api: "gemini",
  handOff: "gemini",
  shell: (command) => call("run_shell_command", { command, description }),
  setUp: ({ url, home }) => {
    const auth = { selectedType: "gemini-api-key" };
    write(join(home, ".gemini/settings.json"), JSON.stringify({ security: { auth } }));
    return { GEMINI_API_KEY: "any", GOOGLE_GEMINI_BASE_URL: url, GEMINI_CLI_TRUST_WORKSPACE: "true" };
  },
  ask: (question) => ["-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", question],
  resume: ([, ...words], question) => ["-m", "gemini-2.5-flash", ...words, "-p", question],
};

const pi: AgentProgram = {
  name: "pi",
  program: "pi",
  packageName: "@earendil-works/pi-coding-agent",
  version: "1.6.0",
  api: "openai",
  handOff: "pi",
  shell: (command) => call("bash", { command }),
  setUp: ({ url, home }) => {
    const own = { baseUrl: `${url}/v1`, api: "openai-completions", apiKey: "any", models: [{ id: "gpt-4.1" }] };
    write(join(home, ".pi/agent/models.json"), JSON.stringify({ providers: { [provider]: own } }));
    return {};
  },
  ask: (question) => ["--provider", provider, "--model", "gpt-4.1", "-p", question],
  resume: ([, ...words], question) => ["--provider", provider, "--model", "gpt-4.1", ...words, "-p", question],
};

const opencode: AgentProgram = {
  name: "opencode",
  program: "opencode",
  packageName: "opencode-ai",
  version: agentPackages["opencode-ai"] ?? "",
  api: "openai",
  handOff: null,
  shell: (command) => call("bash", { command, description }),
  setUp: ({ url, project }) => {
    const options = { baseURL: `${url}/v1`, apiKey: "any" };
    write(join(project, "opencode.json"), JSON.stringify({ provider: { openai: { options } } }));
    return {};
  },
  ask: (question) => ["run", "--model", "openai/gpt-5", question],
  resume: ([, ...words], question) => ["run", ...words, "--model", "openai/gpt-5", question],
};

const qwen: AgentProgram = {
  name: "Qwen Code",
  program: "qwen",
  packageName: "@qwen-code/qwen-code",
  version: "0.24.4",
  api: "openai",
  handOff: null,
  shell: (command) => call("run_shell_command", { command, description, is_background: false }),
  setUp: ({ url }) => ({ OPENAI_API_KEY: "any", OPENAI_BASE_URL: `${url}/v1`, QWEN_DISABLE_AUTO_TITLE: "1" }),
  ask: (question) => [...qwenWords, question],
  resume: ([, ...words], question) => [...qwenWords, ...words, question],
};

const qwenWords = ["--auth-type", "openai", "-m", "gpt-4.1", "--yolo"];

export const agentProgramList: readonly AgentProgram[] = [claude, codex, gemini, pi, opencode, qwen];
