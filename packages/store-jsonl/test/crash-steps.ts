import { sessionRef, type AppendDraft, type PartialReply, type SessionRef, type SessionStore } from "@throughline/core";
import type { Step } from "./crash-explorer.ts";
import { importedHeader } from "./session-fixture.ts";

const main = sessionRef({ key: "agent:main:main" });
const other = sessionRef({ key: "agent:main:other" });
const forked = sessionRef({ key: "agent:main:forked" });
const renamed = sessionRef({ key: "agent:main:renamed" });

function draft(text: string): AppendDraft {
  return { id: `d-${text}`, type: "message", message: { role: "user", content: text } };
}

async function archivedOf(store: SessionStore, key: string): Promise<SessionRef> {
  const { sessions } = await store.list({ state: "archived" });
  const found = sessions.find(({ ref }) => ref.key === key);
  if (found === undefined) throw new Error(`no archived session ${key}`);
  return found.ref;
}

const hasty = { ifRevision: null, durability: "process" } as const;

/** Sessions that are made with less than what is acknowledged in them later. */
export function lifeOfHastySessions(): readonly Step[] {
  const imported = sessionRef({ key: "agent:main:imported" });
  return [
    {
      name: "save at process durability",
      files: ["s1", "entries"],
      run: (store) => store.save(main, { sessionId: "s1", label: "one", sendPolicy: "deny" }, hasty),
    },
    { name: "append at disk", files: ["s1", "entries"], run: (store) => store.append(main, [draft("hello")]) },
    { name: "append again", files: ["s1"], run: (store) => store.append(main, [draft("two")], { entry: { x: 1 } }) },
    {
      name: "save another at process durability",
      files: ["s2", "entries"],
      run: (store) => store.save(other, { sessionId: "s2", label: "two" }, hasty),
    },
    {
      name: "append without records at disk",
      files: ["s2", "entries"],
      run: (store) => store.append(other, [], { entry: { label: "zwei" } }),
    },
    { name: "append after it", files: ["s2"], run: (store) => store.append(other, [draft("o1")]) },
    {
      name: "reset at process durability",
      files: ["s1", "s3", "entries"],
      run: (store) => store.save(main, { sessionId: "s3", label: "three" }, { ...hasty, ifRevision: 2 }),
    },
    {
      name: "append at process durability after the reset",
      files: ["s3"],
      isVolatile: true,
      run: (store) => store.append(main, [draft("p")], { durability: "process" }),
    },
    { name: "append at disk after it", files: ["s3", "entries"], run: (store) => store.append(main, [draft("q")]) },
    {
      name: "fork",
      files: ["entries", "f1"],
      run: async (store) => {
        await store.fork?.fork(main, forked, { sessionId: "f1" });
      },
    },
    { name: "append to the fork", files: ["f1"], run: (store) => store.append(forked, [draft("own")]) },
    {
      name: "save at process durability to import",
      files: ["s4", "entries"],
      run: (store) => store.save(imported, { sessionId: "s4", label: "from elsewhere" }, hasty),
    },
    {
      name: "import the records at disk",
      files: ["s4", "entries"],
      run: (store) => store.append(imported, [importedHeader(), draft("m")]),
    },
    {
      name: "save a third at process durability",
      files: ["s5", "entries"],
      run: (store) => store.save(renamed, { sessionId: "s5" }, hasty),
    },
    { name: "archive it", files: ["s5", "entries"], run: (store) => store.move(renamed, { kind: "archive" }) },
    { name: "close", files: [], run: (store) => store.close() },
  ];
}

/** Everything a session goes through, a step each. */
export function lifeOfSessions(): readonly Step[] {
  return [
    {
      name: "save",
      files: ["s1", "entries"],
      run: (store) => store.save(main, { sessionId: "s1", label: "one" }, { ifRevision: null }),
    },
    { name: "append", files: ["s1"], run: (store) => store.append(main, [draft("hello")]) },
    {
      name: "append a turn with an entry patch",
      files: ["s1"],
      run: (store) =>
        store.append(main, ["a", "b", "c", "d"].map(draft), { entry: { totalTokens: 5 }, idempotencyKey: "turn" }),
    },
    {
      name: "append with a window",
      files: ["s1"],
      run: (store) => store.append(main, [draft("w")], { windowFromSeq: 3 }),
    },
    {
      name: "append at once",
      files: ["s1"],
      isParallel: true,
      run: (store) => Promise.all(["x", "y", "z"].map((text) => store.append(main, [draft(text)]))),
    },
    {
      name: "append without records",
      files: ["entries"],
      run: (store) => store.append(main, [], { entry: { sendPolicy: "deny" } }),
    },
    {
      name: "append at process durability",
      files: ["s1"],
      isVolatile: true,
      run: (store) => store.append(main, [draft("p")], { durability: "process" }),
    },
    { name: "append after it", files: ["s1"], run: (store) => store.append(main, [draft("q")]) },
    { name: "rewind", files: ["s1"], run: (store) => store.append(main, [draft("v")], { rewindTo: "r" }) },
    {
      name: "save another",
      files: ["s2", "entries"],
      run: (store) => store.save(other, { sessionId: "s2" }, { ifRevision: null }),
    },
    { name: "append to another", files: ["s2"], run: (store) => store.append(other, [draft("o1"), draft("o2")]) },
    {
      name: "save an entry",
      files: ["entries"],
      run: async (store) => {
        const state = await store.load(other);
        await store.save(other, { sessionId: "s2", label: "named" }, { ifRevision: state?.revision ?? null });
      },
    },
    { name: "rename", files: ["entries"], run: (store) => store.move(other, { kind: "rename", key: renamed.key }) },
    { name: "archive", files: ["entries"], run: (store) => store.move(renamed, { kind: "archive" }) },
    {
      name: "restore",
      files: ["entries"],
      run: async (store) => store.move(await archivedOf(store, renamed.key), { kind: "restore" }),
    },
    {
      name: "redact",
      files: ["s2"],
      run: async (store) => {
        const ids: string[] = [];
        for await (const { records } of store.read(renamed, { limit: 1 })) ids.push(...records.map(({ id }) => id));
        await store.redact(renamed, ids, { reason: "asked" });
      },
    },
    {
      name: "reset",
      files: ["entries", "s3"],
      run: async (store) => {
        const state = await store.load(main);
        await store.save(main, { sessionId: "s3" }, { ifRevision: state?.revision ?? null });
      },
    },
    { name: "append after the reset", files: ["s3"], run: (store) => store.append(main, [draft("fresh")]) },
    { name: "purge", files: ["entries", "s2"], run: (store) => store.remove(renamed, { purge: true }) },
    {
      name: "append to be shared",
      files: ["s3"],
      run: (store) => store.append(main, ["shared", "left"].map(draft), { entry: { label: "origin" } }),
    },
    {
      name: "fork",
      files: ["entries", "f1"],
      run: async (store) => {
        await store.fork?.fork(main, forked, { sessionId: "f1", atSeq: 2 });
      },
    },
    { name: "append to the fork", files: ["f1"], run: (store) => store.append(forked, [draft("own")]) },
    {
      name: "import",
      files: ["entries", "s4"],
      run: async (store) => {
        const imported = sessionRef({ key: "agent:main:imported" });
        await store.save(imported, { sessionId: "s4" }, { ifRevision: null });
      },
    },
    {
      name: "import the records",
      files: ["s4"],
      run: (store) => {
        const header = { type: "session", version: 3, id: "old", timestamp: "2026-01-02T03:04:05.006Z", cwd: "/x" };
        const message = {
          type: "message",
          id: "m1",
          parentId: null,
          timestamp: "2026-01-02T03:04:05.006Z",
          message: { role: "user", content: "imported" },
        };
        return store.append(sessionRef({ key: "agent:main:imported" }), [
          {
            source: JSON.stringify(header),
            record: { ...header, id: "header:old", parentId: null, sessionId: "old" },
          },
          { source: JSON.stringify(message) },
        ] as never);
      },
    },
    { name: "close", files: [], run: (store) => store.close() },
  ];
}

/** The partial of a turn of session `p1`. */
function partial(fence: number, text: string, fields: Partial<PartialReply> = {}): PartialReply {
  const model = { provider: "anthropic", api: null, model: null };
  const place = { sessionId: "p1", turnId: `turn-${fence}`, fence, step: 1, attempt: 0, afterSeq: 1 };
  return { v: 1, ...place, ...model, text, updatedMs: 1_767_323_045_006 + text.length, ...fields };
}

/** Open replies: begun, continued, begun anew, answered, and taken away with what their session goes through. */
export function lifeOfPartials(): readonly Step[] {
  // Run out, so that whoever opens the store after a crash may append to the session.
  const lease = { owner: "kit", leaseUntilMs: 1 } as const;
  const open = (fence: number): Step => ({
    name: `open turn ${fence}`,
    files: ["p1"],
    run: (store) =>
      store.append(main, [draft(`q${fence}`)], { turn: { action: "open", turnId: `turn-${fence}`, fence, ...lease } }),
  });
  const write = (name: string, given: PartialReply): Step => ({
    name,
    files: [],
    run: async (store) => store.partials?.write(main, given),
  });
  return [
    {
      name: "save",
      files: ["p1", "entries"],
      run: (store) => store.save(main, { sessionId: "p1" }, { ifRevision: null }),
    },
    open(1),
    write("begin a partial", partial(1, "one")),
    write("continue it", partial(1, "one two")),
    write("continue it with odd characters", partial(1, "one two \u{1f600} \u2028\n three")),
    write("begin the next step", partial(1, "four", { step: 2, afterSeq: 2 })),
    write("continue that", partial(1, "four five", { step: 2, afterSeq: 2 })),
    {
      name: "append the reply and close",
      files: ["p1"],
      run: (store) => store.append(main, [draft("answer")], { turn: { action: "close", fence: 1 } }),
    },
    { name: "remove it", files: [], isVolatile: true, run: async (store) => store.partials?.remove(main, 1) },
    open(2),
    write("begin a partial of the next turn", partial(2, "six")),
    write("continue that one", partial(2, "six seven")),
    {
      name: "redact",
      files: ["p1"],
      losesPartials: true,
      run: (store) => store.redact(main, ["d-q1"], { reason: "asked" }),
    },
    write("begin it anew", partial(2, "eight")),
    {
      name: "archive",
      files: ["entries"],
      run: (store) => store.move(main, { kind: "archive" }),
    },
    {
      name: "restore",
      files: ["entries"],
      run: async (store) => store.move(await archivedOf(store, main.key), { kind: "restore" }),
    },
    write("begin it once more", partial(2, "nine")),
    { name: "purge", files: ["entries", "p1"], run: (store) => store.remove(main, { purge: true }) },
    { name: "close", files: [], run: (store) => store.close() },
  ];
}
