// The controls: the lines of a turn made ready beforehand, one write, and fdatasync where the class is "disk".
import { closeSync, fdatasync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { callId, turnParts, type Contender } from "./contender.ts";

function lines(index: number): Buffer {
  const id = callId(index);
  const messages = [
    { role: "user", content: turnParts.question },
    { role: "assistant", content: [{ type: "toolCall", id, name: turnParts.tool, arguments: turnParts.toolInput }] },
    { role: "toolResult", toolCallId: id, toolName: turnParts.tool, content: turnParts.result, isError: false },
    { role: "assistant", content: [{ type: "text", text: turnParts.answer }] },
  ];
  return Buffer.from(messages.map((message) => `${JSON.stringify({ type: "message", message })}\n`).join(""));
}

/** Opens the control; `sync` waits for the disk. */
export function openRaw(folder: string, sync: boolean): Promise<Contender> {
  const path = join(folder, "raw.jsonl");
  const file = openSync(path, "a", 0o600);
  return Promise.resolve({
    turn: (index) =>
      new Promise<void>((resolve, reject) => {
        writeSync(file, lines(index));
        if (!sync) resolve();
        else fdatasync(file, (error) => (error === null ? resolve() : reject(error)));
      }),
    reopen: () =>
      Promise.resolve(
        readFileSync(path, "utf8")
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line) as unknown).length,
      ),
    close: () => Promise.resolve(closeSync(file)),
  });
}
