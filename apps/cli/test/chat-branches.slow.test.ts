import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { sentBody, temporaryDirectory, saidIn } from "./harness.ts";
import { rowOf, screenOf } from "./screens.ts";
import { runInTerminal, say, type Terminal } from "./terminal.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

const columns = 100;
const row = (terminal: Terminal, wanted: RegExp): Promise<string> => rowOf(terminal, wanted, columns);

function chat(url: string, environment: Readonly<Record<string, string>> = {}): Terminal {
  return runInTerminal(directory.path, ["chat", "--key", "k", "--model", "anthropic/claude-opus-5"], {
    columns,
    environment: { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: url, ...environment },
  });
}

it("goes back, forks, searches, exports and counts in a conversation", async () => {
  await using provider = createProviderSimulator({ fallback: () => "A reply about otters." });
  await provider.start();
  await using terminal = chat(provider.url);
  await terminal.waitForPrompt();
  for (const text of ["first", "second", "third"]) await say(terminal, text);

  terminal.write("/rewind 2\r");
  await terminal.waitFor("Goes: 4 messages, 0 changes of files (files stay as they are). Rewind? [y/N] ");
  await say(terminal, "n");
  await row(terminal, /^Nothing was changed\.$/);
  expect(await saidIn(directory.path, "k")).toEqual(["first", "second", "third"]);
  terminal.write("/rewind 2\r");
  await terminal.waitFor("Rewind? [y/N] ");
  await say(terminal, "y");
  await row(terminal, /^> second$/);
  await say(terminal, " again");
  expect(await saidIn(directory.path, "k")).toEqual(["first", "second again"]);
  expect(JSON.stringify(sentBody(provider.requests.at(-1))["messages"])).not.toContain("third");

  await say(terminal, "/fork 1");
  await row(terminal, /^Forked\. You are in k-fork; the other is k\.$/);
  await row(terminal, /^> second again$/);
  await say(terminal, ", elsewhere");
  expect(await saidIn(directory.path, "k-fork")).toEqual(["first", "second again, elsewhere"]);
  expect(await saidIn(directory.path, "k")).toEqual(["first", "second again"]);

  await say(terminal, "/search otters");
  expect(terminal.text()).toMatch(/#\d+ assistant: A reply about otters\./);
  const hit = /^ *1 +.*#(\d+) /m.exec(terminal.text());
  await say(terminal, "/open 1");
  await row(terminal, new RegExp(`^.*#${hit?.[1] ?? "none"}\\b.*assistant`));
  await say(terminal, "/open 99");
  await row(terminal, /^error: .*99/);
  await say(terminal, "/usage");
  await row(terminal, /claude-opus-5 +\d/);
  await say(terminal, "/export notes.md");
  expect(readFileSync(join(directory.path, "notes.md"), "utf8")).toContain("second again, elsewhere");
  await say(terminal, "/export notes.md");
  await row(terminal, /^error: .+notes\.md/);
});

it("shows what a call was sent, completes arguments, and Esc Esc goes back one message", async () => {
  await using provider = createProviderSimulator({ fallback: () => "A reply." });
  await provider.start();
  await using terminal = chat(provider.url);
  await terminal.waitForPrompt();
  await say(terminal, "/explain");
  await row(terminal, /^No model was called yet\.$/);
  for (const text of ["first", "second"]) await say(terminal, text);
  await say(terminal, "/explain 2");
  await row(terminal, /^ {2}sent +1 message, from records #\d+ to #\d+$/);
  await say(terminal, "/explain");
  await row(terminal, /^ {2}sent +3 messages, from records #\d+ to #\d+$/);
  await say(terminal, "/explain 3");
  await row(terminal, /^The session has fewer calls\.$/);

  await say(terminal, "/new other");
  terminal.write("/switch k\t");
  await row(terminal, /^> \/switch k$/);
  terminal.write("\u0015/export ht\t");
  await row(terminal, /^> \/export html$/);
  terminal.write("\u0015/model off\t");
  await row(terminal, /^> \/model offline$/);
  terminal.write("\u0015");
  await say(terminal, "/switch k");

  terminal.write("\u001b\u001b");
  await row(terminal, /^ ❯ second +goes: 2 messages$/);
  terminal.write("\r");
  await terminal.waitFor("Goes: 2 messages, 0 changes of files (files stay as they are). Rewind? [y/N] ");
  await say(terminal, "y");
  await row(terminal, /^> second$/);
  expect(await saidIn(directory.path, "k")).toEqual(["first"]);

  // The other branch, and then the one that was left.
  await say(terminal, "\u0015third");
  terminal.write("/tree\r");
  await row(terminal, /^ {3}> first +here$/);
  await row(terminal, /^ {5}> third +here$/);
  terminal.write("second");
  await row(terminal, /^ search: second$/);
  terminal.write("\r");
  await row(terminal, /^You are there\./);
  await terminal.waitForPrompt();
  await row(terminal, /^> second$/);
  expect(await saidIn(directory.path, "k")).toEqual(["first"]);
  terminal.write("\u0015/models\r");
  await row(terminal, /^ ❯ anthropic\/\S+ +answers now$/);
  terminal.write("offline\r");
  await row(terminal, /^model: offline/);
});

it("opens the typed text in the person's editor, and keeps it when the editor fails", async () => {
  await using provider = createProviderSimulator({});
  await provider.start();
  const editor = join(directory.path, "editor.sh");
  writeFileSync(
    editor,
    '#!/bin/sh\nif grep -q fail "$2"; then exit 3; fi\nstat -c %a "$2" > mode\nprintf "edited\\ntwice" > "$2"\n',
  );
  chmodSync(editor, 0o700);
  await using terminal = chat(provider.url, { EDITOR: "./editor.sh --wait" });
  await terminal.waitForPrompt();
  terminal.write("draft\u0007");
  await row(terminal, /^> edited$/);
  await row(terminal, /^ {2}twice$/);
  expect(readFileSync(join(directory.path, "mode"), "utf8")).toBe("600\n");
  terminal.write(" fail\u0007");
  await row(terminal, /^\(The editor .+ ended with 3\. The text is as before\.\)$/);
  expect(await screenOf(terminal, columns)).toContain("  twice fail");
  expect(readdirSync(directory.path).filter((name) => name.startsWith("edited-"))).toEqual([]);
});
