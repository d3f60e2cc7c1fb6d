import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isFields, type Fields } from "../../packages/core/src/json-object.ts";
import { sessionId, sessions } from "../../packages/foreign-formats/test/qwen-code/sessions.ts";
import { emptyHome } from "../agent-programs.ts";
import { type Outcome, run, type RunPlace, startProvider } from "./conversations.ts";

const question = "Question-zeta";

/** The program resumes the sessions of the tests, and what it sends is compared with what the tests state. */
export async function shapesOfQwenCode({ bin, folder, program }: RunPlace): Promise<Outcome> {
  const problems: string[] = [];
  for (const [name, { lines, resumed }] of Object.entries(sessions)) {
    const base = emptyHome(folder);
    const cwd = join(base.HOME, "project");
    mkdirSync(cwd);
    const chats = join(base.HOME, ".qwen/projects", cwd.replace(/[^a-zA-Z0-9]/g, "-"), "chats");
    mkdirSync(chats, { recursive: true });
    const text = lines.map((line) => `${JSON.stringify({ ...line, cwd })}\n`).join("");
    writeFileSync(join(chats, `${sessionId}.jsonl`), text);
    const asked = await startProvider(program, mkdtempSync(join(folder, "stand-")));
    try {
      const env = { ...base, ...program.setUp({ url: asked.url, home: base.HOME, project: cwd }) };
      const words = program.resume(["qwen", "--resume", sessionId], question);
      const problem = await run(bin, words, { cwd, env });
      const sent = messagesOf(asked.bodies()[0]);
      // Two texts of a person in a row are one message for the program.
      const last = resumed.at(-1) ?? "";
      const wanted = last.startsWith("user: ")
        ? [...resumed.slice(0, -1), `${last}|${question}`]
        : [...resumed, `user: ${question}`];
      if (problem !== "") problems.push(`${name}: ${problem}`);
      else if (sent.join("\n") !== wanted.join("\n")) problems.push(`${name}: it sent ${JSON.stringify(sent)}`);
    } finally {
      await asked.close();
    }
  }
  return { command: `${Object.keys(sessions).length} sessions`, problems };
}

/** The messages of a request, as the tests state them, without what the program adds. */
function messagesOf(body: unknown): readonly string[] {
  const messages = isFields(body) && Array.isArray(body["messages"]) ? (body["messages"] as readonly Fields[]) : [];
  return messages
    .filter(({ role }) => role !== "system")
    .map(({ role, content, tool_calls: calls, tool_call_id: id }) => {
      const texts = Array.isArray(content) ? (content as readonly Fields[]).map(({ text }) => String(text)) : [content];
      const said = texts.filter((text) => typeof text === "string" && !text.startsWith("<system-reminder>")).join("|");
      if (role === "tool") return `=${String(id)} ${said}`;
      const called = Array.isArray(calls) ? (calls as readonly Fields[]).map((one) => `?${String(one["id"])}`) : [];
      return `${String(role)}: ${[said, ...called].filter((one) => one !== "").join(" ")}`;
    });
}
