import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Recording } from "./recording.ts";

let home = "";
beforeEach(() => {
  // A short path fits into a row, in which it is replaced.
  home = mkdtempSync("/tmp/tl-");
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const images = join(import.meta.dirname, "../../../docs/images");
const mostBytes = 200_000;

/** Compares nothing with the kept image, whose frames depend on the machine; writes it when it is asked to. */
function keep(name: string, svg: string): void {
  expect(Buffer.byteLength(svg)).toBeLessThan(mostBytes);
  expect(svg).not.toMatch(/<script|javascript:|\bon\w+=|href="(?!#)|url\(/i);
  // oxlint-disable-next-line no-control-regex -- escapes are what must not be there
  expect(svg).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  expect(svg).not.toContain(home);
  const path = join(images, name);
  if (process.env["THROUGHLINE_WRITE_RECORDINGS"] === "1") writeFileSync(path, svg);
  expect(existsSync(path)).toBe(true);
}

const first =
  "A **write-ahead log** is a file to which a store appends each change first.\n\n" +
  "1. The change is appended and flushed.\n2. Only then is it acknowledged.\n3. After a crash, the log is read again.\n\n";
const rest = "So nothing that was acknowledged is lost:\n\n```ts\nawait log.append(change);\nawait log.flush();\n```\n";

describe.skipIf(!existsSync("/bin/bash"))("the recordings of the README show", () => {
  it("a conversation that is killed in its reply, resumed, and continued", async () => {
    const answer = (content: string, eventDelayMs: number) => ({ kind: "answer", content, eventDelayMs }) as const;
    await using provider = createProviderSimulator({
      // It is killed while nothing more is to be seen, so that the recording does not depend on the moment.
      replies: [answer(`${first}${" \n".repeat(2000)}`, 60)],
      fallback: () => answer(rest, 60),
    });
    await provider.start();
    const folder = join(home, "app");
    mkdirSync(folder);
    writeFileSync(join(home, "chat-history-main.jsonl"), "");
    const recording = new Recording(home, folder, {
      ANTHROPIC_API_KEY: "sk-test",
      ANTHROPIC_BASE_URL: provider.url,
      THROUGHLINE_WINDOW_TOKENS: "200000",
    });
    try {
      await recording.until(/^\$ $/, 600);
      await recording.type("throughline");
      await recording.until(/^> $/);
      await recording.type("How does a write-ahead log work?");
      await recording.until(/After a crash, the log is read again\./, 100);
      // What is shown is stored within a second.
      await recording.pass(1500);
      process.kill(Number(readFileSync(join(home, "pid"), "utf8")), "SIGKILL");
      await recording.until(/Killed/, 1200);
      // The shell clears what the killed program left on the screen.
      recording.press("\f");
      await recording.until(/^\$ $/, 600);
      await recording.type("throughline");
      await recording.until(/^> $/, 1200);
      await recording.type("/continue");
      await recording.until(/await log\.flush/, 1200);
      await recording.until(/^> $/, 1200);
      expect(recording.text().join("\n")).toContain("await log.append(change);");
      keep(
        "chat-killed-and-resumed.svg",
        recording.svg("A conversation is killed in its reply, resumed and continued"),
      );
    } finally {
      await recording.close();
    }
  });

  it("an import, the picker, a search in the texts, and a session resumed in its own program", async () => {
    const app = join(home, "app");
    const transcripts = join(home, ".claude/projects/app");
    for (const folder of [app, transcripts]) mkdirSync(folder, { recursive: true });
    const talks = [
      ["Fix the login bug in login.ts", "The **guard** was missing: `user` may be null."],
      ["Refactor the auth module", "I split it in two files."],
      ["Write the deploy scripts", "The script copies the build first."],
    ] as const;
    for (const [at, [asked, answered]] of talks.entries())
      writeFileSync(join(transcripts, `${sessionIdOf(at)}.jsonl`), transcriptOf(at, app, asked, answered));
    writeFileSync(join(home, "config.json"), JSON.stringify({ model: "offline" }));
    writeFileSync(join(home, "chat-history-main.jsonl"), "");
    const recording = new Recording(home, app, { CLAUDE_CONFIG_DIR: join(home, ".claude") });
    try {
      await recording.until(/^\$ $/, 600);
      await recording.type("throughline");
      await recording.until(/Claude Code 3 sessions.* Import them\?/, 1200);
      await recording.type("y");
      await recording.until(/^ ❯ /, 1200);
      for (const character of "login") recording.press(character);
      await recording.until(/^ ❯ Fix the login bug/, 1000);
      recording.press("\u0015");
      for (const character of "may be null") recording.press(character);
      await recording.until(/^ {5}assistant: .*may be null/, 1200);
      recording.press("\u001b[B");
      await recording.until(/^ ❯ Fix the login bug/, 800);
      recording.press("\r");
      await recording.until(/^ r {2}cd .* && claude --resume/, 1200);
      recording.press("r");
      await recording.until(/^cd .* && claude --resume/, 1200);
      keep(
        "import-search-and-resume.svg",
        recording.svg("An import, the picker, a search, and a session resumed in its own program"),
      );
    } finally {
      await recording.close();
    }
  });
});

function sessionIdOf(at: number): string {
  return `0b7e1c1e-0000-4000-8000-00000000000${at}`;
}

function transcriptOf(at: number, cwd: string, asked: string, answered: string): string {
  const line = (uuid: string, parentUuid: string | null, type: string, message: object): string =>
    JSON.stringify({
      type,
      uuid: `0b7e1c1e-0000-4000-8000-0000000001${at}${uuid}`,
      parentUuid: parentUuid === null ? null : `0b7e1c1e-0000-4000-8000-0000000001${at}${parentUuid}`,
      sessionId: sessionIdOf(at),
      cwd,
      isSidechain: false,
      userType: "external",
      version: "2.0.1",
      timestamp: new Date(Date.UTC(2026, 10, 1 + at, 10)).toISOString(),
      message,
    });
  const usage = { input_tokens: 900, output_tokens: 60 };
  const content = [{ type: "text", text: answered }];
  const reply = {
    id: `msg_${at}`,
    role: "assistant",
    model: "claude-opus-4-7",
    content,
    stop_reason: "end_turn",
    usage,
  };
  return `${line("1", null, "user", { role: "user", content: asked })}\n${line("2", "1", "assistant", { type: "message", ...reply })}\n`;
}
