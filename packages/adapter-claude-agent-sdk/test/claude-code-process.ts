import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

/**
 * Stands in for the program that the Claude Agent SDK starts, and speaks its protocol: JSON lines, requests of the SDK
 * answered. It keeps the prompts of each session in a file of `CLAUDE_CODE_SESSIONS`, and answers with their number.
 */
interface Line {
  readonly type: string;
  readonly request_id?: string;
  readonly request?: { readonly subtype: string };
  readonly message?: { readonly content: unknown };
}

const { values } = parseArgs({ strict: false, options: { resume: { type: "string" } } });
const resume = typeof values.resume === "string" ? values.resume : "";
const folder = process.env["CLAUDE_CODE_SESSIONS"] ?? "";
const fileOf = (id: string): string => join(folder, `${id}.json`);
const print = (line: unknown): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

function answer(content: unknown): void {
  if (resume !== "" && !existsSync(fileOf(resume))) {
    const errors = [`No conversation found with session ID: ${resume}`];
    print({ type: "result", subtype: "error_during_execution", is_error: true, errors, session_id: "none" });
    process.exit(1);
  }
  const known = resume === "" ? [] : (JSON.parse(readFileSync(fileOf(resume), "utf8")) as unknown[]);
  const prompts = [...known, content];
  // A resumed session continues under a new id.
  const id = `${resume === "" ? "sdk" : resume}-${prompts.length}`;
  writeFileSync(fileOf(id), JSON.stringify(prompts));
  const from = { session_id: id, parent_tool_use_id: null, uuid: `uuid-${prompts.length}` };
  const text = `You said ${prompts.length} things.`;
  const reply = { id: `msg_${prompts.length}`, type: "message", role: "assistant", model: "claude-test" };
  const usage = { input_tokens: 10, output_tokens: 5 };
  print({ type: "system", subtype: "init", ...from });
  print({ type: "assistant", message: { ...reply, usage, content: [{ type: "text", text }] }, ...from });
  print({ type: "result", subtype: "success", is_error: false, result: text, usage, ...from });
}

for await (const text of createInterface({ input: process.stdin })) {
  const line = JSON.parse(text) as Line;
  if (line.type === "user") answer(line.message?.content);
  if (line.type === "control_request")
    print({ type: "control_response", response: { subtype: "success", request_id: line.request_id, response: {} } });
}
