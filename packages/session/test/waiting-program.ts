import { afterEach, expect } from "vitest";
import { defineTool, type SessionStore } from "@throughline/core";
import type { Session, SessionsOptions } from "@throughline/session";
import { createMemoryStore } from "@throughline/store-memory";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, key, type Fixture } from "./session-fixture.ts";

const open: Fixture[] = [];

afterEach(async () => {
  for (const { sessions } of open.splice(0)) await sessions.close();
});

export interface Program {
  readonly fixture: Fixture;
  readonly paid: string[];
  readonly asked: string[];
  readonly open: () => Promise<Session>;
}

/** The calls of a reply that need approvals. */
export const calls: readonly { readonly id: string; readonly name: string; readonly arguments: { order: string } }[] = [
  "A",
  "B",
].map((order) => ({ id: `call-${order}`, name: "refund", arguments: { order } }));

/** One process with a tool that pays back. Several processes share a store. */
export function program(store: SessionStore, options: Partial<SessionsOptions> = {}, ...script: unknown[]): Program {
  const paid: string[] = [];
  const asked: string[] = [];
  const refund = defineTool({
    name: "refund",
    description: "Pays back.",
    input: { type: "object", properties: { order: { type: "string" } }, required: ["order"] },
    run: ({ order }) => {
      paid.push(order);
      return `paid ${order}`;
    },
  });
  const fixture = createFixture({
    store,
    script: createScriptedModel(...((script.length > 0 ? script : ["Done.", "Later."]) as [])),
    tools: [refund],
    approveTool: ({ id, arguments: { order } }) => {
      asked.push(id);
      return { wait: { order } };
    },
    ...options,
  });
  open.push(fixture);
  return { fixture, paid, asked, open: () => fixture.sessions.open(key) };
}

/** A store in which a turn of an earlier process waits. */
export async function waitingStore(options: Partial<SessionsOptions> = {}): Promise<SessionStore> {
  const store = createMemoryStore();
  const { open: enter, fixture } = program(store, options, { calls });
  expect((await (await enter()).runTurn("Pay both back")).outcome).toBe("waiting");
  await fixture.sessions.close();
  return store;
}

/** What the model reads as the results of the calls. */
export function resultsIn({ model }: Pick<Fixture, "model">): readonly string[] {
  const { messages } = model.requests.at(-1) as unknown as { readonly messages: readonly { content: unknown }[] };
  const results = messages.flatMap(({ content }) =>
    (Array.isArray(content) ? (content as readonly { readonly type: string; readonly content?: unknown }[]) : [])
      .filter(({ type }) => type === "tool_result")
      .map((block) => JSON.stringify(block)),
  );
  return results.toSorted((one, other) => Number(one.includes("call-B")) - Number(other.includes("call-B")));
}
