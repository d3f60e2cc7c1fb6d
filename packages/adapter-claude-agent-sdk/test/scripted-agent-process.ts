import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";

// Arguments: the folder of its sessions, and the one to resume. Says what Claude Code says on its standard output.
const [, , folder = "", resume = ""] = process.argv;
const prompt = await text(process.stdin);
const say = (message: unknown): void => void process.stdout.write(`${JSON.stringify(message)}\n`);
const fileOf = (id: string): string => join(folder, `${id}.json`);

if (resume !== "" && !existsSync(fileOf(resume))) {
  const errors = [`No conversation found with session ID: ${resume}`];
  say({ type: "result", subtype: "error_during_execution", is_error: true, errors, session_id: "none" });
  process.exit(1);
}
const known = resume === "" ? [] : (JSON.parse(readFileSync(fileOf(resume), "utf8")) as string[]);
const prompts = [...known, prompt];
// A resumed session may go on under another id.
const id = `${resume === "" ? "sdk" : resume}-${prompts.length}`;
writeFileSync(fileOf(id), JSON.stringify(prompts));
const from = { session_id: id, parent_tool_use_id: null };
say({ type: "system", subtype: "init", ...from });
const reply = { id: `msg_${prompts.length}`, model: "claude-test", usage: { input_tokens: 10, output_tokens: 5 } };
if (prompt.includes("fail")) process.exit(3);
if (prompt.includes("use a tool")) {
  const call = { type: "tool_use", id: "toolu_1", name: "Read", input: { path: "a.txt" } };
  say({
    type: "assistant",
    message: { ...reply, content: [{ type: "thinking", thinking: "hm", signature: "sig" }] },
    ...from,
  });
  say({ type: "assistant", message: { ...reply, content: [{ type: "text", text: "I look." }] }, ...from });
  say({ type: "assistant", message: { ...reply, content: [call] }, ...from });
  say({
    type: "assistant",
    message: { id: "inner", content: [{ type: "text", text: "of a sub-agent" }] },
    session_id: "inner",
    parent_tool_use_id: "toolu_1",
  });
  say({
    type: "user",
    message: { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "text of a" }] },
    ...from,
  });
}
const said = `You said ${prompts.length} things.`;
say({
  type: "assistant",
  message: { ...reply, id: `${reply.id}_end`, content: [{ type: "text", text: said }] },
  ...from,
});
if (prompt.includes("wait")) await new Promise((resolve) => setTimeout(resolve, 60_000));
say({ type: "result", subtype: "success", is_error: false, result: said, ...from });
