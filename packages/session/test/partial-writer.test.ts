import { type PartialReply, type PartialsFacet, type SessionStore, ThroughlineError } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { replaceMembers } from "@throughline/test-kit";
import { describe, expect, it } from "vitest";
import { createScriptedModel, type ScriptedModel } from "./scripted-model.ts";
import { createFixture, key } from "./session-fixture.ts";
import { createSetClock, type SetClock } from "./set-clock.ts";

const ref = { namespace: "", agentId: "main", key };

interface Seen {
  readonly writes: PartialReply[];
  readonly removals: number[];
  /** Runs in place of a write; the write itself is the argument. */
  around: (write: () => Promise<void>) => Promise<void>;
}

function watched(store: SessionStore): { readonly store: SessionStore; readonly seen: Seen } {
  const seen: Seen = { writes: [], removals: [], around: (write) => write() };
  const { partials } = store;
  if (partials === undefined) throw new Error("The store keeps no partials.");
  const facet: PartialsFacet = {
    read: (at) => partials.read(at),
    write: (at, partial) =>
      seen.around(async () => {
        seen.writes.push(partial);
        await partials.write(at, partial);
      }),
    remove: (at, fence) => {
      seen.removals.push(fence);
      return partials.remove(at, fence);
    },
  };
  return { store: replaceMembers(store, { partials: facet }), seen };
}

/** A model whose pieces the test sends. */
interface Streamed {
  readonly script: ScriptedModel;
  readonly clock: SetClock;
  /** Settles once the model is asked. Before that a turn does work that is not over after a number of loop turns. */
  readonly asked: Promise<void>;
  send(text: string): void;
  end(): void;
}

function streamed(): Streamed {
  const clock = createSetClock();
  const asked = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  let onDelta: ((text: string) => void) | null = null;
  let whole = "";
  const script = createScriptedModel(() => ({ text: whole }));
  const chat: ScriptedModel = {
    ...script,
    async chat(request) {
      const { onDelta: show, ...rest } = request;
      onDelta = (text) => show?.({ type: "text", text });
      asked.resolve();
      await ended.promise;
      return script.chat(rest);
    },
  };
  return {
    script: chat,
    clock,
    asked: asked.promise,
    send: (text) => {
      whole += text;
      onDelta?.(text);
    },
    end: () => ended.resolve(),
  };
}

async function begin(options: Parameters<typeof createFixture>[0] = {}) {
  const model = streamed();
  const { store, seen } = watched(createMemoryStore());
  const fixture = createFixture({ script: model.script, store, clock: model.clock, ...options });
  const session = await fixture.sessions.open(key);
  const turn = session.runTurn("Hello", { onDelta: () => {} });
  await model.asked;
  return { ...model, ...fixture, session, seen, turn };
}

describe("the writer of partial replies", () => {
  it("writes nothing of a reply that is done before 700 ms", async () => {
    const { clock, seen, send, end, turn, sessions } = await begin();
    for (let at = 0; at < 6; at++) {
      send("words ");
      await clock.advance(110);
    }
    end();
    expect((await turn).text).toBe("words words words words words words ");
    await sessions.close();
    expect([seen.writes, seen.removals]).toEqual([[], []]);
  });

  it("writes 700 ms after the first character that is not saved, and not more often", async () => {
    const { clock, seen, send, end, turn, sessions, store } = await begin();
    for (let at = 0; at < 30; at++) {
      send("x".repeat(10));
      await clock.advance(100);
    }
    const lengths = seen.writes.map(({ text }) => text.length);
    // The first piece is written at 700 ms; the next one, sent just after, again 700 ms later.
    expect(lengths).toEqual([70, 140, 210, 280]);
    const [first] = seen.writes;
    const { head } = (await store.load(ref)) ?? {};
    expect(first).toMatchObject({
      v: 1,
      turnId: head?.turn?.turnId,
      fence: head?.fence,
      step: 1,
      attempt: 0,
      afterSeq: 2,
      provider: "anthropic",
      api: null,
      model: "claude-sonnet-4-5",
    });
    end();
    await turn;
    await sessions.close();
    expect(seen.removals).toEqual([first?.fence]);
    expect(await store.partials?.read(ref)).toBeNull();
  });

  it("writes at a pause of 300 ms that begins late, but never within 700 ms of the write before", async () => {
    const { clock, seen, send } = await begin();
    send("one ");
    await clock.advance(700);
    expect(seen.writes.map(({ text }) => text)).toEqual(["one "]);
    await clock.advance(650);
    send("two ");
    await clock.advance(299);
    expect(seen.writes).toHaveLength(1);
    await clock.advance(1);
    expect(seen.writes.at(-1)?.text).toBe("one two ");
    send("three");
    await clock.advance(699);
    expect(seen.writes).toHaveLength(2);
    await clock.advance(1);
    expect(seen.writes.at(-1)?.text).toBe("one two three");
  });

  it("writes at 16 kB without waiting, one write at a time", async () => {
    const { clock, seen, send } = await begin();
    let running = 0;
    const done: (() => void)[] = [];
    seen.around = async (write) => {
      running += 1;
      expect(running).toBe(1);
      await new Promise<void>((resolve) => done.push(resolve));
      await write();
      running -= 1;
    };
    send("x".repeat(16_000));
    await clock.advance(0);
    expect(done).toHaveLength(0);
    send("x".repeat(384));
    await clock.advance(0);
    expect(done).toHaveLength(1);
    send("y".repeat(50_000));
    await clock.advance(0);
    expect(done).toHaveLength(1);
    done[0]?.();
    await clock.advance(0);
    expect(seen.writes.map(({ text }) => text.length)).toEqual([16_384]);
    done[1]?.();
    await clock.advance(0);
    expect(seen.writes.at(-1)?.text).toHaveLength(66_384);
  });

  it("reports a write that takes longer than a second, and one that fails, and saves the text later", async () => {
    const { clock, seen, send, events } = await begin();
    const delayed = (): readonly unknown[] =>
      events.flatMap((event) => (event.name === "partial.delayed" ? [[event.sinceMs, event.cause]] : []));
    const sentAtMs = clock.nowMs();
    const go = Promise.withResolvers<void>();
    seen.around = async (write) => {
      await go.promise;
      await write();
    };
    send("one");
    await clock.advance(1699);
    expect(delayed()).toEqual([]);
    await clock.advance(1);
    expect(delayed()).toEqual([[sentAtMs, null]]);
    go.resolve();
    await clock.advance(0);
    const cause = new ThroughlineError("STORE_UNREACHABLE", "The cable is out.");
    seen.around = () => Promise.reject(cause);
    send(" two");
    const twoAtMs = clock.nowMs();
    await clock.advance(1400);
    expect(delayed().slice(1)).toEqual([[twoAtMs, cause]]);
    seen.around = (write) => write();
    await clock.advance(700);
    expect(seen.writes.at(-1)?.text).toBe("one two");
  });

  it.each(["RECORD_TOO_LARGE", "TURN_FENCED"] as const)("ends with %s", async (code) => {
    const { clock, seen, send, events, end, turn } = await begin();
    let tries = 0;
    seen.around = () => {
      tries += 1;
      return Promise.reject(new ThroughlineError(code, "No."));
    };
    for (let at = 0; at < 30; at++) {
      send("x");
      await clock.advance(300);
    }
    expect(tries).toBe(1);
    expect(events.filter(({ name }) => name === "partial.delayed")).toHaveLength(code === "TURN_FENCED" ? 0 : 1);
    end();
    expect((await turn).outcome).toBe("done");
  });

  it("passes the whole text through redactBeforeAppend, also over the border of two pieces", async () => {
    const { clock, seen, send } = await begin({
      redactBeforeAppend: (draft) =>
        JSON.parse(JSON.stringify(draft).replaceAll("hunter2", "[removed]")) as typeof draft,
    });
    send("It is hun");
    await clock.advance(700);
    send("ter2, keep it.");
    await clock.advance(700);
    expect(seen.writes.map(({ text }) => text)).toEqual(["It is hun", "It is [removed], keep it."]);
  });

  it("writes no half of a character, and nothing that is held back", async () => {
    const { clock, seen, send } = await begin({ holdBack: (text) => text.startsWith("#") && !text.includes("!") });
    send("# secret");
    await clock.advance(2000);
    expect(seen.writes).toEqual([]);
    send("! \ud83d");
    await clock.advance(700);
    expect(seen.writes.at(-1)?.text).toBe("# secret! ");
    send("\ude00");
    await clock.advance(700);
    expect(seen.writes.at(-1)?.text).toBe("# secret! \ud83d\ude00");
  });

  it("writes none without onDelta, and none with partials: false", async () => {
    const { clock, seen, send } = await begin({ partials: false });
    send("x".repeat(100_000));
    await clock.advance(5000);
    expect(seen.writes).toEqual([]);
    const silent = streamed();
    const other = watched(createMemoryStore());
    const fixture = createFixture({ script: silent.script, store: other.store, clock: silent.clock });
    const session = await fixture.sessions.open(key);
    void session.runTurn("Hello");
    await silent.asked;
    silent.send("x".repeat(100_000));
    await silent.clock.advance(5000);
    expect(other.seen.writes).toEqual([]);
  });
});
