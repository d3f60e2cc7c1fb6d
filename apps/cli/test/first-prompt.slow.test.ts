import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { saidIn, temporaryDirectory } from "./harness.ts";
import { runInTerminal, type Terminal } from "./terminal.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

function chat(args: readonly string[]): Terminal {
  return runInTerminal(directory.path, ["chat", "--model", "offline", ...args]);
}

describe("the first prompt", () => {
  it("stands before the store answers, and Ctrl-C leaves with 130", async () => {
    await using server = createServer();
    const sockets: Socket[] = [];
    const reached = new Promise<void>((resolve) =>
      server.on("connection", (socket) => {
        sockets.push(socket.on("error", () => {}));
        resolve();
      }),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await using terminal = chat(["--store", `postgres://nobody@127.0.0.1:${port}/none`]);
    await terminal.waitFor("\n> ");
    await reached;
    terminal.write("a thought\u0003");
    expect(await terminal.exitCode()).toBe(130);
    // The region is erased, and the terminal is as it was.
    expect(terminal.raw()).toContain("\u001b[J\u001b[?2004l");
    for (const socket of sockets) socket.destroy();
  });

  it("takes what is typed before the conversation is open", async () => {
    await using terminal = chat(["--key", "k"]);
    await terminal.waitFor("> ");
    terminal.write("an early thought\r");
    await terminal.waitForPrompt();
    await expect.poll(() => saidIn(directory.path, "k"), { timeout: 60_000 }).toEqual(["an early thought"]);
  });
});
