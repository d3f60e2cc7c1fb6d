import { quote } from "@throughline/core/internal";
import { usageError } from "./error-report.ts";

/**
 * Maps `importedFrom.format` to the program's usual name. The table of formats has the same names, but a list of
 * sessions does not load it.
 */
const programNames: Readonly<Record<string, string>> = {
  "claude-code": "Claude Code",
  codex: "Codex",
  gemini: "Gemini CLI",
  "qwen-code": "Qwen Code",
  "kimi-cli": "Kimi CLI",
  amp: "Amp",
  droid: "Droid",
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

/** Returns the format itself if it has no other name. */
export function programName(format: string): string {
  return Object.hasOwn(programNames, format) ? (programNames[format] ?? format) : format;
}

/**
 * Finds the formats for a program name: a format, `own`, or a printed name, in any case.
 * @throws {ThroughlineError} USAGE for any other name
 */
export function namedFormat(name: string, option: string = "--program"): readonly string[] {
  const wanted = name.toLowerCase();
  const formats = ["own", ...Object.keys(programNames)];
  const found = formats.filter((format) => format === wanted || programName(format).toLowerCase() === wanted);
  if (found.length > 0) return found;
  throw usageError(`${option} takes own, or one of ${Object.keys(programNames).join(", ")}; received ${quote(name)}.`);
}
