import type { MoveAction, SessionEntry } from "@throughline/core";
import { assertIdsFree } from "../src/id-claims.ts";
import { planClaims, planPurge } from "../src/namespace-fields.ts";
import { planMove, planRedaction, planRemove, planSave } from "@throughline/store-kit/internal";
import { type SessionFrame, sessionState } from "../src/session-frame.ts";
import { describe, expect, it } from "vitest";

const ref = { namespace: "", agentId: "main", key: "agent:main:a" };
const entry: SessionEntry = { sessionId: "s", label: "x" };
const begun = planSave(null, ref, entry, { ifRevision: null, nowMs: 10 });
const archived: SessionFrame = { ...begun.frame, ref: { ...ref, archiveId: "s" } };

function coded(code: string): unknown {
  return expect.objectContaining({ code, outcome: "not-applied" });
}

describe("planSave", () => {
  it("begins a session, empty", () => {
    expect(begun).toEqual({
      frame: {
        ref,
        sessionId: "s",
        revision: 1,
        head: { sessionId: "s", lastSeq: 0, headId: null, windowSeq: null, fence: 0, turn: null },
        createdAtMs: 10,
        updatedAtMs: 10,
      },
      entry,
      isNew: true,
      archived: null,
      events: [{ name: "session-created", ref, sessionId: "s" }],
    });
    const dated = planSave(null, ref, { ...entry, updatedAt: 3 }, { ifRevision: null, nowMs: 10 });
    expect([dated.frame.createdAtMs, dated.frame.updatedAtMs]).toEqual([10, 3]);
  });

  it("writes the next revision of the same session", () => {
    const next = planSave(begun.frame, ref, { ...entry, label: "y" }, { ifRevision: 1, nowMs: 20 });
    expect(next).toMatchObject({ isNew: false, archived: null, events: [], entry: { label: "y" } });
    expect(next.frame).toEqual({ ...begun.frame, revision: 2 });
  });

  it("archives the session whose key another one takes, and goes on counting revisions", () => {
    const reset = planSave(begun.frame, ref, { sessionId: "t" }, { ifRevision: 1, nowMs: 20 });
    expect([reset.isNew, reset.archived, reset.frame.revision]).toEqual([true, archived, 2]);
    expect(reset.events.map(({ name }) => name)).toEqual(["session-archived", "session-created"]);
  });

  it("refuses another revision, an archived session and what is no entry", () => {
    const at = (ifRevision: number | null) => ({ ifRevision, nowMs: 20 });
    expect(() => planSave(begun.frame, ref, entry, at(2))).toThrow(coded("REVISION_CONFLICT"));
    expect(() => planSave(begun.frame, ref, entry, at(null))).toThrow(coded("REVISION_CONFLICT"));
    expect(() => planSave(null, ref, entry, at(1))).toThrow(coded("REVISION_CONFLICT"));
    expect(() => planSave(archived, archived.ref, entry, at(1))).toThrow(coded("SESSION_ARCHIVED"));
    expect(() => planSave(null, archived.ref, entry, at(null))).toThrow(coded("SESSION_NOT_FOUND"));
    expect(() => planSave(null, ref, {} as SessionEntry, at(null))).toThrow(coded("INPUT_INVALID"));
  });
});

describe("planMove", () => {
  const nobody = () => undefined;

  it("renames inside the agent, also to the key the session has", () => {
    const renamed = planMove(begun.frame, { kind: "rename", key: "agent:main:b" }, nobody);
    expect(renamed).toEqual({ frame: { ...begun.frame, ref: { ...ref, key: "agent:main:b" } }, events: [] });
    expect(planMove(begun.frame, { kind: "rename", key: ref.key }, () => "s").frame).toEqual(begun.frame);
    const rename = (key: string, holder?: string) => () => planMove(begun.frame, { kind: "rename", key }, () => holder);
    expect(rename("agent:main:b", "t")).toThrow(coded("SESSION_EXISTS"));
    expect(rename("agent:other:b")).toThrow(coded("KEY_AGENT_MISMATCH"));
  });

  it("archives and restores", () => {
    const archive = planMove(begun.frame, { kind: "archive" }, nobody);
    expect(archive).toEqual({
      frame: archived,
      events: [{ name: "session-archived", ref: archived.ref, sessionId: "s" }],
    });
    expect(planMove(archived, { kind: "restore" }, nobody).frame).toEqual(begun.frame);
    expect(() => planMove(archived, { kind: "restore" }, () => "t")).toThrow(coded("SESSION_EXISTS"));
    expect(() => planMove(begun.frame, { kind: "restore" }, () => "s")).toThrow(coded("SESSION_EXISTS"));
    expect(() => planMove(archived, { kind: "archive" }, nobody)).toThrow(coded("SESSION_ARCHIVED"));
    expect(() => planMove(archived, { kind: "rename", key: "b" }, nobody)).toThrow(coded("SESSION_ARCHIVED"));
  });

  it("refuses what is no move, and does not restore for it", () => {
    for (const kind of ["delete", "", null])
      expect(() => planMove(archived, { kind } as MoveAction, () => undefined)).toThrow(coded("INPUT_INVALID"));
  });

  it("removes by archiving once, and purges only when told", () => {
    expect(planRemove(begun.frame, {}).frame).toEqual(archived);
    expect(planRemove(archived, {})).toEqual({ frame: archived, events: [] });
    expect(planRemove(archived, { purge: true })).toEqual({
      frame: null,
      events: [{ name: "session-removed", ref: archived.ref, sessionId: "s" }],
    });
  });
});

describe("planRedaction", () => {
  const seqs = new Map([
    ["r1", 1],
    ["r2", 2],
  ]);

  it("names every record once, in order, or refuses them all", () => {
    const plan = planRedaction(begun.frame, ["r2", "r1", "r2"], (id) => seqs.get(id));
    expect(plan).toEqual({ seqs: [1, 2], events: [{ name: "records-redacted", ref, seqs: [1, 2] }] });
    expect(() => planRedaction(begun.frame, ["r1", "r3"], (id) => seqs.get(id))).toThrow(coded("RECORD_NOT_FOUND"));
  });
});

describe("ids of sessions", () => {
  const owner = (agentId: string, sessionId: string, namespace = "") => ({
    ref: { ...ref, namespace, agentId },
    sessionId,
  });

  it("are claimed whole or not at all, and only in one spelling", async () => {
    const fields = new Map<string, string | null>();
    const nameOf = (namespace: string, name: string): string => `${namespace} ${name}`;
    const read = (namespace: string) => (names: readonly string[]) =>
      names.map((name) => fields.get(nameOf(namespace, name)) ?? null);
    const claim = async (one: ReturnType<typeof owner>): Promise<void> => {
      const { namespace } = one.ref;
      const plan = await planClaims(one, read(namespace));
      for (const [name, value] of plan.fields) fields.set(nameOf(namespace, name), value);
    };
    await claim(owner("main", "one"));
    await expect(claim(owner("main", "one"))).rejects.toThrow(coded("SESSION_EXISTS"));
    await expect(claim(owner("main", "ONE"))).rejects.toThrow(coded("ID_CASE_COLLISION"));
    await expect(claim(owner("Main", "two"))).rejects.toThrow(coded("ID_CASE_COLLISION"));
    await expect(claim(owner("main", "two"))).resolves.toBeUndefined();
    await expect(claim(owner("other", "ONE"))).resolves.toBeUndefined();
    await expect(claim(owner("MAIN", "one", "tenant"))).resolves.toBeUndefined();
    const freed = await planPurge({ ...owner("main", "one"), sourceDigest: null }, 0, read(""));
    for (const [name, value] of freed.fields) fields.set(nameOf("", name), value);
    await expect(claim(owner("main", "ONE"))).resolves.toBeUndefined();
  });

  it("are checked before they are compared", () => {
    const nobody = { agentId: undefined, sessionId: undefined };
    expect(() => assertIdsFree(owner("main", "../x"), nobody)).toThrow(coded("SESSION_ID_INVALID"));
    expect(() => assertIdsFree(owner("a/b", "x"), nobody)).toThrow(coded("AGENT_ID_INVALID"));
    expect(() => assertIdsFree(owner("main", "x", "a b"), nobody)).toThrow(coded("NAMESPACE_INVALID"));
    expect(() => assertIdsFree(owner("main", "x"), { agentId: "main", sessionId: undefined })).not.toThrow();
  });
});

describe("sessionState", () => {
  it("shares nothing of what is kept, and says whether the session is archived", () => {
    const state = sessionState(archived, entry, 3);
    expect(state).toEqual({ ...archived, archived: true, entry, messageCount: 3 });
    expect(state.ref).not.toBe(archived.ref);
    expect(state.head).not.toBe(archived.head);
    expect(sessionState(begun.frame, entry, 0).archived).toBe(false);
  });
});
