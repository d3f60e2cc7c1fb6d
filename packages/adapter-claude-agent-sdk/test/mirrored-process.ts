import { globSync, mkdirSync, readFileSync, appendFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { line, prompt, sessionId, uuidAt } from "./transcript.ts";

/**
 * Stands in for the program that the Claude Agent SDK starts: writes each turn into its transcript and a sub-agent's, hands the
 * lines over to the SDK, and answers with the number of lines that it found.
 */
const { values } = parseArgs({ strict: false, options: { resume: { type: "string" } } });
const config = process.env["CLAUDE_CONFIG_DIR"] ?? "";
const print = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`);
const found = globSync(`projects/*/${sessionId}.jsonl`, { cwd: config })[0];
const project = process.cwd().replace(/[^A-Za-z0-9]/g, "-");
const path = join(config, found ?? `projects/${project}/${sessionId}.jsonl`);
const known = found === undefined ? [] : readFileSync(path, "utf8").split("\n").filter(Boolean);
const agents = globSync(join(dirname(path), sessionId, "subagents/*.jsonl")).length;

function keep(file: string, entries: readonly unknown[]): void {
  mkdirSync(dirname(file), { recursive: true });
  appendFileSync(file, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  print({ type: "transcript_mirror", filePath: file, entries });
}

function answer(content: unknown): void {
  const from = { session_id: sessionId, parent_tool_use_id: null, uuid: uuidAt(900) };
  const at = known.length + 1;
  const text = `${values.resume === sessionId ? "resumed" : "began"}, ${known.length} lines, ${agents} agents`;
  const reply = {
    id: `msg_${at}`,
    type: "message",
    role: "assistant",
    model: "claude-test",
    content: [{ type: "text", text }],
  };
  const usage = { input_tokens: 10, output_tokens: 5 };
  print({ type: "system", subtype: "init", ...from });
  keep(path, [prompt(at, JSON.stringify(content))]);
  keep(join(dirname(path), sessionId, `subagents/agent-a${at}.jsonl`), [prompt(500 + at, "look", 500 + at)]);
  keep(path, [line(at + 1, { type: "assistant", message: { ...reply, usage } })]);
  print({ type: "assistant", message: { ...reply, usage }, ...from });
  print({ type: "result", subtype: "success", is_error: false, result: text, usage, ...from });
}

for await (const text of createInterface({ input: process.stdin })) {
  const request = JSON.parse(text) as { type: string; request_id?: string; message?: { content: unknown } };
  if (request.type === "user") answer(request.message?.content);
  if (request.type === "control_request")
    print({ type: "control_response", response: { subtype: "success", request_id: request.request_id, response: {} } });
}
