import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { binPath, sourceCondition, temporaryDirectory } from "./harness.ts";
import { rowOf, screenOf } from "./screens.ts";
import { runInTerminal, type Terminal } from "./terminal.ts";
import { hasTmux, Tmux } from "./tmux.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

const reply = "The **first** paragraph.\n\nThe second one.";

async function answering(): Promise<ProviderSimulator> {
  writeFileSync(join(directory.path, "note.txt"), "one\n");
  const read = { type: "tool-call", id: "call_1", name: "read", input: { path: "note.txt" } } as const;
  const provider = createProviderSimulator({
    replies: [{ kind: "answer", content: [{ type: "text", text: "I look." }, read] }],
    fallback: () => reply,
  });
  await provider.start();
  return provider;
}

function chat(url: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}): Terminal {
  return runInTerminal(directory.path, ["chat", "--key", "k", "--model", "anthropic/claude-opus-5", ...args], {
    environment: { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: url, ...environment },
  });
}

describe("a conversation for a screen reader", () => {
  it.each([
    ["--plain", ["--plain"], {}],
    ["ACCESSIBLE", [], { ACCESSIBLE: "1" }],
    ["the setting", [], { THROUGHLINE_PLAIN: "true" }],
    ["TERM=dumb", [], { TERM: "dumb" }],
  ] as const)("is printed in whole paragraphs, with %s", async (_, args, environment) => {
    await using provider = await answering();
    await using terminal = chat(provider.url, args, environment);
    await terminal.waitFor("> ");
    terminal.write("look\r");
    await terminal.waitFor(/assistant:\nI look\.\ntool: read note\.txt \(4 B, \d+ ms\)\n/);
    await terminal.waitFor("assistant:\nThe **first** paragraph.\nThe second one.\n\u0007done, ");
    await terminal.waitFor("> ");
    const raw = terminal.raw();
    expect(raw).toContain("\u0007");
    // oxlint-disable-next-line no-control-regex -- movements of the cursor are what must not be there
    expect(raw).not.toMatch(/\u001b\[[\d;]*[A-HJKfsu]|\u001b[78M]|[⠋⠙⠹⠸⠼⠴⠦⠧●▮▯]/);
    terminal.write("/quit\r");
    expect(await terminal.exitCode()).toBe(0);
  });

  it("offers numbered lists for /model, /fork and /rewind", async () => {
    await using provider = await answering();
    await using terminal = chat(provider.url, ["--plain"]);
    for (const text of ["first thing", "second thing"]) {
      await terminal.waitFor("> ");
      terminal.write(`${text}\r`);
      await terminal.waitFor("\u0007done, ");
    }
    await terminal.waitFor("> ");
    terminal.write("/model\r");
    await terminal.waitFor(/Which model answers\n1\. anthropic\/claude-opus-5, answers now\n/);
    await terminal.waitFor("Number, or Enter for none: ");
    terminal.write("\r");
    await terminal.waitFor("model: anthropic/claude-opus-5");
    await terminal.waitFor("> ");
    terminal.write("/fork\r");
    await terminal.waitFor(/1\. the whole conversation\n2\. second thing, goes: 2 messages\n/);
    await terminal.waitFor("Number, or Enter for none: ");
    terminal.write("\r");
    await terminal.waitFor("Nothing was changed.");
    await terminal.waitFor("> ");
    terminal.write("/rewind\r");
    await terminal.waitFor(/1\. second thing, goes: 2 messages\n2\. first thing, /);
    await terminal.waitFor("Number, or Enter for none: ");
    terminal.write("1\r");
    await terminal.waitFor("Goes: 2 messages, ");
    terminal.write("y\r");
    await terminal.waitFor("Rewound.");
    await terminal.waitFor("> second thing");
    // oxlint-disable-next-line no-control-regex -- movements of the cursor are what must not be there
    expect(terminal.raw()).not.toMatch(/\u001b\[[\d;]*[A-HJKfsu]/);
  });

  it("completes with Tab, and lists where several fit", async () => {
    await using provider = await answering();
    await using terminal = chat(provider.url, ["--plain"]);
    await terminal.waitFor("> ");
    terminal.write("look at @no\t");
    await terminal.waitFor("look at @note.txt ");
    terminal.write("\u0003");
    await terminal.waitFor("> ");
    terminal.write("/re\t");
    await terminal.waitFor(/^\/re(?:\w+  )*/m);
    for (const name of ["resume", "rename", "rewind"]) expect(terminal.text()).toContain(`/${name}`);
    await terminal.waitFor("> /re");
    terminal.write("na\t");
    await terminal.waitFor("name ");
    terminal.write("Mine\r");
    await terminal.waitFor("> ");
    // oxlint-disable-next-line no-control-regex -- movements of the cursor are what must not be there
    expect(terminal.raw()).not.toMatch(/\u001b\[[\d;]*[A-HJKfsu]/);
  });

  it("is not that with ACCESSIBLE=0", async () => {
    await using provider = await answering();
    await using terminal = chat(provider.url, [], { ACCESSIBLE: "0" });
    await terminal.waitForPrompt();
    await rowOf(terminal, /^New session · /);
  });
});

describe("a terminal without UTF-8", () => {
  it("shows signs of ASCII only, in the status line, for tools, in cuts and in a question", async () => {
    const text = `${"x".repeat(200)}\n`;
    const write = { type: "tool-call", id: "call_1", name: "write", input: { path: "a.txt", content: text } } as const;
    await using provider = createProviderSimulator({
      replies: [
        { kind: "answer", content: [{ type: "text", text: "- one\n\n| a | b |\n| - | - |\n| 1 | 2 |\n" }, write] },
      ],
      fallback: () => "Done here.",
    });
    await provider.start();
    await using terminal = chat(provider.url, [], { LC_ALL: "C", NO_COLOR: "1" });
    await terminal.waitForPrompt();
    terminal.write("write it\r");
    await rowOf(terminal, /^\* write a\.txt/);
    await rowOf(terminal, /^ {2}1 \+ x+\.(\.\.)?$/);
    await new Promise((resolve) => setTimeout(resolve, 400));
    terminal.write("y");
    await rowOf(terminal, /Done here/);
    await rowOf(terminal, / \| anthropic\/claude-opus-5 \| [.#]{5} \d+ %/);
    expect(await screenOf(terminal)).toEqual(expect.arrayContaining([expect.stringMatching(/^\* write a\.txt \(/)]));
    // oxlint-disable-next-line no-control-regex -- the range of ASCII
    expect(terminal.text()).not.toMatch(/[^\u0000-\u007f]/);
    // oxlint-disable-next-line no-control-regex -- colors are what must not be there
    expect(terminal.raw()).not.toMatch(/\u001b\[[\d;]*m/);
  });
});

describe("Ctrl-Z without a shell that could continue the job", () => {
  it("changes nothing", async () => {
    await using provider = await answering();
    await using terminal = chat(provider.url, []);
    await terminal.waitForPrompt();
    terminal.write("half a sen");
    await rowOf(terminal, /^> half a sen$/);
    terminal.write("\u001a");
    terminal.write("tence");
    await rowOf(terminal, /^> half a sentence$/);
    terminal.write("\r");
    await rowOf(terminal, /The second one\./);
  });
});

describe.skipIf(!hasTmux || !existsSync("/bin/bash"))("Ctrl-Z", () => {
  it.each([[""], ["--plain"]])("stops the job, and fg shows what was typed %s", async (flag) => {
    await using tmux = new Tmux(directory.path, "bash --norc -i", { PS1: "shell: " });
    const type = (line: string): void => {
      tmux.keys(line);
      tmux.enter();
    };
    await tmux.waitFor(/shell: /);
    type(`'${process.execPath}' ${sourceCondition} '${binPath}' chat --key k --model offline ${flag}`);
    await tmux.waitFor(/^> $/m);
    tmux.keys("half a sen");
    await tmux.waitFor(/^> half a sen$/m);
    tmux.run("send-keys", "C-z");
    await tmux.waitFor(/Stopped[^\n]*\n(?:.*\n)*?shell:/);
    type("echo it is mine");
    await tmux.waitFor(/^it is mine$/m);
    type("fg");
    await expect.poll(() => tmux.text().split("it is mine\n").at(-1), { timeout: 60_000 }).toMatch(/^> half a sen$/m);
    type("tence");
    await tmux.waitFor(/understand "half a sentence"/);
  });
});
