import * as fc from "fast-check";
import type { Session } from "@throughline/session";
import { describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, key, type Fixture } from "./session-fixture.ts";

/** A message of the model of a tree. */
interface Node {
  readonly role: "user" | "assistant";
  readonly text: string;
  readonly parent: Node | null;
}

/** `at` names a message of the tree. `handle` names one of two handles, which learn of each other by the store alone. */
type Step = { readonly handle: number } & (
  | { readonly name: "run" | "regenerate" | "reopen" }
  | { readonly name: "edit" | "rewind" | "switchTo"; readonly at: number }
);

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ name: fc.constantFrom("run", "regenerate", "reopen"), handle: fc.nat(1) }),
  fc.record({ name: fc.constantFrom("edit", "rewind", "switchTo"), handle: fc.nat(1), at: fc.nat(1000) }),
);

/** Says what the session must hold after each step. Nodes are kept in the order of their writing. */
class Tree {
  readonly nodes: Node[] = [];
  head: Node | null = null;

  add(role: Node["role"], text: string, parent: Node | null): void {
    this.head = { role, text, parent };
    this.nodes.push(this.head);
  }

  path(): readonly Node[] {
    const path: Node[] = [];
    for (let node = this.head; node !== null; node = node.parent) path.unshift(node);
    return path;
  }

  siblings(of: Node): readonly Node[] {
    return this.nodes.filter(({ parent }) => parent === of.parent);
  }

  newest(of: Node): Node {
    const isBehind = (node: Node | null): boolean => node !== null && (node === of || isBehind(node.parent));
    return this.nodes.findLast(isBehind) ?? of;
  }
}

interface Pair {
  readonly tree: Tree;
  readonly fixture: Fixture;
  readonly handles: Session[];
}

function handleOf({ handles }: Pair, { handle }: Step): Session {
  return handles[handle] as Session;
}

/** The ids of the stored messages, in the order of their writing, which is that of the tree. */
async function messageIds({ fixture }: Pair): Promise<readonly string[]> {
  return (await fixture.records()).filter(({ type }) => type === "message").map(({ id }) => id);
}

async function take(pair: Pair, given: Step): Promise<void> {
  const { tree, fixture, handles } = pair;
  const { nodes } = tree;
  const session = handleOf(pair, given);
  const answer = (question: string | null, parent: Node | null): void => {
    if (question !== null) tree.add("user", question, parent);
    tree.add("assistant", `answer ${nodes.length}`, question === null ? parent : tree.head);
  };
  const ask = (): string => {
    fixture.model.push(`answer ${nodes.length + 1}`);
    return `question ${nodes.length}`;
  };
  if ("at" in given) return move(pair, given, { ask, answer });
  if (given.name === "reopen") {
    await session.close();
    handles[given.handle] = await fixture.sessions.open(key);
  } else if (given.name === "run") {
    const question = ask();
    await session.runTurn(question);
    answer(question, tree.head);
  } else {
    const last = tree.path().findLast(({ role }) => role === "user");
    if (last === undefined) return void (await expect(session.regenerate()).rejects.toThrow("no message"));
    fixture.model.push(`answer ${nodes.length}`);
    await session.regenerate();
    answer(null, last);
  }
}

async function move(
  pair: Pair,
  given: Extract<Step, { at: number }>,
  { ask, answer }: { readonly ask: () => string; readonly answer: (question: string, parent: Node | null) => void },
): Promise<void> {
  const { tree } = pair;
  const { name, at } = given;
  const session = handleOf(pair, given);
  const place = at % (tree.nodes.length + 1);
  const node = tree.nodes[place];
  const id = (await messageIds(pair))[place] ?? null;
  if (name === "rewind") {
    await session.rewind(id);
    tree.head = node ?? null;
  } else if (node === undefined || id === null) {
    await expect(session.switchTo("gone")).rejects.toMatchObject({ code: "RECORD_NOT_FOUND" });
  } else if (name === "switchTo") {
    await session.switchTo(id);
    tree.head = tree.newest(node);
  } else if (node.role === "user") {
    const question = ask();
    await session.edit(id, question);
    answer(question, node.parent);
  } else await expect(session.edit(id, "x")).rejects.toMatchObject({ code: "INPUT_INVALID" });
}

async function compare(pair: Pair, session: Session): Promise<void> {
  const { tree } = pair;
  const ids = await messageIds(pair);
  const idOf = (node: Node): string => ids[tree.nodes.indexOf(node)] ?? "";
  const path = tree.path();
  const { messages, headId } = await session.transcript({ branches: true });
  expect(headId).toBe(tree.head === null ? null : idOf(tree.head));
  expect(session.head.headId).toBe(headId);
  expect(messages.map(({ recordId, branches }) => [recordId, branches ?? null])).toEqual(
    path.map((node) => {
      const siblings = tree.siblings(node);
      const place = { position: siblings.indexOf(node) + 1, count: siblings.length };
      return [idOf(node), siblings.length < 2 ? null : place];
    }),
  );
  for (const node of path) {
    const branches = await session.branches(idOf(node));
    expect(branches.map(({ recordId, text, newestId, isCurrent }) => [recordId, text, newestId, isCurrent])).toEqual(
      tree.siblings(node).map((other) => [idOf(other), other.text, idOf(tree.newest(other)), other === node]),
    );
  }
}

describe("edit, regenerate, rewind and switch in any order", () => {
  const runs = testSize({ short: 8, long: 1000 });
  it(`agree with a model of a tree, and delete nothing (${runs} sequences)`, { timeout: 600_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 12 }), async (steps) => {
        const fixture = createFixture({ script: createScriptedModel() });
        const handles = [await fixture.sessions.open(key), await fixture.sessions.open(key)];
        const pair: Pair = { tree: new Tree(), fixture, handles };
        let before: readonly unknown[] = [];
        for (const given of steps) {
          await take(pair, given);
          const records = await fixture.records();
          expect(records.slice(0, before.length)).toEqual(before);
          before = records;
          await compare(pair, handleOf(pair, given));
        }
        // The next request has the messages of the branch, and no others.
        await take(pair, { name: "run", handle: 0 });
        const sent = JSON.stringify(fixture.model.requests.at(-1)?.messages);
        const asked = pair.tree.path().slice(0, -1);
        const sentTexts = pair.tree.nodes.filter(({ text }) => sent.includes(`"${text}"`));
        expect(sentTexts).toEqual(pair.tree.nodes.filter((node) => asked.includes(node)));
        await fixture.sessions.close();
      }),
      { numRuns: runs },
    );
  });
});
