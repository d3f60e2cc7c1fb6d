import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
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
  folder = mkdtempSync(join(tmpdir(), "throughline-approvals-"));
  simulator = createProviderSimulator({ fallback: () => "Settled." });
  await simulator.start();
});
afterEach(async () => {
  await simulator.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(...args: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: folder,
    env: { ...process.env, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: simulator.url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "exit") as Promise<[number | null]>;
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}

const asksRefund = (...orders: readonly string[]): void =>
  simulator.enqueue({
    kind: "answer",
    content: orders.map((order) => ({ type: "tool-call", name: "refund", input: { order } })),
  });
const paid = (): string => (existsSync(join(folder, "paid.txt")) ? readFileSync(join(folder, "paid.txt"), "utf8") : "");
const listed = async (): Promise<readonly (readonly string[])[]> =>
  (await run("list")).stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split("\t"));

describe("the example of approvals", () => {
  it("pays back what a later process allows, once, and tells the model what a person refused", async () => {
    asksRefund("A7", "B2");
    expect((await run("ask", "ada", "Both, please.")).stdout).toContain("waits for a person");
    expect(paid()).toBe("");
    const [one, other] = await listed();
    expect([one?.[0], one?.[2], other?.[2]]).toEqual(["ada", 'refund {"order":"A7"}', 'refund {"order":"B2"}']);

    expect((await run("allow", "ada", one?.[1] ?? "")).stdout).toBe("Other calls wait.\n");
    expect(paid()).toBe("A7\n");
    expect(await listed()).toEqual([other]);
    expect((await run("refuse", "ada", other?.[1] ?? "", "It", "was", "sent.")).stdout).toBe("Settled.\n");
    expect(paid()).toBe("A7\n");
    const sent = JSON.stringify(simulator.requests.at(-1)?.body);
    expect(sent).toContain("Order A7 is paid back.");
    expect(sent).toContain("It was sent.");
    expect([await listed(), simulator.refusals]).toEqual([[], []]);
  });

  it("takes the first of two decisions, and no question meanwhile", async () => {
    asksRefund("A7");
    await run("ask", "ben", "Back, please.");
    const callId = (await listed())[0]?.[1] ?? "";
    expect(await run("ask", "ben", "And?")).toMatchObject({ code: 1, stdout: "" });
    await Promise.all([run("allow", "ben", callId), run("allow", "ben", callId)]);
    expect(paid()).toBe("A7\n");
    expect(await run("refuse", "ben", callId)).toMatchObject({ code: 1, stdout: "" });
  });

  it("says how it is called", async () => {
    expect(await run("allow", "ada")).toMatchObject({ code: 2, stdout: "" });
  });
});
