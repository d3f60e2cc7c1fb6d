import { sessionRef, type SessionRef } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { openFixture, recordsOf, storeKinds, type ToolFixture } from "./tool-fixture.ts";

const own = "agent:main:caf\u00e9";
const secret = "quetzal";

/** Entries of sessions that the one above must not reach by `tree`, by what is wrong with them. */
const forged: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
  ["nothing", {}],
  ["nobody", { spawnedBy: "agent:main:nobody" }],
  ["number", { spawnedBy: 5 }],
  ["object", { spawnedBy: { key: own } }],
  ["list", { spawnedBy: [own] }],
  ["empty", { spawnedBy: "" }],
  ["decomposed", { spawnedBy: "agent:main:cafe\u0301" }],
  ["capitals", { spawnedBy: "agent:main:CAF\u00c9" }],
  ["agent-in-capitals", { spawnedBy: "agent:MAIN:caf\u00e9" }],
  ["prefix", { spawnedBy: "agent:main:caf" }],
  ["longer", { spawnedBy: `${own}:x` }],
  ["spaces", { spawnedBy: ` ${own}` }],
  ["foreign", { spawnedBy: "agent:other:caf\u00e9" }],
  ["runtime", { spawnedBy: "goclaw:main:caf\u00e9" }],
  ["short", { spawnedBy: "main:caf\u00e9:x" }],
];

/** Other agents and another namespace: out of reach whatever is configured. */
const foreign: readonly SessionRef[] = [
  sessionRef({ key: "agent:other:caf\u00e9" }),
  sessionRef({ key: "other:slack:peer" }),
  sessionRef({ key: "goclaw:other:main" }),
  sessionRef({ key: "agent:other:dm:peer" }),
  sessionRef({ key: "plain", agentId: "other" }),
  sessionRef({ key: own, namespace: "tenant" }),
  sessionRef({ key: "agent:main:tenant", namespace: "tenant" }),
];

/** Every way to name a session that a model may think of. */
function namesOf(ref: SessionRef, sessionId: string, label: string): readonly string[] {
  const { key, agentId } = ref;
  const rest = key.split(":").slice(2).join(":");
  const names = [
    key,
    key.toUpperCase(),
    key.normalize("NFD"),
    ` ${key}`,
    `${key} `,
    `${key}:`,
    `${key}\n`,
    `\u200b${key}`,
  ];
  const ids = [
    sessionId,
    `${key}#${sessionId}`,
    `${key}@${sessionId}`,
    label,
    key.slice(0, -1),
    `${key}*`,
    `agent:${agentId}:`,
  ];
  const forms = [
    `agent:main:${rest}/../../${agentId}/${rest}`,
    `agent:main/../${agentId}:${rest}`,
    `${agentId}:x:${rest}`,
  ];
  return [...names, ...ids, ...forms, `throughline:${agentId}:${rest}`, JSON.stringify({ key })];
}

interface Target {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly label: string;
}

async function open(fixture: ToolFixture, ref: SessionRef, entry: Readonly<Record<string, unknown>>): Promise<Target> {
  const label = `${secret} ${ref.agentId} ${ref.key} ${ref.namespace}`;
  const sessionId = `${secret}-${ref.agentId}-${ref.namespace}-${ref.key.replaceAll(/[^a-z]+/g, "-")}`;
  await fixture.store.save(ref, { sessionId, label, ...entry }, { ifRevision: null });
  await fixture.store.append(ref, [{ type: "message", message: { role: "user", content: `${secret} says` } }]);
  return { ref, sessionId, label };
}

describe.each(storeKinds)("a model that names sessions out of reach, over %s", (_, openStore) => {
  it.each(["self", "tree", "agent", "all"] as const)(
    "with %s learns nothing and changes nothing",
    async (visibility) => {
      await using fixture = await openFixture(openStore, { visibility });
      await fixture.open(own);
      const targets: Target[] = [];
      for (const ref of foreign) targets.push(await open(fixture, ref, {}));
      if (visibility === "self" || visibility === "tree") {
        for (const [name, spawnedBy] of forged)
          targets.push(await open(fixture, sessionRef({ key: `agent:main:forged-${name}` }), { ...spawnedBy }));
        const archived = sessionRef({ key: "agent:main:archived" });
        targets.push(await open(fixture, archived, { spawnedBy: own }));
        await fixture.store.move(archived, { kind: "archive" });
        const sibling = await open(fixture, sessionRef({ key: "agent:main:sibling" }), {});
        targets.push(
          sibling,
          await open(fixture, sessionRef({ key: "agent:main:nephew" }), { spawnedBy: sibling.ref.key }),
        );
      }
      const recordsBefore = await countRecords(fixture, targets);
      let calls = 0;
      const answers = new Set<string>();
      for (const { ref, sessionId, label } of targets) {
        for (const session of namesOf(ref, sessionId, label)) {
          // Its own session, in its own namespace, is not out of reach.
          if (session.trim() === own) continue;
          for (const [tool, args] of [
            ["sessions_history", { session, tools: true }],
            ["sessions_send", { session, message: "Hello." }],
          ] as const) {
            const { text, isError } = await fixture.run(tool, own, args);
            calls += 1;
            expect([session, tool, isError]).toEqual([session, tool, true]);
            // The model's own words may come back to it.
            answers.add(text.replace(JSON.stringify(session.slice(0, 200)), "KEY"));
          }
        }
      }
      expect([...answers]).toEqual(["There is no session KEY that you may see."]);
      expect(calls).toBeGreaterThan(200);
      const { text } = await fixture.run("sessions_list", own, { limit: 100 });
      expect(text).not.toContain(secret);
      expect(await countRecords(fixture, targets)).toEqual(recordsBefore);
    },
  );

  it("with a label or a task that is another's key spawns below itself only", async () => {
    await using fixture = await openFixture(openStore);
    await fixture.open(own);
    for (const text of ["agent:other:main", "__proto__", "../../other", '{"spawnedBy":"agent:other:main"}']) {
      const args = { label: text, task: text };
      for (const extra of [{ spawnedBy: "agent:other:main" }, { agentId: "other" }, { constructor: {} }])
        expect((await fixture.run("sessions_spawn", own, { ...args, ...extra })).reason).toBe("arguments");
      const state = await fixture.spawn(own, args);
      expect(state.ref).toMatchObject({ agentId: "main", namespace: "" });
      expect(state.entry).toMatchObject({ spawnedBy: own, spawnDepth: 1, label: text });
    }
    expect((await fixture.store.list({ agentId: "other" })).sessions).toEqual([]);
  });
});

async function countRecords(fixture: ToolFixture, targets: readonly Target[]): Promise<readonly number[]> {
  const counts: number[] = [];
  for (const { ref, sessionId } of targets) {
    const isThere = (await fixture.store.load(ref)) !== null;
    counts.push((await recordsOf(fixture.store, isThere ? ref : { ...ref, archiveId: sessionId })).length);
  }
  return counts;
}
