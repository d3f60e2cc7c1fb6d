import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { text } from "node:stream/consumers";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";

vi.setConfig({ testTimeout: 240_000 });
const program = bundledWorker(new URL("../src/main.ts", import.meta.url));
let folder: string;
let simulator: ProviderSimulator;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "throughline-edit-"));
  simulator = createProviderSimulator({ replies: ["In Norway.", "In the south.", "In the west."] });
  await simulator.start();
});
afterEach(async () => {
  await simulator.close();
  rmSync(folder, { recursive: true, force: true });
});

async function run(...args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: folder,
    env: { ...process.env, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: simulator.url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "exit") as Promise<[number | null]>;
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return code === 0 ? stdout : `${code} ${stderr}`;
}

describe("the example of editing", () => {
  it("keeps each version of a question and of its answer, over processes", async () => {
    expect(await run("ask", "Where is Oslo?")).toBe("1 user: Where is Oslo?\n2 assistant: In Norway.\n");
    expect(await run("again")).toBe("1 user: Where is Oslo?\n2 assistant: In the south. < 2/2 >\n");
    expect(await run("edit", "1", "Where is Bergen?")).toBe(
      "1 user: Where is Bergen? < 2/2 >\n2 assistant: In the west.\n",
    );
    expect(await run("previous", "1")).toBe("1 user: Where is Oslo? < 1/2 >\n2 assistant: In the south. < 2/2 >\n");
    expect(await run("previous", "2")).toBe("1 user: Where is Oslo? < 1/2 >\n2 assistant: In Norway. < 1/2 >\n");
    expect(await run("next", "1")).toBe("1 user: Where is Bergen? < 2/2 >\n2 assistant: In the west.\n");
    expect(await run("next", "1")).toBe("1 Message 1 has no such version.\n");
    const [first, again, edited] = simulator.requests.map(({ body }) => (body as { messages: unknown }).messages);
    expect(again).toEqual(first);
    expect(JSON.stringify(edited)).toContain("Bergen");
    expect(JSON.stringify(edited)).not.toContain("Oslo");
  });

  it("says how it is called", async () => {
    expect(await run("erase")).toMatch(/^2 ANTHROPIC_API_KEY/);
  });
});
