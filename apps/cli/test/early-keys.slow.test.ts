import { setImmediate as nextTurn } from "node:timers/promises";
import { PassThrough, Writable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../src/run-cli.ts";
import { assistant, binPath, saidIn, seed, temporaryDirectory, user } from "./harness.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

/** Says what a person types when the terminal shows something, each once and in this order. */
type Typing = readonly (readonly [shown: string, keys: string])[];

/** Runs a conversation in this process. Its keys come at the very moment of what they answer, on any machine. */
async function chat(
  typing: Typing,
  args: readonly string[] = [],
  whileOpening: (press: (keys: string) => void, interrupt: AbortController) => Promise<void> = async () => {},
): Promise<{ code: number; shown: string }> {
  const interrupt = new AbortController();
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const left = [...typing];
  let [shown, seen] = ["", 0];
  const stream = (): Writable & { isTTY: boolean; columns: number; rows: number } => {
    const writable = new Writable({
      write(chunk: Buffer, _encoding, done) {
        shown += chunk.toString("utf8");
        for (const [wanted, keys] of left.slice(0, 1)) {
          const at = shown.indexOf(wanted, seen);
          if (at < 0) continue;
          seen = at + wanted.length;
          left.shift();
          stdin.write(keys);
        }
        done();
      },
    });
    return Object.assign(writable, { isTTY: true, columns: 80, rows: 24 });
  };
  const running = runCli({
    arguments: ["chat", "--model", "offline", ...args],
    environment: { THROUGHLINE_HOME: directory.path, HOME: directory.path, TERM: "xterm-256color", LANG: "C.UTF-8" },
    stdin,
    stdout: stream(),
    stderr: stream(),
    workingDirectory: directory.path,
    userHome: directory.path,
    signal: interrupt.signal,
    interrupt: () => interrupt.abort(),
    self: { command: process.execPath, arguments: [binPath] },
  });
  await whileOpening((keys) => stdin.write(keys), interrupt);
  return { code: await running, shown };
}

const prompt = "> ";
const reading = "\u001b]133;D\u0007";
const imported = { importedFrom: { format: "pi", sessionId: "s1", path: "/none.jsonl", records: 2 } };

describe("a line that is typed before the conversation is open", () => {
  it("is sent when no question comes before it", async () => {
    const { code } = await chat(
      [
        [prompt, "early\r"],
        [reading, ""],
        [reading, "/quit\r"],
      ],
      ["--key", "k"],
    );
    expect([code, await saidIn(directory.path, "k")]).toEqual([0, ["early"]]);
  });

  it("stands unsent in the editor after a question that came in between", async () => {
    await seed(directory.path, [{ key: "agent:main:import:direct:s1", entry: imported, drafts: [user("secret")] }]);
    const { code, shown } = await chat([
      [prompt, "early\r"],
      ["Esc new session", "\u001b"],
      [`${prompt}early`, "\u0015/quit\r"],
    ]);
    expect([code, shown.includes("nothing is saved")]).toEqual([0, true]);
  });
});

describe("Ctrl-C before the conversation is open", () => {
  const moments: readonly (readonly [string, Typing])[] = [
    ["at the first prompt", [[prompt, "\u0003"]]],
    ["with text and Enter before it", [[prompt, "a thought\r\u0003"]]],
    ["twice", [[prompt, "\u0003\u0003"]]],
  ];
  for (const [when, typing] of moments) {
    it(`ends with 130: ${when}, in a new session and in one with records`, async () => {
      for (const args of [[], ["--key", "new"]]) expect((await chat(typing, args)).code).toBe(130);
      await seed(directory.path, [{ key: "k", drafts: [user("hello"), assistant("Hi.")] }]);
      expect((await chat(typing, ["--key", "k"])).code).toBe(130);
      // The store was closed and is whole.
      expect(await saidIn(directory.path, "k")).toEqual(["hello"]);
    });
  }

  it("ends with 130 when an interrupt comes while it is opened, at any step", async () => {
    await seed(directory.path, [{ key: "k", drafts: [user("hello"), assistant("Hi.")] }]);
    for (const args of [
      ["--key", "k"],
      ["--key", "new"],
      ["--plain", "--key", "k"],
      ["--plain", "--key", "new"],
    ])
      for (const turns of [1, 3, 6, 11, 17, 50]) {
        const { code } = await chat([], args, async (press, interrupt) => {
          for (let turn = 0; turn < turns; turn += 1) await nextTurn();
          // The plain view has no early prompt, so the terminal makes a signal of the key.
          if (args.includes("--plain")) interrupt.abort();
          else press("\u0003\u0003");
        });
        expect([args, turns, code]).toEqual([args, turns, 130]);
      }
  });
});
