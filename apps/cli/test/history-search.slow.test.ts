import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { temporaryDirectory, saidIn } from "./harness.ts";
import { runInTerminal } from "./terminal.ts";
import type { Terminal } from "./terminal.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

function chat(environment: Readonly<Record<string, string>> = {}): Terminal {
  return runInTerminal(directory.path, ["chat", "--key", "k", "--model", "offline"], {
    columns: 120,
    environment: { ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "", ...environment },
  });
}

async function submit(terminal: Terminal, line: string): Promise<void> {
  terminal.write(`${line}\r`);
  await terminal.waitForPrompt();
}

const controlR = "\u0012";

describe("Ctrl-R", () => {
  it("finds what was submitted before, older with each press, to be edited or sent", async () => {
    await using terminal = chat();
    await terminal.waitForPrompt();
    for (const line of ["the northern quay", "the tide tables", "the southern quay"]) await submit(terminal, line);
    terminal.write(`${controlR}quay`);
    await terminal.waitFor('(search "quay") the southern quay');
    terminal.write(controlR);
    await terminal.waitFor('(search "quay") the northern quay');
    terminal.write(controlR);
    await terminal.waitFor('(nothing older for "quay") the northern quay');
    // Return sends it, like any other line.
    terminal.write("\r");
    await terminal.waitForPrompt();
    terminal.write(`${controlR}tide`);
    await terminal.waitFor("the tide tables");
    // Whatever edits ends the search and edits the line.
    terminal.write("\u0005");
    terminal.write(" of May\r");
    await terminal.waitForPrompt();
    expect(await saidIn(directory.path, "k")).toEqual([
      "the northern quay",
      "the tide tables",
      "the southern quay",
      "the northern quay",
      "the tide tables of May",
    ]);
  });

  it("gives back what was being typed when it is left, and is nothing on a terminal that cannot move its cursor", async () => {
    {
      await using terminal = chat();
      await terminal.waitForPrompt();
      await submit(terminal, "one");
      terminal.write("half a line");
      terminal.write(`${controlR}on`);
      await terminal.waitFor('(search "on") one');
      terminal.write("\u0007");
      terminal.write(" and its end\r");
      await terminal.waitForPrompt();
      terminal.write(`${controlR}one`);
      await terminal.waitFor('(search "one") one');
      // Ctrl-C ends the search and sends nothing.
      terminal.write("\u0003");
      await submit(terminal, "");
    }
    expect(await saidIn(directory.path, "k")).toEqual(["one", "half a line and its end"]);
    await using dumb = chat({ TERM: "dumb" });
    await dumb.waitFor("> ");
    dumb.write(controlR);
    dumb.write("two\r");
    await dumb.waitFor(/\n> $/);
    expect(await saidIn(directory.path, "k")).toEqual(["one", "half a line and its end", "two"]);
  });
});
