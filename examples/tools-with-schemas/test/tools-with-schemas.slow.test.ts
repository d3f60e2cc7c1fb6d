import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { spawn } from "@lydell/node-pty";
import { createProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "throughline-example-"));
  const large = { amount: 900, refunds: {} };
  const orders = { A7: { amount: 40, refunds: {} }, B1: large, C2: large };
  writeFileSync(join(folder, "orders.json"), JSON.stringify(orders));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the program while the model makes these calls, one a step. Returns what it was told of each. */
async function results(...calls: readonly (readonly [string, object])[]): Promise<readonly string[]> {
  const parts = calls.map(([name, input]) => [{ type: "tool-call", name, input } as const]);
  await using provider = createProviderSimulator({
    replies: [...parts.map((content) => ({ kind: "answer", content }) as const), "Done.", "Done."],
  });
  await provider.start();
  const env = { ...process.env, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
  const program = join(import.meta.dirname, "../src/main.ts");
  const run = promisify(execFile)(process.execPath, [program, "Go on."], { cwd: folder, env });
  run.child.stdin?.end();
  expect((await run).stdout).toBe("Done.\n");
  expect(provider.refusals).toEqual([]);
  const sent = provider.requests.at(-1)?.body as
    | { readonly messages: readonly { readonly content: unknown }[] }
    | undefined;
  return (sent?.messages ?? []).flatMap(({ content }) =>
    (Array.isArray(content) ? (content as readonly { readonly type: string; readonly content?: unknown }[]) : [])
      .filter(({ type }) => type === "tool_result")
      .map((block) => JSON.stringify(block.content)),
  );
}

/** A person at a terminal of the program, while the model makes these calls in one reply. */
async function atTerminal(
  calls: readonly (readonly [string, object])[],
  person: (terminal: {
    readonly shows: (text: string) => Promise<void>;
    type(text: string): void;
    kill(): void;
  }) => Promise<void>,
): Promise<string> {
  const content = calls.map(([name, input]) => ({ type: "tool-call", name, input }) as const);
  const replies = content.length === 0 ? [] : [{ kind: "answer" as const, content }];
  await using provider = createProviderSimulator({ replies: [...replies, "Done.", "Done."] });
  await provider.start();
  const env = { ...process.env, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
  const program = join(import.meta.dirname, "../src/main.ts");
  const child = spawn(process.execPath, [program, "Go on."], { cols: 80, rows: 24, cwd: folder, env });
  let shown = "";
  const ended = new Promise<void>((resolve) => child.onExit(() => resolve()));
  child.onData((text) => (shown += text));
  try {
    await person({
      shows: (text) => expect.poll(() => shown, { timeout: 60_000 }).toContain(text),
      type: (text) => child.write(text),
      kill: () => child.kill("SIGKILL"),
    });
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  } finally {
    await ended;
  }
  return shown;
}

describe("the example of tools with schemas", () => {
  it("asks a person about one refund after the other: one y pays one back", async () => {
    const refunds = [
      ["refund", { id: "B1", amount: 300 }],
      ["refund", { id: "C2", amount: 400 }],
    ] as const;
    const shown = await atTerminal(refunds, async ({ shows, type }) => {
      await shows("Refund 300?");
      type("y\r");
      await shows("Refund 400?");
      type("n\r");
    });
    expect(shown).toContain("Done.");
    const orders = readFileSync(join(folder, "orders.json"), "utf8");
    expect(orders).toMatch(/"B1":\{"amount":900,"refunds":\{"[^"]*":300\}\}/);
    expect(orders).toContain('"C2":{"amount":900,"refunds":{}}');
  });

  it("asks again, in the next process, about a refund whose question was open when the process was killed", async () => {
    const refunds = [["refund", { id: "B1", amount: 300 }]] as const;
    await atTerminal(refunds, async ({ shows, kill }) => {
      await shows("Refund 300?");
      kill();
    });
    expect(readFileSync(join(folder, "orders.json"), "utf8")).toContain('"B1":{"amount":900,"refunds":{}}');
    await atTerminal([], async ({ shows, type }) => {
      await shows("Refund 300?");
      type("y\r");
    });
    expect(readFileSync(join(folder, "orders.json"), "utf8")).toMatch(
      /"B1":\{"amount":900,"refunds":\{"[^"]*":300\}\}/,
    );
  });

  it("finds an order, pays it back once a turn, and never more than was paid", async () => {
    const [found, paid, again] = await results(
      ["find_order", { id: "A7" }],
      ["refund", { id: "A7", amount: 30 }],
      ["refund", { id: "A7", amount: 30 }],
    );
    expect(found).toContain("40");
    expect(paid).toContain("Paid back 30.");
    expect(again).toContain("were paid back before");
    const later = (await results(["refund", { id: "A7", amount: 30 }])).at(-1);
    expect(later).toContain("Only 10 of order A7 can be paid back.");
    const { A7 } = JSON.parse(readFileSync(join(folder, "orders.json"), "utf8")) as {
      readonly A7: { readonly refunds: object };
    };
    expect(Object.values(A7.refunds)).toEqual([30]);
  });

  it("runs no call with wrong arguments, and no refund above the limit without a person", async () => {
    const [wrong, unknown, large] = await results(
      ["find_order", { id: "seven" }],
      ["find_order", { id: "Z9" }],
      ["refund", { id: "B1", amount: 900 }],
    );
    expect(wrong).toContain("such as A7");
    expect(unknown).toContain("There is no order Z9.");
    expect(large).toContain("needs the consent of a person");
    expect(readFileSync(join(folder, "orders.json"), "utf8")).toContain('"refunds":{}},"B1"');
  });
});
