import assert from "node:assert/strict";
import { inspect, isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import {
  type AppendDraft,
  type AppendOptions,
  type MoveAction,
  type SessionEntry,
  type SessionRecord,
  type SessionRef,
  type SessionState,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import { noteDraft, readSources, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { appendToModel } from "../model/append-to-model.ts";
import {
  listInModel,
  moveInModel,
  readInModel,
  redactInModel,
  removeInModel,
  saveInModel,
} from "../model/change-model.ts";
import { createSessionModel, findSession, ModelRefusal, stateOf, type SessionModel } from "../model/session-model.ts";

/** Provides the operations that the steps run on both a store and the model. */
interface Played {
  append(ref: SessionRef, drafts: readonly AppendDraft[], options: AppendOptions): unknown;
  save(ref: SessionRef, entry: SessionEntry, options: { readonly ifRevision: number | null }): unknown;
  move(ref: SessionRef, action: MoveAction): unknown;
  remove(ref: SessionRef, options: { readonly purge: boolean }): unknown;
  redact(ref: SessionRef, ids: readonly string[], options: { readonly reason: string }): unknown;
}

/** Runs one step of a random history. It addresses sessions by their short names. */
type Step = (played: Played, at: Addresses) => unknown;

type Addresses = (name: string) => SessionRef;

const name = fc.constantFrom("a", "b");
const id = fc.constantFrom("r1", "r2", "r3", "r4", "r5");
const parent = fc.option(id);
const key = fc.constantFrom("k1", "k2", undefined);

/** Each step has a text, so that a failing history can be read. */
const steps: fc.Arbitrary<{ readonly text: string; readonly step: Step }> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(
        name,
        fc.array(fc.tuple(id, fc.boolean()), { minLength: 1, maxLength: 3 }),
        key,
        fc.option(parent, { nil: undefined }),
      )
      .map(([session, drafts, idempotencyKey, head]) => ({
        text: `append ${session} ${drafts.map(([each, side]) => (side ? `(${each})` : each)).join(" ")} key ${idempotencyKey} expect ${head}`,
        step: (played: Played, at: Addresses) =>
          played.append(
            at(session),
            drafts.map(([each, side]) => ({
              ...(side ? noteDraft(each) : userDraft(each)),
              id: each,
              timestamp: "2026-01-02T03:04:05.006Z",
            })),
            {
              ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
              ...(head === undefined ? {} : { expect: { head } }),
            },
          ),
      })),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(name, fc.option(fc.nat(3)), fc.nat(3)).map(([session, ifRevision, label]) => ({
      text: `save ${session} over ${ifRevision}`,
      step: (played: Played, at: Addresses) =>
        played.save(at(session), { sessionId: `session-${session}`, label: `l${label}` }, { ifRevision }),
    })),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(name, fc.nat(3), parent).map(([session, label, rewindTo]) => ({
      text: `patch ${session} rewind ${rewindTo}`,
      step: (played: Played, at: Addresses) =>
        played.append(at(session), [], {
          entry: { label: label === 0 ? undefined : `p${label}` },
          rewindTo,
          windowFromSeq: label + 1,
        }),
    })),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(name, name).map(([from, to]) => ({
      text: `rename ${from} to ${to}`,
      step: (played: Played, at: Addresses) => played.move(at(from), { kind: "rename", key: at(to).key }),
    })),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(name, fc.boolean()).map(([session, purge]) => ({
      text: `remove ${session} purge ${purge}`,
      step: (played: Played, at: Addresses) => played.remove(at(session), { purge }),
    })),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(name, fc.array(id, { minLength: 1, maxLength: 2 })).map(([session, ids]) => ({
      text: `redact ${session} ${ids.join(" ")}`,
      step: (played: Played, at: Addresses) => played.redact(at(session), ids, { reason: "test" }),
    })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(name, fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 4 }))
      .map(([session, fence, kind]) => ({
        text: `turn ${session} ${fence} ${kind}`,
        step: (played: Played, at: Addresses) =>
          played.append(at(session), [], {
            turn:
              kind < 3
                ? {
                    action: "open",
                    turnId: `t${fence}`,
                    owner: "o",
                    leaseUntilMs: kind === 1 ? 1 : 9_999_999_999_999,
                    fence,
                  }
                : { action: kind === 3 ? "within" : "close", fence },
          }),
      })),
  },
);

/** Returns the store's answer, or its error in a form that can be compared. */
async function answerOf(step: Step, store: SessionStore, at: Addresses): Promise<unknown> {
  try {
    return withoutTimes(await step(store, at));
  } catch (error) {
    assert.ok(
      ThroughlineError.isInstance(error),
      `a step failed with another value than a ThroughlineError: ${String(error)}`,
    );
    return { code: error.code, outcome: error.outcome };
  }
}

/** Returns every answer that the contract allows, because several errors may apply. */
function rightAnswers(step: Step, model: SessionModel, at: Addresses): readonly unknown[] {
  try {
    return [withoutTimes(step(playedOn(model), at))];
  } catch (error) {
    if (!(error instanceof ModelRefusal)) throw error;
    return error.codes.map((code) => ({ code, outcome: "not-applied" }));
  }
}

function playedOn(model: SessionModel): Played {
  return {
    append: (ref, drafts, options) => appendToModel(model, ref, drafts, options),
    save: (ref, entry, { ifRevision }) => stateOf(saveInModel(model, ref, entry, ifRevision)),
    move: (ref, action) => stateOf(moveInModel(model, ref, action)),
    remove: (ref, { purge }) => removeInModel(model, ref, purge),
    redact: (ref, ids, { reason }) => ({ seqs: redactInModel(model, ref, ids, reason) }),
  };
}

/** Returns all that is visible of both sessions, without fields that depend on time or on the store. */
async function seenInStore(store: SessionStore, refs: readonly SessionRef[]): Promise<unknown> {
  const sessions = [];
  for (const ref of refs) {
    const state = await store.load(ref);
    const records = state === null ? [] : await readSources(store, ref);
    sessions.push([state, records.map(({ record, seq, side, tsMs }) => seenOf(seq, record, side, tsMs))]);
  }
  const { namespace } = refs[0] as SessionRef;
  const list = await store.list({ namespace, state: "any", sort: "key" });
  return withoutTimes([sessions, list.sessions.map(listed)]);
}

/** Returns the same for the model. */
function seenInModel(model: SessionModel, refs: readonly SessionRef[]): unknown {
  const sessions = refs.map((ref) => {
    const session = findSession(model, ref);
    const records = session === undefined ? [] : readInModel(model, ref, {});
    const seen = records.map(([seq, { record, side, tsMs }]) => seenOf(seq, record, side, tsMs));
    return [session === undefined ? null : stateOf(session), seen];
  });
  return withoutTimes([sessions, listInModel(model, { state: "any", sort: "key" }).map(stateOf).map(listed)]);
}

function seenOf(seq: number, record: SessionRecord, side: boolean, tsMs: number | null): unknown {
  const { id, parentId, type } = record;
  return { seq, id, parentId, type, side, tsMs, message: record["message"] };
}

function listed({ ref, sessionId, archived, messageCount }: SessionState): unknown {
  return [ref.key, sessionId, archived, messageCount];
}

/**
 * The model's clock is fixed. Only the leases of turns depend on it, and they are either long over or endless. All
 * other times are removed before a comparison.
 */
const nowMs = Date.parse("2026-01-02T03:04:05.006Z");

/** These fields depend on time or on the store. */
const momentary = new Set([
  "storedAtMs",
  "createdAtMs",
  "updatedAtMs",
  "archiveId",
  "durability",
  "warnings",
  "redactedAtMs",
]);

function withoutTimes(value: unknown): unknown {
  return value === undefined
    ? null
    : JSON.parse(JSON.stringify(value, (field, part: unknown) => (momentary.has(field) ? undefined : part)));
}

/** Prints a history as statements on an empty store, with what the contract allows as the answer to each. */
function programOf(history: readonly { readonly step: Step }[]): string {
  const at: Addresses = (name) => refOf(name);
  const model = createSessionModel(nowMs);
  const lines = [...bothSaved, ...history].flatMap(({ step }) => {
    const calls: string[] = [];
    const print = (method: keyof Played) => {
      return (...given: readonly unknown[]): void =>
        void calls.push(`store.${method}(${given.map(literal).join(", ")})`);
    };
    const [append, save, move] = [print("append"), print("save"), print("move")];
    step({ append, save, move, remove: print("remove"), redact: print("redact") }, at);
    const right = rightAnswers(step, model, at).map(literal).join(" or ");
    return calls.map((call) => `console.log(await ${call}.catch(({ code }) => code)); // ${right}`);
  });
  return lines.join("\n");
}

function literal(value: unknown): string {
  return inspect(value, { depth: null, breakLength: Infinity, compact: true, maxStringLength: null });
}

/** Every history begins with both sessions. */
const bothSaved = ["a", "b"].map((session) => ({
  text: `save ${session}`,
  step: (played: Played, at: Addresses) =>
    played.save(at(session), { sessionId: `session-${session}` }, { ifRevision: null }),
}));

export const modelCases: readonly ConformanceCase[] = [
  {
    id: "model/random-histories",
    demand: "after every step of a random history the store answers as the model of the contract does",
    async run({ store }) {
      let runs = 0;
      const property = fc.asyncProperty(fc.array(steps, { minLength: 5, maxLength: 30 }), async (history) => {
        // All histories share one store, so each uses its own namespace.
        const namespace = `run${++runs}`;
        const at: Addresses = (name) => ({ ...refOf(name), namespace });
        const both = ["a", "b"].map(at);
        const model = createSessionModel(nowMs);
        const play = async ({ text, step }: { readonly text: string; readonly step: Step }): Promise<void> => {
          const whole = history.map((each) => each.text).join("; ");
          const answer = await answerOf(step, store, at);
          const right = rightAnswers(step, model, at);
          const isRight = right.some((one) => isDeepStrictEqual(answer, one));
          if (!isRight) assert.deepEqual(answer, right[0], `the answer to "${text}" is wrong in ${whole}`);
          const seen = await seenInStore(store, both);
          assert.deepEqual(seen, seenInModel(model, both), `the store is wrong after "${text}" in ${whole}`);
        };
        for (const each of [...bothSaved, ...history]) await play(each);
      });
      const found = await fc.check(property, { numRuns: 40, interruptAfterTimeLimit: 20_000 });
      if (!found.failed) return;
      const { counterexample, errorInstance: cause, seed, counterexamplePath } = found;
      const program = counterexample === null ? "" : programOf(counterexample[0]);
      const told = cause instanceof Error ? cause.message : String(cause);
      const place = `seed ${seed}, path ${JSON.stringify(counterexamplePath)}`;
      assert.fail(`${told}\n\nThis program repeats it on an empty store (${place}):\n\n${program}\n`);
    },
  },
];
