import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { readWindow, sessionRef, type SessionStore, type StoredRecord, userMessage } from "@throughline/core";
import { systemClock, systemRandom } from "@throughline/core/internal";
import { createHistory } from "@throughline/history";
import { historyTargets } from "@throughline/history/internal";
import { createSessions, openTurn } from "@throughline/session";
import { leaseTurn } from "../src/lease-turn.ts";
import { killAtQuestion } from "./kill-at-question.ts";
import { openStore } from "./process-store.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { key } from "./session-fixture.ts";

const ref = sessionRef({ key });
vi.setConfig({ testTimeout: 120_000 });

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "questions-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** What a model reads as the results of the calls, by their order. */
function resultsIn(records: readonly StoredRecord[]): readonly string[] {
  const target = historyTargets.get("anthropic");
  if (target === undefined) throw new Error("There is no target for Anthropic.");
  const history = createHistory(target);
  history.append(records);
  const { messages } = history.render() as { readonly messages: readonly { readonly content: unknown }[] };
  const blocks = messages.flatMap(({ content }) => (Array.isArray(content) ? (content as readonly Block[]) : []));
  const results = blocks.filter(({ type }) => type === "tool_result");
  return results
    .toSorted((one, other) => ((one.tool_use_id ?? "") < (other.tool_use_id ?? "") ? -1 : 1))
    .map((block) => JSON.stringify(block.content));
}

interface Block {
  readonly type: string;
  readonly tool_use_id?: string;
  readonly content?: unknown;
}

type Open = (
  store: SessionStore,
  drafts: readonly ReturnType<typeof userMessage>[],
) => Promise<readonly StoredRecord[]>;

const leased = async (store: SessionStore, drafts: readonly ReturnType<typeof userMessage>[], more: object) => {
  const ports = { clock: systemClock, random: systemRandom };
  await leaseTurn(store, ref, { owner: "other", leaseMs: 30_000, drafts, ...ports, ...more });
  return (await readWindow(store, ref)).records;
};

const ways: readonly (readonly [string, Open])[] = [
  ["openTurn", async (store, drafts) => (await openTurn(store, key, { drafts })).records],
  [
    "openTurn with a key",
    async (store, drafts) => (await openTurn(store, key, { drafts, idempotencyKey: "k" })).records,
  ],
  ["a lease", (store, drafts) => leased(store, drafts, {})],
  ["a lease with a key", (store, drafts) => leased(store, drafts, { idempotencyKey: "k" })],
  [
    "a lease at a head",
    async (store, drafts) => leased(store, drafts, { expect: { head: (await store.load(ref))?.head.headId ?? null } }),
  ],
];
const notRun = expect.stringContaining("It was not run") as string;

describe("a process that was killed at the question", () => {
  it.each(["sqlite", "jsonl"].flatMap((kind) => ways.map(([name, open]) => ({ kind, name, open }))))(
    "has run no call, and the model of the next turn reads so: $name, $kind",
    async ({ kind, open }) => {
      await killAtQuestion(kind, folder, 0);
      await using store = openStore(kind, folder);
      expect(resultsIn(await open(store, [userMessage("Hello?")]))).toEqual([notRun, notRun]);
    },
  );

  it.each(ways)("has run the call that was allowed, and not the one behind it: %s", async (_name, open) => {
    await killAtQuestion("sqlite", folder, 1);
    await using store = openStore("sqlite", folder);
    const [first, second] = resultsIn(await open(store, [userMessage("Hello?")]));
    // Killed before or after its result was stored.
    expect(first).toMatch(/paid|may or may not have run/);
    expect(second).toEqual(notRun);
  });

  it("leaves the calls to a turn whose drafts say where they stand", async () => {
    await killAtQuestion("sqlite", folder, 0);
    await using store = openStore("sqlite", folder);
    const { head } = (await store.load(ref)) ?? {};
    const placed = { ...userMessage("Hello?"), parentId: head?.headId ?? null };
    const records = await leased(store, [placed] as never, {});
    expect(records.filter(({ record }) => JSON.stringify(record).includes("It was not run"))).toEqual([]);
  });

  it("is answered once where the facade follows a turn of a program", async () => {
    await killAtQuestion("sqlite", folder, 0);
    await using store = openStore("sqlite", folder);
    const turn = await openTurn(store, key, { drafts: [userMessage("Hello?")] });
    await turn.close([], { outcome: "aborted" });
    const model = createScriptedModel("Later.");
    await using sessions = createSessions({
      store,
      model: { chat: model, modelId: "claude-sonnet-4-5", windowTokens: 100_000 },
    });
    await (await sessions.open(key)).runTurn("And now?");
    const { records } = await readWindow(store, ref);
    expect(resultsIn(records)).toEqual([notRun, notRun]);
  });
});
