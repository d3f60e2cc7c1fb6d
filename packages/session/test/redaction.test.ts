import { describe, expect, it, vi } from "vitest";
import { redactRecords, type SessionRef, type SessionStore } from "@throughline/core";
import { withheldSummary } from "@throughline/core/internal";
import { createSessions, type Session } from "@throughline/session";
import { createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import type { WholeTurnEvent } from "../src/whole-turn/whole-turn-event.ts";
import { createExtractiveSummarizer } from "@throughline/summarizer-providers";
import { createScriptedModel, type ScriptedModel } from "./scripted-model.ts";
import { allRecords, key, places } from "./whole-turn-fixture.ts";

const ref: SessionRef = { namespace: "", agentId: "main", key };
const secret = "hunter2secret";

const modelOf = (chat: ScriptedModel) => ({ chat, modelId: "claude-sonnet-4-5", windowTokens: 200_000 });
const shown = async (session: Session): Promise<string> => JSON.stringify((await session.messages()).messages);

async function redactWith(store: SessionStore, word: string): Promise<void> {
  const found = (await allRecords(store)).filter(
    ({ record, type }) => type === "message" && JSON.stringify(record).includes(word),
  );
  await redactRecords(
    store,
    ref,
    found.map(({ id }) => id),
    { reason: "a secret" },
  );
}

describe.each(places)("a redaction by somebody else, over $name", ({ open }) => {
  it("is known to a live session with its next turn, before the model is asked", { tags: ["slow"] }, async () => {
    const { store, remove } = open();
    const script = createScriptedModel();
    await using sessions = createSessions({ store, model: modelOf(script) });
    await using session = await sessions.open(key);
    script.push("Noted.", "So it is.", "And so it stays.");
    await session.runTurn(`The key is ${secret}.`);
    const turn = await session.runTurn("And the door is green.");
    expect(turn.messages).toHaveLength(2);
    await redactWith(store, secret);
    const next = await session.runTurn("What do you know?");
    const sent = JSON.stringify(script.requests.at(-1)?.messages);
    expect(sent).not.toContain(secret);
    expect(sent).toContain("And the door is green.");
    expect(next.messages).toHaveLength(2);
    await remove();
  });

  it("in the session that it was forked from is known to it, with its next turn", async () => {
    const { store, remove } = open();
    const script = createScriptedModel();
    await using sessions = createSessions({ store, model: modelOf(script) });
    await using origin = await sessions.open(key);
    script.push("Noted.", "So it is.", "And so it stays.");
    await origin.runTurn(`The key is ${secret}.`);
    const forkKey = `${key}:fork`;
    await store.fork?.fork(ref, { ...ref, key: forkKey }, { sessionId: "fork" });
    await using fork = await sessions.open(forkKey);
    await fork.runTurn("And the door is green.");
    await redactWith(store, secret);
    await fork.runTurn("What do you know?");
    const sent = JSON.stringify(script.requests.at(-1)?.messages);
    expect(sent).not.toContain(secret);
    expect(sent).toContain("And the door is green.");
    await remove();
  });

  it("ends although a fork is purged meanwhile, and reaches the forks behind it", async () => {
    const { store, remove } = open();
    const script = createScriptedModel();
    await using sessions = createSessions({ store, model: modelOf(script) });
    await using origin = await sessions.open(key);
    script.push("Noted.");
    await origin.runTurn(`The key is ${secret}.`);
    const forks = ["a", "b", "c"].map((name) => ({ ...ref, key: `${key}:${name}` }));
    for (const [at, fork] of forks.entries()) await store.fork?.fork(ref, fork, { sessionId: `fork-${at}` });
    const facet = store.fork;
    // A store in memory copies the records.
    if (facet?.sharers === undefined) return remove();
    const sharers = facet.sharers.bind(facet);
    // The second one is purged when it is known that it shares the records.
    vi.spyOn(facet as Required<typeof facet>, "sharers").mockImplementationOnce(async (...asked) => {
      const found = await sharers(...asked);
      await store.remove(forks[1] ?? ref, { purge: true });
      return found;
    });
    await redactWith(store, secret);
    for (const fork of [forks[0], forks[2]]) {
      const pages = await Array.fromAsync(store.read(fork ?? ref), ({ records }) => records);
      expect(JSON.stringify(pages.flat().at(-1)?.record)).toContain("summary-outdated");
    }
    await remove();
  });

  it("of what a summary covers takes the summary out of use at once; what is left of it follows without a model", async () => {
    const { store, remove } = open();
    const script = createScriptedModel();
    const events: WholeTurnEvent[] = [];
    let summaries = 0;
    let isUp = true;
    const agent = () =>
      createAgentSessions({
        store,
        model: modelOf(script),
        summarizers: [
          {
            summarize: ({ text }) => {
              summaries += 1;
              if (!isUp) return Promise.reject(new Error("no server there"));
              const summary = `They spoke of a key${text.includes(secret) ? ` (${secret})` : ""} and of a green door.`;
              return Promise.resolve({ summary, source: "works", usage: null });
            },
          },
        ],
        extractive: createExtractiveSummarizer(),
        checkpoint: { enabled: false },
        retry: { intervalSeconds: 0 },
        onEvent: (event) => events.push(event),
      });
    await using sessions = agent();
    await using session = await sessions.open(key);
    await session.runTurn(`The key is ${secret}. ${"It opens the door that is there. ".repeat(30)}`);
    for (const at of [1, 2, 3, 4]) {
      await session.runTurn(`Question ${at}: what is it with the green door? ${"It is there. ".repeat(40)}`);
    }
    expect(await session.compact()).toMatchObject({ kind: "compacted", source: "model" });
    expect(await shown(session)).toContain(secret);
    isUp = false;
    await redactWith(store, secret);
    // Another handle, of a program that knows nothing of summaries, shows the note in its place.
    await using plain = createSessions({ store, model: modelOf(createScriptedModel()) });
    await using other = await plain.open(key);
    expect(await shown(other)).toContain(withheldSummary);
    const asked = summaries;
    await session.runTurn("What do you know?");
    const sent = JSON.stringify(script.requests.at(-1)?.messages);
    expect(sent).not.toContain(secret);
    expect(sent).not.toContain(withheldSummary);
    expect(sent).toContain("green door");
    expect(summaries).toBe(asked);
    const names = events.map(({ name }) => name).filter((name) => name.startsWith("summary."));
    expect(names).toEqual(["summary.withheld", "summary.replaced"]);
    expect((await session.status()).retries).toMatchObject([{ state: "due", attempts: 0 }]);
    // Nothing more happens with the calls that follow.
    await session.runTurn("And now?");
    expect(events.filter(({ name }) => name === "summary.replaced")).toHaveLength(1);
    await remove();
  });
});
