import process from "node:process";
import { agentProgramList, type AgentProgram } from "../resumed-agents/programs.ts";
import type { AnswerReply } from "../../packages/testing/src/simulated-reply.ts";

type Call = Extract<Exclude<AnswerReply["content"], string>[number], { readonly type: "tool-call" }>;

/** A program that starts our server and asks with its tools. */
export interface AskingProgram extends Pick<AgentProgram, "name" | "program" | "packageName" | "version" | "setUp"> {
  /** The words that register the server, as the guide shows them. */
  register(bundle: string, home: string): readonly string[];
  /** The words that ask a question. */
  ask(question: string): readonly string[];
  /** How its model calls a tool of the server. */
  call(tool: string, input: unknown): Call;
  /** How it waits for a server that is still starting, when the last result says so; null when nothing is to wait for. */
  waits(result: string): Call | null;
}

const call = (name: string, input: unknown): Call => ({ type: "tool-call", name, input });

function known(program: string): AgentProgram {
  const found = agentProgramList.find((one) => one.program === program);
  if (found === undefined) throw new Error(`no program ${program}`);
  return found;
}

const server = (bundle: string, home: string): readonly string[] => [process.execPath, bundle, "mcp", "--home", home];

export const askingPrograms: readonly AskingProgram[] = [
  {
    ...known("claude"),
    register: (bundle, home) => [
      "mcp",
      "add",
      "--transport",
      "stdio",
      "--scope",
      "user",
      "throughline",
      "--",
      ...server(bundle, home),
    ],
    ask: (question) => ["-p", "--allowedTools=mcp__throughline", "--", question],
    call: (tool, input) => call(`mcp__throughline__${tool}`, input),
    waits: (result) => (result.includes("Call WaitForMcpServers") ? call("WaitForMcpServers", {}) : null),
  },
  {
    ...known("codex"),
    register: (bundle, home) => ["mcp", "add", "throughline", "--", ...server(bundle, home)],
    ask: (question) => ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", question],
    call: (tool, input) =>
      call("exec", `text((await tools.mcp__throughline__${tool}(${JSON.stringify(input)})).content[0].text)`),
    waits: () => null,
  },
];
