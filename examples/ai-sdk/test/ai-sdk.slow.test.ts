import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "throughline-example-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function run(question: string): Promise<string> {
  const main = join(import.meta.dirname, "../src/main.ts");
  const args = ["--conditions=@throughline/source", main, question, join(folder, "s.db")];
  return (await promisify(execFile)(process.execPath, args)).stdout;
}

describe("the example with the AI SDK", () => {
  it("continues a chat in another process", async () => {
    expect(await run("My name is Ada.")).toBe("I was sent 1 messages.\n2 messages are stored.\n");
    expect(await run("What is my name?")).toBe("I was sent 3 messages.\n4 messages are stored.\n");
  });
});
