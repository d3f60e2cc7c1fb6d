import { MemorySession, type AgentInputItem, type Session } from "@openai/agents-core";
import { expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { testSize } from "../../../tools/test-size.ts";
import { createAgentsSession } from "../src/agents-session.ts";

type Both = Session & Pick<MemorySession, "applyHistoryTransaction" | "applyHistoryMutations">;
type Act = (session: Both) => Promise<unknown>;

/** Numbers that look random and are the same in every run. */
function numbers(seed: number): (count: number) => number {
  let state = Math.imul(seed, 2_654_435_761);
  return (count) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * count);
  };
}

/** Items of a few calls, so that one is often found twice, answered twice or replaced twice. */
class RandomItems {
  readonly below: (count: number) => number;
  #made = 0;

  constructor(seed: number) {
    this.below = numbers(seed);
  }

  item(): AgentInputItem {
    this.#made += 1;
    const text = `said ${this.#made}`;
    const callId = `c${this.below(4)}`;
    const items: readonly object[] = [
      { type: "message", role: "user", content: text },
      { type: "message", role: "user", content: [{ type: "input_text", text }] },
      { type: "message", role: "system", content: text },
      { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] },
      { type: "message", role: "assistant", status: "completed", content: [] },
      { type: "reasoning", id: `rs_${this.#made}`, content: [{ type: "input_text", text }] },
      { type: "reasoning", content: [], providerData: { encrypted_content: "c2VjcmV0" } },
      this.call(callId),
      this.call(callId),
      { type: "function_call_result", name: "pay", callId, status: "completed", output: { type: "text", text } },
      { type: "hosted_tool_call", id: `h${this.#made}`, name: "web_search_call", status: "completed" },
      { type: "unknown", providerData: { type: "hologram", at: this.#made } },
      { type: "message", role: "user", content: [], providerData: { bytes: new Uint8Array([this.#made % 256]) } },
    ];
    return items[this.below(items.length)] as unknown as AgentInputItem;
  }

  call(callId: string): object {
    this.#made += 1;
    return { type: "function_call", callId, name: "pay", status: "completed", arguments: `{"amount":${this.#made}}` };
  }

  list(most: number): AgentInputItem[] {
    return Array.from({ length: this.below(most + 1) }, () => this.item());
  }
}

/** What is done next to a session that has these items. */
function nextAct(random: RandomItems, items: readonly AgentInputItem[], operation: number): readonly [string, Act] {
  const { below } = random;
  const id = `op ${below(8) === 0 ? Math.max(0, operation - 1) : operation}`;
  const added = random.list(4);
  const limit = below(4);
  const acts: readonly (readonly [string, Act])[] = [
    ["addItems", (session) => session.addItems(added)],
    ["addItems", (session) => session.addItems(added)],
    ["popItem", (session) => session.popItem()],
    ["getItems", (session) => session.getItems(limit)],
    [
      "applyHistoryMutations",
      (session) => {
        const mutations = Array.from({ length: 1 + (added.length % 2) }, (_, at) => {
          const callId = `c${(added.length + operation + at) % 5}`;
          const newId = operation % 3 === 0 ? `c${(operation + at) % 5}` : callId;
          const replacement = {
            type: "function_call",
            callId: newId,
            name: "pay",
            arguments: `{"amount":${operation}}`,
          };
          return { type: "replace_function_call", callId, replacement };
        });
        return session.applyHistoryMutations({ mutations } as never);
      },
    ],
    [
      "append_items",
      (session) =>
        session.applyHistoryTransaction({ operationId: id, transaction: { type: "append_items", items: added } }),
    ],
    [
      "replace_suffix",
      (session) => {
        const expectedSuffix = items.slice(Math.max(0, items.length - (operation % 4)));
        const transaction = { type: "replace_suffix" as const, expectedSuffix, replacement: added };
        return session.applyHistoryTransaction({ operationId: id, transaction });
      },
    ],
    ["clearSession", (session) => (operation % 5 === 0 ? session.clearSession() : session.addItems(added))],
    ["replaceHistory", (session) => replaceHistory(session, items, operation)],
  ];
  return acts[below(acts.length)] as readonly [string, Act];
}

/** As the runner compacts: a session that cannot do it at once is cleared and filled. */
async function replaceHistory(session: Both, items: readonly AgentInputItem[], operation: number): Promise<void> {
  if (operation % 3 > 0) return;
  const summary: AgentInputItem = { type: "message", role: "user", content: `summary ${operation}` };
  const kept = [summary, ...items.slice(Math.floor(items.length / 2))];
  if (session instanceof MemorySession) {
    const { length } = await session.getItems();
    for (let at = 0; at < length; at++) await session.popItem();
    await session.addItems(kept);
  } else await (session as ReturnType<typeof createAgentsSession>).replaceHistoryWithCompaction(kept);
}

async function outcome(work: Promise<unknown>): Promise<unknown> {
  try {
    return { value: await work };
  } catch (error) {
    return { refused: (error as Error).message };
  }
}

/** Items in a word for each, for people. */
function short(items: readonly AgentInputItem[]): string {
  return items
    .map((item) => JSON.stringify(item).replace(/"(?:type|role|status|name|content|output)":/g, ""))
    .join(" | ");
}

/** One random sequence on both, at last with a message of another program; what differs, or null. */
async function faultOf(seed: number, hasOther: boolean): Promise<object | null> {
  const random = new RandomItems(seed);
  const store = createMemoryStore();
  const theirs = new MemorySession({ sessionId: "s" });
  let ours = createAgentsSession({ store, sessionId: "s" });
  const names: string[] = [];
  for (let operation = 0; operation < 10; operation++) {
    if (random.below(4) === 0) ours = createAgentsSession({ store, sessionId: "s" });
    if (hasOther && random.below(12) === 0) {
      names.push("another program");
      const message = { role: "user", content: `another program ${operation}` };
      await ours.log().append(() => ({ drafts: [{ type: "message", message }] }));
      const after = await ours.getItems();
      const own = after.filter((item) => !JSON.stringify(item).includes("another program"));
      const before = await theirs.getItems();
      if (own.length + 1 !== after.length || JSON.stringify(own) !== JSON.stringify(before))
        return { seed, names, want: short(before), have: short(after) };
      return null;
    }
    const [name, act] = nextAct(random, await theirs.getItems(), operation);
    names.push(name);
    const expected = await outcome(act(theirs));
    const given = await outcome(act(ours as unknown as Both));
    const want = await theirs.getItems();
    const have = await createAgentsSession({ store, sessionId: "s" }).getItems();
    const isSame = JSON.stringify([given, have, await ours.getItems()]) === JSON.stringify([expected, want, want]);
    if (!isSame) return { seed, names, expected, given, want: short(want), have: short(have) };
  }
  return null;
}

it("does what MemorySession does in random sequences, with calls replaced and histories cut", async () => {
  const cases = testSize({ short: 120, long: 10_000 });
  const faults: object[] = [];
  for (let seed = 1; seed <= cases && faults.length < 5; seed++) {
    const fault = await faultOf(seed, seed % 2 === 0);
    if (fault !== null) faults.push(fault);
  }
  expect(faults).toEqual([]);
}, 900_000);
