import assert from "node:assert/strict";
import fc from "fast-check";
import { ThroughlineError } from "@throughline/core";
import type { SessionState, SessionStore, SourcedRecord } from "@throughline/core";
import { noteDraft, readSources, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

/** What one step of a random history does to a store; run on both stores alike. */
type Step = (store: SessionStore) => Promise<unknown>;

const name = fc.constantFrom("a", "b");
const id = fc.constantFrom("r1", "r2", "r3", "r4", "r5");
const parent = fc.option(id);
const key = fc.constantFrom("k1", "k2", undefined);

/** The steps by name, so that a failure can be read. */
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
        step: (store: SessionStore) =>
          store.append(
            refOf(session),
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
      step: (store: SessionStore) =>
        store.save(refOf(session), { sessionId: `session-${session}`, label: `l${label}` }, { ifRevision }),
    })),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(name, fc.nat(3), parent).map(([session, label, rewindTo]) => ({
      text: `patch ${session} rewind ${rewindTo}`,
      step: (store: SessionStore) =>
        store.append(refOf(session), [], {
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
      step: (store: SessionStore) => store.move(refOf(from), { kind: "rename", key: refOf(to).key }),
    })),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(name, fc.boolean()).map(([session, purge]) => ({
      text: `remove ${session} purge ${purge}`,
      step: (store: SessionStore) => store.remove(refOf(session), { purge }),
    })),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(name, fc.array(id, { minLength: 1, maxLength: 2 })).map(([session, ids]) => ({
      text: `redact ${session} ${ids.join(" ")}`,
      step: (store: SessionStore) => store.redact(refOf(session), ids, { reason: "test" }),
    })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(name, fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 4 }))
      .map(([session, fence, kind]) => ({
        text: `turn ${session} ${fence} ${kind}`,
        step: (store: SessionStore) =>
          store.append(refOf(session), [], {
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

async function outcomeOf(step: Step, store: SessionStore): Promise<unknown> {
  try {
    return withoutTimes(await step(store));
  } catch (error) {
    assert.ok(
      ThroughlineError.isInstance(error),
      `a step failed with another value than a ThroughlineError: ${String(error)}`,
    );
    return { code: error.code, outcome: error.outcome };
  }
}

/** Everything that can be seen of both sessions, but what depends on the moment and the store. */
async function viewOf(store: SessionStore): Promise<unknown> {
  const view = [];
  for (const session of ["a", "b"]) {
    const state: SessionState | null = await store.load(refOf(session));
    const records: readonly SourcedRecord[] = state === null ? [] : await readSources(store, refOf(session));
    view.push(
      state,
      records.map(({ record, ...head }) => ({ ...head, type: record.type, message: record["message"] })),
    );
  }
  const { sessions } = await store.list({ state: "any", sort: "key" });
  return withoutTimes([
    ...view,
    sessions.map(({ ref, sessionId, archived, messageCount }) => [ref.key, sessionId, archived, messageCount]),
  ]);
}

const momentary = new Set([
  "storedAtMs",
  "createdAtMs",
  "updatedAtMs",
  "crc",
  "bytes",
  "source",
  "archiveId",
  "durability",
  "redactedAtMs",
]);

function withoutTimes(value: unknown): unknown {
  return value === undefined
    ? null
    : JSON.parse(JSON.stringify(value, (field, part: unknown) => (momentary.has(field) ? undefined : part)));
}

export const modelCases: readonly ConformanceCase[] = [
  {
    id: "model/random-histories",
    demand: "after every step of a random history the store answers as the model does",
    needs: ["model"],
    async run({ store, model: openModel }) {
      const model = openModel();
      let runs = 0;
      const property = fc.asyncProperty(fc.array(steps, { minLength: 5, maxLength: 30 }), async (history) => {
        // One store serves every history: each has a namespace of its own.
        const namespace = `run${++runs}`;
        const [one, other] = [scoped(store, namespace), scoped(model, namespace)];
        for (const each of ["a", "b"])
          await Promise.all(
            [one, other].map((side) => side.save(refOf(each), { sessionId: `session-${each}` }, { ifRevision: null })),
          );
        for (const { text, step } of history) {
          assert.deepEqual(
            await outcomeOf(step, one),
            await outcomeOf(step, other),
            `the answers to "${text}" differ in ${history.map((each) => each.text).join("; ")}`,
          );
          assert.deepEqual(
            await viewOf(one),
            await viewOf(other),
            `the stores differ after "${text}" in ${history.map((each) => each.text).join("; ")}`,
          );
        }
      });
      // A failure prints the seed and the shortest history.
      await fc.assert(property, { numRuns: 40, interruptAfterTimeLimit: 20_000 });
    },
  },
];

/** The store as seen from one namespace. */
function scoped(store: SessionStore, namespace: string): SessionStore {
  return {
    capabilities: store.capabilities,
    append: (ref, drafts, options) => store.append({ ...ref, namespace }, drafts, options),
    read: (ref, options) => store.read({ ...ref, namespace }, options),
    load: (ref, options) => store.load({ ...ref, namespace }, options),
    save: (ref, entry, options) => store.save({ ...ref, namespace }, entry, options),
    list: (query) => store.list({ ...query, namespace }),
    move: (ref, action) => store.move({ ...ref, namespace }, action),
    remove: (ref, options) => store.remove({ ...ref, namespace }, options),
    redact: (ref, ids, options) => store.redact({ ...ref, namespace }, ids, options),
    close: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
