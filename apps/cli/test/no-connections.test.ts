import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runChild, seed, temporaryDirectory, user } from "./harness.ts";

const directory = temporaryDirectory();
const home = directory.path;
const told = join(home, "connections.txt");
const spyPath = join(home, "spy.mjs");

/** Writes down every address that the process, or a thread of it, connects to or asks for. */
const spy = `
import dns from "node:dns";
import dgram from "node:dgram";
import net from "node:net";
import { appendFileSync } from "node:fs";
const tell = (what) => appendFileSync(${JSON.stringify(told)}, what + "\\n");
const connect = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...args) {
  tell("connect " + JSON.stringify(args[0]));
  return connect.apply(this, args);
};
for (const name of ["lookup", "resolve", "resolve4", "resolve6"]) {
  const asked = dns[name];
  dns[name] = (...args) => (tell(name + " " + args[0]), asked(...args));
}
const send = dgram.Socket.prototype.send;
dgram.Socket.prototype.send = function (...args) {
  tell("send");
  return send.apply(this, args);
};
`;

beforeAll(async () => {
  writeFileSync(spyPath, spy);
  await seed(home, [{ key: "notes", drafts: [user("hello harbour")] }]);
});
afterAll(() => directory.remove());

async function connectionsOf(
  args: readonly string[],
): Promise<{ readonly code: number | null; readonly lines: string }> {
  writeFileSync(told, "");
  const { code } = await runChild(home, args, { environment: { NODE_OPTIONS: `--import=${spyPath}` } });
  return { code, lines: readFileSync(told, "utf8") };
}

describe("a command that was told of no address", () => {
  it.each([
    [["--version"]],
    [["--help"]],
    [["sessions"]],
    [["show", "notes"]],
    [["context", "notes"]],
    [["search", "harbour"]],
    [["export", "notes", "-o", "notes.jsonl"]],
    [["import", "notes.jsonl", "--key", "agent:main:again"]],
    [["chat", "--key", "talk", "--once", "hello", "--model", "offline"]],
    [["compact", "notes", "--model", "offline"]],
    [["doctor"]],
    [["verify", "--full"]],
    [["stats"]],
    [["usage"]],
    [["backup", "backup.db"]],
    [["config"]],
    [["completion", "zsh"]],
  ])("%s opens no connection and asks for no name", async (args) => {
    expect(await connectionsOf(args)).toEqual({ code: 0, lines: "" });
  });

  it(
    "is what the test sees: one that was told of a server connects to it, and to nothing else",
    { tags: ["slow"] },
    async () => {
      const server = createServer((socket) => socket.end()).listen(0, "127.0.0.1");
      await new Promise((resolve) => server.once("listening", resolve));
      const { port } = server.address() as { readonly port: number };
      const { lines } = await connectionsOf(["sessions", "--store", `http://127.0.0.1:${port}`]);
      server.close();
      expect(lines).not.toBe("");
      for (const line of lines.trim().split("\n")) expect(line).toContain(String(port));
    },
  );
});
