import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Conversation } from "@throughline/agent/internal";
import { ollama } from "@throughline/models/ollama";
import { afterEach, expect, it } from "vitest";
import { NamedFiles } from "../src/chat/files/named-files.ts";
import type { CommandContext } from "../src/command.ts";
import { temporaryDirectory } from "./harness.ts";

const png = Buffer.from("89504e470d0a1a0a0000000d494844520000000100000001080600000000000000", "hex");

const directory = temporaryDirectory();
afterEach(() => directory.remove());

it("an image waits no longer than the command for a server that does not answer", { tags: ["slow"] }, async () => {
  writeFileSync(join(directory.path, "a.png"), png);
  const stop = new AbortController();
  const server = createServer(() => stop.abort()).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const { chat } = ollama("silent", { baseUrl: `http://127.0.0.1:${port}` });
  const context = {
    signal: stop.signal,
    workingDirectory: directory.path,
    userHome: directory.path,
    storeUrl: `sqlite:${join(directory.path, "store.db")}`,
    configPath: join(directory.path, "none.json"),
    config: { settings: [] },
  };
  const block = { type: "text", text: "the image" };
  const conversation = {
    chosen: { name: "ollama/silent", model: { chat, modelId: "silent" } },
    keepFile: async () => block,
  };
  const files = new NamedFiles(context as unknown as CommandContext, conversation as unknown as Conversation);
  const notes: string[] = [];
  const content = await files.contentOf("look at @a.png", (note) => notes.push(note));
  server.close();
  expect(content).toEqual([{ type: "text", text: "look at @a.png" }, block]);
  expect(notes[0]).toBe("(it is not known whether ollama/silent reads images)");
});
