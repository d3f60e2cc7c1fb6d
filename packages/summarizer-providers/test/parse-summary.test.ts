import { describe, expect, it } from "vitest";
import { parseSummary } from "../src/parse-summary.ts";

const expected = {
  topics: ["Move the parser to src/parse.ts"],
  decisions: ["Keep the old export", "Never use eval"],
  state: ["Tests pass"],
  open: ["Update the README"],
};

const plain = `Topics:
- Move the parser to src/parse.ts

Decisions:
- Keep the old export
- Never use eval

Current state:
- Tests pass

Open items:
- Update the README`;

describe("an answer of a summarizer", () => {
  it.each([
    ["as it was asked for", plain],
    ["in a fence", `\`\`\`markdown\n${plain}\n\`\`\``],
    ["with an introduction", `Sure! Here's the updated summary of the conversation:\n\n${plain}`],
    ["with an introduction and a fence", `Here is the summary:\n\n\`\`\`\n${plain}\n\`\`\``],
    ["in tags, after thinking", `<think>The user wants a summary: { "a": 1 }</think>\n<summary>\n${plain}\n</summary>`],
    ["in tags that are not closed", `<summary>\n${plain}`],
    ["with bold headings", plain.replaceAll(/^(\w.*):$/gm, "**$1:**")],
    ["with marked headings", plain.replaceAll(/^(\w.*):$/gm, "## $1")],
    ["with numbered headings and items", plain.replaceAll(/^(\w.*):$/gm, "1. $1:").replaceAll("- ", "* ")],
    [
      "with other names",
      plain
        .replace("Decisions", "Key Decisions")
        .replace("Open items", "Next Steps")
        .replace("Current state", "Progress"),
    ],
    [
      "as JSON",
      JSON.stringify({
        topics: expected.topics,
        keyDecisions: expected.decisions,
        current_state: "Tests pass",
        openItems: expected.open,
      }),
    ],
    [
      "as JSON in a fence, with words around it",
      `Here you go:\n\`\`\`json\n${JSON.stringify({ topics: expected.topics, decisions: expected.decisions, status: { tests: "x" }, todos: expected.open })}\n\`\`\``,
    ],
  ])("is read %s", (_name, answer) => {
    const { sections, isStructured, text } = parseSummary(answer);
    const state = answer.includes('"status"') ? ["tests: x"] : expected.state;
    expect(sections).toEqual({ ...expected, state });
    expect(isStructured).toBe(true);
    expect(text).not.toMatch(/```|<summary|<think|Here/);
  });

  it("without headings is the state, and its words stay as they are", () => {
    const text = "The user moved the parser. All tests pass.\nNext comes the README.";
    expect(parseSummary(text)).toEqual({
      text,
      sections: {
        topics: [],
        decisions: [],
        state: ["The user moved the parser. All tests pass.", "Next comes the README."],
        open: [],
      },
      isStructured: false,
    });
  });

  it("keeps items of several lines together, and code and objects that are only mentioned", () => {
    const text = 'Decisions:\n- Use this:\n  const a = { "b": 1 };\n- Second\n\nCurrent state:\nWorks.';
    const { sections } = parseSummary(text);
    expect(sections.decisions).toEqual(['Use this:\nconst a = { "b": 1 };', "Second"]);
    expect(sections.state).toEqual(["Works."]);
    expect(parseSummary("").text).toBe("");
    expect(parseSummary("<think>only this</think>").text).toBe("");
    expect(parseSummary('The config is {"topics": 3} and more text follows here, '.padEnd(300, "x")).isStructured).toBe(
      false,
    );
  });
});
