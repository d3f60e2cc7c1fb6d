import { foreignFormats } from "@throughline/foreign-formats";
import { describe, expect, it } from "vitest";
import { readUnits, refusals, talk } from "../read-units.ts";

const path = "/home/u/app/.aider.chat.history.md";
const first = `
# aider chat started at 2026-06-30 10:00:00

> Aider v0.86.0
> Main model: gpt-5 with diff edit format

#### Read a.txt
#### and b.txt

# A heading
It says hello.
\`\`\`
code
\`\`\`
> Tokens: 5 sent
More.
`;
const second = "# aider chat started at 2026-07-01 11:00:00\n\n#### Again\nYes.";

describe("a chat history of Aider", () => {
  it("is read as the program's own reader reads it, and a new chat begins an empty context", () => {
    const session = readUnits("aider", first, path);
    expect(talk(session)).toEqual([
      "user: Read a.txt\nand b.txt\n",
      "assistant: \nIt says hello.\n```\ncode\n```\n",
      "assistant: More.\n",
    ]);
    expect(session.context.messages[1]).toMatchObject({ model: "gpt-5" });
    expect([session.reader.entry, session.findings, refusals(session)]).toEqual([{ cwd: "/home/u/app" }, [], []]);
    expect(session.records.at(-1)?.tsMs).toBe(Date.UTC(2026, 5, 30, 10));
    const both = readUnits("aider", first + second, path);
    expect(talk(both)).toEqual(["user: Again\n", "assistant: Yes."]);
    expect(both.records.filter(({ type }) => type === "message")).toHaveLength(5);
  });

  it("is known by its first line", () => {
    const format = foreignFormats.get("aider");
    const verdict = (text: string): unknown => format?.detect({ path, head: Buffer.from(text), isWhole: true });
    expect([verdict(first), verdict("# Notes\n#### Title"), verdict("")]).toEqual(["certain", null, null]);
  });
});
