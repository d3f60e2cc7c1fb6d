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
  folder = mkdtempSync(join(tmpdir(), "throughline-cost-"));
  simulator = createProviderSimulator({ fallback: () => "In Belgium." });
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

async function run(args: readonly string[], budget = "1"): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: folder,
    env: { ...process.env, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: simulator.url, BUDGET: budget },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "exit") as Promise<[number | null]>;
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}

const usdIn = (line: string | undefined): number => Number(/\$(\d+\.\d+)$/.exec(line ?? "")?.[1]);

describe("the example of cost", () => {
  it("adds up by user, session and model, and refuses the next turn of a user whose budget is spent", async () => {
    for (const [user, topic] of [
      ["ada", "trip"],
      ["ada", "food"],
      ["ben", "trip"],
    ] as const) {
      const asked = await run(["ask", user, topic, "Where is Ghent?"]);
      expect(asked).toMatchObject({ code: 0, stdout: "In Belgium.\n" });
      expect(asked.stderr).toMatch(/^this turn \$\d\.\d{6}, this session \$\d\.\d{6}\n$/);
    }
    const lines = (await run(["report"])).stdout.trimEnd().split("\n");
    const row = (start: string): string | undefined => lines.find((line) => line.startsWith(start));
    expect(lines.filter((line) => line.startsWith("session\t"))).toHaveLength(3);
    const [ada, ben, all] = ["user\tada\t", "user\tben\t", "model\tclaude-sonnet-5\t"].map((start) =>
      usdIn(row(start)),
    );
    expect(ben).toBeGreaterThan(0);
    expect(ada).toBeCloseTo(2 * (ben ?? 0), 5);
    expect(all).toBeCloseTo(3 * (ben ?? 0), 5);

    const before = simulator.requests.length;
    const refused = await run(["ask", "ada", "trip", "And Bruges?"], String(((ben ?? 0) * 3) / 2));
    expect([refused.code, refused.stdout, simulator.requests.length]).toEqual([3, "", before]);
    expect(refused.stderr).toMatch(/^ada has spent \$\d\.\d{6} of \$\d\.\d{6} in 24 hours\. Ask again later\.\n$/);
    expect((await run(["ask", "ben", "trip", "And Bruges?"], String(((ben ?? 0) * 3) / 2))).code).toBe(0);
  });

  it("says how it is called", async () => {
    expect(await run(["ask", "ada"])).toMatchObject({ code: 2, stdout: "" });
  });
});
