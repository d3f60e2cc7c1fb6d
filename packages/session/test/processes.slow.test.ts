import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { createSessions, explainCalls, rebuildCall } from "@throughline/session";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { testSize } from "../../../tools/test-size.ts";
import { openStore } from "./process-store.ts";
import { providerCases, type ProviderCase } from "./provider-cases.ts";
import { allRecords, key, outline } from "./session-fixture.ts";

const script = bundledWorker(new URL("./turn-process.ts", import.meta.url));

interface Line {
  readonly is: string;
  readonly code?: string;
  readonly interrupted?: unknown;
}

/** A process that takes a turn. */
interface TurnProcess {
  readonly child: ChildProcess;
  readonly lines: readonly Line[];
  /** Waits until it says so. */
  until(is: string): Promise<Line>;
  readonly exited: Promise<unknown>;
}

// Each test starts processes, which takes its time on a machine that is busy.
vi.setConfig({ testTimeout: 120_000 });

let folder = "";
const children: ChildProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "turns-"));
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

function take(
  store: string,
  provider: ProviderCase,
  simulator: ProviderSimulator,
  leaseMs: number,
  turns = 1,
): TurnProcess {
  const given = [store, folder, provider.name, simulator.url, "Write a lot", String(leaseMs), String(turns)];
  const child = spawn(process.execPath, [script, ...given], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const lines: Line[] = [];
  const waiting = new Set<() => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(JSON.parse(line) as Line);
    for (const look of waiting) look();
  });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const until = (is: string): Promise<Line> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = lines.find((line) => line.is === is);
        if (found === undefined) return;
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
      void exited.then(() => reject(new Error(`The process ended without ${is}: ${JSON.stringify(lines)}`)));
    });
  return { child, lines, until, exited };
}

const longText = "word ".repeat(300);
const system = "You work with tools.";

async function startSimulator(): Promise<ProviderSimulator> {
  const simulator = createProviderSimulator({ models: { "*": { windowTokens: 100_000 } } });
  await simulator.start();
  return simulator;
}

function openHere(
  kind: string,
  provider: ProviderCase,
  simulator: ProviderSimulator,
): ReturnType<typeof createSessions> {
  const model = { chat: provider.create(simulator), modelId: provider.modelId, windowTokens: 100_000 };
  return createSessions({ store: openStore(kind, folder), model, system });
}

const everywhere = [
  // What a kill leaves does not depend on the provider: the short tier takes one over each store.
  ...providerCases
    .slice(0, testSize({ short: 1, long: 4 }))
    .map((provider) => ({ store: "sqlite", provider, name: provider.name })),
  ...providerCases.slice(0, 1).map((provider) => ({ store: "jsonl", provider, name: provider.name })),
];

describe.each(everywhere)("kill -9 in the middle of a reply: $name over store-$store", ({ store, provider }) => {
  it("the next start says so at once, and the conversation goes on", async () => {
    await using simulator = await startSimulator();
    simulator.enqueue({ kind: "answer", content: longText, eventDelayMs: 5 }, "I am back.");
    const killed = take(store, provider, simulator, 60_000);
    await killed.until("delta");
    killed.child.kill("SIGKILL");
    await killed.exited;
    await using sessions = openHere(store, provider, simulator);
    await using session = await sessions.open(key);
    expect(session.interruptedTurn).toMatchObject({ text: "Write a lot", sinceMs: expect.any(Number) });
    expect(session.interruptedTurn?.owner).toContain(`pid ${killed.child.pid}`);
    const turn = await session.runTurn("Are you there?");
    expect(turn.text).toBe("I am back.");
    expect(simulator.refusals).toEqual([]);
    const records = await allRecords(openStore(store, folder));
    expect(outline(records)).toEqual([
      "turn:open",
      "user",
      "turn:interrupted",
      "turn:open",
      "user",
      "assistant:stop",
      "call:answered",
      "turn:done",
    ]);
    const [call] = explainCalls(records);
    if (call === undefined) throw new Error("the call is in the log");
    const rebuilt = JSON.stringify(rebuildCall(records, call.facts, { system, tools: [] }).messages);
    expect(new TextDecoder().decode(simulator.requests[1]?.bytes)).toContain(rebuilt);
  });
});

describe("other processes", () => {
  const [provider] = providerCases as readonly [ProviderCase];

  it.each(testSize({ short: ["jsonl"], long: ["sqlite", "jsonl"] }))(
    "kill -9 while a tool runs: its call is answered when the turn is resumed, over store-%s",
    async (store) => {
      await using simulator = await startSimulator();
      simulator.enqueue(
        { kind: "answer", content: [{ type: "tool-call", name: "work", input: {} }] },
        { kind: "answer", content: "It may have worked." },
      );
      const killed = take(store, provider, simulator, 60_000);
      await killed.until("working");
      killed.child.kill("SIGKILL");
      await killed.exited;
      await using sessions = openHere(store, provider, simulator);
      await using session = await sessions.open(key);
      expect((await session.resume()).text).toBe("It may have worked.");
      expect(simulator.refusals).toEqual([]);
      expect(new TextDecoder().decode(simulator.requests[1]?.bytes)).toContain("It may have run.");
    },
  );

  it.each(testSize({ short: ["jsonl"], long: ["sqlite", "jsonl"] }))(
    "a process that was stopped and goes on is fenced off and nothing interleaves, over store-%s [C42]",
    async (store) => {
      await using simulator = await startSimulator();
      simulator.enqueue({ kind: "answer", content: longText, eventDelayMs: 2 }, "Taken over.", "And on.");
      const stopped = take(store, provider, simulator, 6000);
      await stopped.until("delta");
      stopped.child.kill("SIGSTOP");
      await using sessions = openHere(store, provider, simulator);
      await using session = await sessions.open(key);
      await expect(session.runTurn("Mine", { whenBusy: "reject" })).rejects.toMatchObject({ code: "SESSION_BUSY" });
      expect((await session.runTurn("Mine", { whenBusy: "queue" })).text).toBe("Taken over.");
      stopped.child.kill("SIGCONT");
      expect(await stopped.until("thrown")).toMatchObject({ code: "TURN_FENCED" });
      await stopped.exited;
      expect((await session.runTurn("More")).text).toBe("And on.");
      const whole = ["turn:open", "user", "assistant:stop", "call:answered", "turn:done"];
      expect(outline(await allRecords(openStore(store, folder)))).toEqual([
        "turn:open",
        "user",
        "turn:interrupted",
        ...whole,
        ...whole,
      ]);
      expect(simulator.refusals).toEqual([]);
    },
  );

  it("two processes on one session: the second one waits, and both turns are whole", async () => {
    await using simulator = await startSimulator();
    simulator.enqueue({ kind: "answer", content: "First. ".repeat(40), eventDelayMs: 5 }, "Second.");
    const first = take("sqlite", provider, simulator, 30_000);
    await first.until("delta");
    await using sessions = openHere("sqlite", provider, simulator);
    await using session = await sessions.open(key);
    expect(session.runningTurn?.owner).toContain(`pid ${first.child.pid}`);
    await expect(session.runTurn("Me too")).rejects.toMatchObject({ code: "SESSION_BUSY" });
    expect((await session.runTurn("Me too", { whenBusy: "queue" })).text).toBe("Second.");
    await first.until("done");
    await first.exited;
    const whole = ["turn:open", "user", "assistant:stop", "call:answered", "turn:done"];
    expect(outline(await recordsOfSqlite())).toEqual([...whole, ...whole]);
  });

  it.each(testSize({ short: ["sqlite"], long: ["sqlite", "jsonl"] }))(
    "two processes with many turns each take turns: nothing interleaves, over store-%s",
    async (store) => {
      await using simulator = await startSimulator();
      const parts = [{ type: "tool-call" as const, name: "nothing", input: {} }];
      for (let at = 0; at < 5; at++) simulator.enqueue({ kind: "answer", content: parts }, "Done.", "Done without.");
      const both = [take(store, provider, simulator, 30_000, 5), take(store, provider, simulator, 30_000, 5)];
      await Promise.all(both.map(({ exited }) => exited));
      expect(both.map(({ lines }) => lines.filter(({ is }) => is === "done").length)).toEqual([5, 5]);
      expect(simulator.refusals).toEqual([]);
      const words = outline(await allRecords(openStore(store, folder)));
      const turns = words
        .join(" ")
        .split("turn:done")
        .map((turn) => turn.trim());
      expect(new Set(turns)).toEqual(
        new Set([
          "turn:open user assistant:toolUse call:answered toolResult:error assistant:stop call:answered",
          "turn:open user assistant:stop call:answered",
          "",
        ]),
      );
      expect(turns).toHaveLength(11);
    },
  );

  async function recordsOfSqlite(): ReturnType<typeof allRecords> {
    return allRecords(openStore("sqlite", folder));
  }
});
