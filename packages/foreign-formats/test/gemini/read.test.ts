import { readFileSync } from "node:fs";
import { renderGemini } from "@throughline/history/gemini";
import type { GeminiContent } from "@throughline/history/internal";
import { describe, expect, it } from "vitest";
import { corpusFiles } from "../corpus-files.ts";
import { jsonLines, readUnits, refusals, talk, type ReadSession } from "../read-units.ts";
import { header, reply, sessionId, set, thought, toolCall, typed, type Fields } from "./lines.ts";
import { sessions } from "./sessions.ts";

const path = `/h/.gemini/tmp/project/chats/session-2026-05-07T18-00-9534b902.jsonl`;

function read(...lines: readonly (Fields | string)[]): ReadSession {
  const session = readUnits("gemini", jsonLines(...lines), path);
  expect(refusals(session)).toEqual([]);
  return session;
}

/** The words of each content that would be sent, without the request to continue that a rendering ends with. */
function sent({ context }: ReadSession): readonly string[] {
  const found: string[] = [];
  for (const { role, parts } of renderGemini(context).messages) {
    const said = parts.map(words).join(" ");
    const last = found.at(-1);
    // Results have a content of their own, and what a result has beside its text follows in another one.
    if (last?.startsWith(`${role}: =`) === true && said === "[image]") found[found.length - 1] = `${last} ${said}`;
    else if (said !== "Continue.") found.push(`${role}: ${said}`);
  }
  return found;
}

function words(part: GeminiContent["parts"][number]): string {
  if ("functionCall" in part) return `?${String(part.functionCall.args["file_path"]).slice(0, 1)}`;
  if ("functionResponse" in part) return `=${Object.values(part.functionResponse.response).join()}`;
  return "text" in part ? part.text : "[image]";
}

/** The same of what the program resumes with. */
function resumedWords(content: string): string {
  return content.replaceAll("(thinking) ", "").replaceAll(/=\w /g, "=");
}

describe("a session of Gemini CLI", () => {
  it.each(Object.keys(sessions))("is what the program resumes: %s", (name) => {
    const { lines, resumed } = sessions[name] ?? { lines: [], resumed: [] };
    const session = read(...lines);
    expect(sent(session)).toEqual(resumed.map(resumedWords));
    expect(session.findings).toEqual([]);
    expect(session.reader.sessionId).toBe(sessionId);
  });

  it("counts each reply once, thoughts as a part of the output, and what was cached apart", () => {
    const first = reply("g1", "Hi.");
    const session = read(
      header(),
      typed("u1", "Hi"),
      first,
      { ...first, toolCalls: [toolCall("a", "A")] },
      reply("g2", "", { tokens: null, toolCalls: [toolCall("b", "B")] }),
      reply("g2", "", { toolCalls: [toolCall("b", "B")] }),
    );
    const usages = session.records.flatMap(({ type, record }) => {
      const message = record["message"] as Fields | undefined;
      const usage = type === "usage" ? record["usage"] : message?.["usage"];
      return usage === undefined ? [] : [usage];
    });
    const call = { input: 41, output: 25, cacheRead: 60, cacheWrite: 0, totalTokens: 126, reasoning: 5 };
    expect(usages).toEqual([call, call]);
  });

  it("says who wrote a reply, and that a call failed", () => {
    const session = read(
      header(),
      typed("u1", "Hi"),
      reply("g1", "I look.", {
        toolCalls: [toolCall("a", { error: "gone" }, "error"), toolCall("b", "x", "cancelled")],
      }),
    );
    const results = session.context.messages.filter(({ role }) => role === "toolResult");
    expect(results).toMatchObject([
      { isError: true, toolName: "read_file" },
      { isError: true, toolName: "read_file" },
    ]);
    expect(session.context.model).toEqual({ provider: "google", modelId: "gemini-3-pro" });
  });

  it("replaces the words of a message whose later copy says something else", () => {
    const session = read(
      header(),
      typed("u1", "My key is 123."),
      reply("g1", "Your key is 123.", { toolCalls: [toolCall("a", "A")] }),
      typed("u1", "My key is [hidden]."),
      reply("g1", "Your key is [hidden].", { toolCalls: [toolCall("a", "A")] }),
      reply("g1", "Your key is [hidden].", { toolCalls: [toolCall("a", "A")] }),
    );
    expect(sent(session)).toEqual(["user: My key is [hidden].", "model: Your key is [hidden]. ?a", "user: =A"]);
    expect(session.records.filter(({ type }) => type === "context_edit")).toHaveLength(2);
  });

  it("knows the session of a sub-agent, and the title of a session", () => {
    const parent = "0b1c2d3e-0000-4000-8000-000000000001";
    const lines = jsonLines(
      header({ kind: "subagent", directories: ["/home/u/project"] }),
      typed("u1", "Hi"),
      set({ summary: "Says hello" }),
    );
    const { reader } = readUnits("gemini", lines, `/h/.gemini/tmp/p/chats/${parent}/${sessionId}.jsonl`);
    expect([reader.spawnedBy, reader.entry]).toEqual([
      parent,
      { cwd: "/home/u/project", title: "Says hello", titleBy: "import" },
    ]);
    expect(readUnits("gemini", lines, path).reader.spawnedBy).toBeNull();
  });

  it("keeps lines that nobody knows, and reads on after those that are broken", () => {
    const session = read(
      header(),
      { novelty: 1 },
      "{broken",
      { id: "u1", type: 7 },
      { id: "g0", timestamp: 5, type: "gemini", content: { text: 5 }, toolCalls: [null, { id: "" }, 7], thoughts: "x" },
      {
        id: "g3",
        type: "gemini",
        content: [{ functionCall: 5 }],
        toolCalls: "none",
        tokens: { input: -1, output: "x" },
      },
      { id: "__proto__", type: "user", content: "Hi" },
      { $set: { messages: "none" } },
      { $set: { messages: [{ id: 5 }, null, { id: "x", type: "user", content: "Again" }] } },
      { $rewindTo: 5 },
    );
    expect(talk(session)).toEqual(["user: Again"]);
    expect(session.units).toBe(10);
  });

  it("takes the newest messages of a list that is too long to be one unit", () => {
    const messages = Array.from({ length: 500 }, (_none, index) => typed(`u${index}`, `Message ${index}`));
    const session = read(header(), set({ messages }));
    expect(session.context.messages).toHaveLength(400);
    expect(talk(session)[0]).toBe("user: Message 100");
    expect(session.findings.map(({ code }) => code)).toEqual(["RECORD_MISSING"]);
  });

  it.skipIf(corpusFiles("gemini", ".jsonl").length === 0)("of the corpus is what the program resumes", () => {
    for (const file of corpusFiles("gemini", ".jsonl")) {
      const session = readUnits("gemini", readFileSync(file), file);
      // By the program: 1 prompt, and 11 replies of which 10 have calls.
      expect(sent(session).map((content) => content.slice(0, content.indexOf(":")))).toEqual(
        Array.from({ length: 22 }, (_none, index) => (index % 2 === 0 ? "user" : "model")),
      );
    }
  });

  it("keeps the thoughts of older versions as thinking without a signature", () => {
    const session = read(
      header(),
      typed("u1", "Hi"),
      reply("g1", "So.", { thoughts: [thought("", "Hm."), thought("A", "B")] }),
    );
    expect(session.context.messages[1]?.content).toMatchObject([
      { type: "thinking", thinking: "Hm." },
      { type: "thinking", thinking: "**A** B" },
      { type: "text", text: "So." },
    ]);
  });
});
