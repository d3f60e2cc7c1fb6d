import { quote } from "@throughline/core/internal";
import { usageError } from "./error-report.ts";

/**
 * The name that people use for the program of a format, by `importedFrom.format`. The table of the formats has the same names,
 * but a list of sessions does not load it.
 */
const programNames: Readonly<Record<string, string>> = {
  "claude-code": "Claude Code",
  codex: "Codex",
  gemini: "Gemini CLI",
  openai: "OpenAI Chat Completions",
  "ai-sdk": "Vercel AI SDK",
  opencode: "opencode",
  "openai-agents": "OpenAI Agents SDK",
  langgraph: "LangGraph",
  "copilot-cli": "GitHub Copilot CLI",
  cline: "Cline",
  cursor: "Cursor",
  goose: "Goose",
  aider: "Aider",
  anthropic: "Anthropic Messages",
  sharegpt: "ShareGPT",
  harmony: "Harmony",
  openclaw: "OpenClaw",
  "openclaw-sqlite": "OpenClaw",
  pi: "pi",
  claw0: "claw0",
  goclaw: "GoClaw",
  clawcode: "ClawCode",
  jsonl: "Throughline",
};

/** The name of the program that a session was imported from; the format itself where it has no other name. */
export function programName(format: string): string {
  return Object.hasOwn(programNames, format) ? (programNames[format] ?? format) : format;
}

/**
 * The formats that a person means by the name of a program: a format, `own`, or what lists show, whatever its case.
 * @throws {ThroughlineError} USAGE for a name that is none of them
 */
export function namedFormat(name: string): readonly string[] {
  const wanted = name.toLowerCase();
  const formats = ["own", ...Object.keys(programNames)];
  const found = formats.filter((format) => format === wanted || programName(format).toLowerCase() === wanted);
  if (found.length > 0) return found;
  throw usageError(`--program takes own, or one of ${Object.keys(programNames).join(", ")}; received ${quote(name)}.`);
}
