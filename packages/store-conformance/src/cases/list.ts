import assert from "node:assert/strict";
import type { ListQuery, SessionEvent, SessionState, SessionStore } from "@throughline/core";
import { abilityOf, assertFails, createSession, numbersTo, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

const names = ["a", "b", "c", "d", "e", "f", "g"] as const;
const baseMs = 1_700_000_000_000;

/** Creates the sessions a to g, whose order by time differs from the order of their keys. */
async function createSeven(store: SessionStore): Promise<void> {
  for (const [index, name] of names.entries()) {
    await createSession(store, name, { entry: { updatedAt: baseMs + ((index * 3) % 7) * 1000 } });
  }
}

async function listAll(store: SessionStore, query: ListQuery): Promise<SessionState[]> {
  const found: SessionState[] = [];
  let cursor: string | null = null;
  do {
    const page = await store.list(cursor === null ? query : { ...query, cursor });
    assert.ok(page.sessions.length <= (query.limit ?? 50), "a page holds no more than was asked for");
    found.push(...page.sessions);
    assert.ok(found.length <= 100, "a list comes to an end");
    cursor = page.nextCursor;
  } while (cursor !== null);
  return found;
}

function idsOf(sessions: readonly SessionState[]): string {
  return sessions.map(({ sessionId }) => sessionId.replace("session-", "")).join("");
}

function placesOf(sessions: readonly SessionState[]): string[] {
  return sessions.map(({ ref }) => `${ref.namespace}/${ref.agentId}`).toSorted();
}

export const listCases: readonly ConformanceCase[] = [
  {
    id: "list/every-session-once",
    demand: "all pages together hold every session once, whatever the page size",
    async run({ store }) {
      await createSeven(store);
      for (const sort of ["updated", "key"] as const) {
        for (const limit of [1, 2, 3, 7, 50])
          assert.equal([...idsOf(await listAll(store, { sort, limit }))].toSorted().join(""), "abcdefg");
      }
    },
  },
  {
    id: "list/newest-first",
    demand: "the newest session comes first by default",
    async run({ store }) {
      await createSeven(store);
      assert.equal(idsOf(await listAll(store, { limit: 2 })), byTime());
      assert.equal(idsOf((await store.list()).sessions), byTime());
    },
  },
  {
    id: "list/page-bytes",
    demand: "a page of a list ends once its entries fill the declared bytes",
    async run({ store }) {
      const { pageBytes } = store.capabilities.limits;
      const text = "x".repeat(Math.min(Math.ceil(pageBytes / 2), 1_000_000));
      const most = Math.ceil(pageBytes / text.length);
      const wanted = numbersTo(most + 1).map((each) => `s${each}`);
      for (const name of wanted) await createSession(store, name, { entry: { text } });
      for (const sort of ["updated", "key"] as const) {
        const found: string[] = [];
        for (let cursor: string | null = null; ;) {
          const page = await store.list({ sort, ...(cursor === null ? {} : { cursor }) });
          assert.ok(page.sessions.length <= most, `a page has ${page.sessions.length} entries of ${text.length} bytes`);
          found.push(...page.sessions.map(({ sessionId }) => sessionId.replace("session-", "")));
          if (page.nextCursor === null) break;
          cursor = page.nextCursor;
        }
        assert.deepEqual(found.toSorted(), wanted.toSorted());
      }
    },
  },
  {
    id: "list/by-key",
    demand: "sorted by key: by agent, then key",
    async run({ store }) {
      const sessions = [
        ["c", "main"],
        ["a", "main"],
        ["b", "other"],
        ["x", "alpha"],
      ] as const;
      for (const [index, [name, agentId]] of sessions.entries())
        await createSession(store, name, { agentId, entry: { updatedAt: baseMs + (index % 3) * 1000 } });
      assert.equal(idsOf(await listAll(store, { sort: "key", limit: 2 })), "xacb");
    },
  },
  {
    id: "list/filters",
    demand: "agent, namespace, key prefix and times narrow the list",
    async run({ store }) {
      await createSeven(store);
      await createSession(store, "h", { agentId: "other" });
      await createSession(store, "i", { namespace: "tenant" });
      const count = async (query: ListQuery): Promise<string> =>
        [...idsOf(await listAll(store, { ...query, limit: 2 }))].toSorted().join("");
      assert.equal(await count({ agentId: "other" }), "h");
      assert.equal(await count({}), "abcdefgh");
      assert.equal(await count({ namespace: "tenant" }), "i");
      assert.equal(await count({ keyPrefix: "agent:main:" }), "abcdefg");
      assert.equal(await count({ keyPrefix: "AGENT:main:" }), "");
      assert.equal(await count({ agentId: "main", sinceMs: baseMs + 5000 }), since(5));
      assert.equal(await count({ agentId: "main", untilMs: baseMs + 1000 }), "a");
      assert.equal(await count({ agentId: "nobody" }), "");
    },
  },
  {
    id: "list/later-pages",
    demand: "every page of a list, the later ones too, holds sessions of the asked namespace and agent alone",
    async run({ store }) {
      const places = ["", "tenant"].flatMap((namespace) =>
        ["main", "other"].map((agentId) => ({ namespace, agentId })),
      );
      // The sessions of the four agents alternate in both orders, so a wrong filter shows.
      for (const [round, name] of ["a", "b", "c"].entries())
        for (const [index, place] of places.entries()) {
          const sessionId = `session-${index}${name}`;
          const updatedAt = baseMs + (round * places.length + index) * 1000;
          await createSession(store, name, { ...place, sessionId, entry: { updatedAt } });
        }
      for (const sort of ["updated", "key"] as const)
        for (const { namespace, agentId } of places) {
          const ofAgent = await listAll(store, { namespace, agentId, sort, limit: 1 });
          assert.deepEqual(
            placesOf(ofAgent),
            Array.from({ length: 3 }, () => `${namespace}/${agentId}`),
          );
          const ofBoth = ["main", "other"].flatMap((each) => Array.from({ length: 3 }, () => `${namespace}/${each}`));
          assert.deepEqual(placesOf(await listAll(store, { namespace, sort, limit: 2 })), ofBoth);
        }
    },
  },
  {
    id: "list/archived",
    demand: "archived sessions are listed when asked for, under a ref that reaches them",
    async run({ store }) {
      await createSession(store, "a");
      await store.move(await createSession(store, "b"), { kind: "archive" });
      assert.equal(idsOf((await store.list()).sessions), "a");
      assert.equal(idsOf(await listAll(store, { state: "any", sort: "key", limit: 1 })), "ab");
      const [archived, ...others] = (await store.list({ state: "archived" })).sessions;
      assert.deepEqual(others, []);
      assert.deepEqual(await store.load(archived?.ref ?? refOf("b")), archived);
      assert.equal(archived?.archived, true);
    },
  },
  {
    id: "list/default-limit",
    demand: "a page holds 50 sessions by default",
    async run({ store }) {
      for (let index = 0; index < 52; index++) await createSession(store, `n${index}`);
      const page = await store.list();
      assert.equal(page.sessions.length, 50);
      assert.equal((await store.list({ cursor: page.nextCursor ?? "" })).sessions.length, 2);
    },
  },
  {
    id: "list/bad-cursor",
    demand: "a cursor that no list gave is refused",
    async run({ store }) {
      await createSeven(store);
      for (const cursor of ["", "garbage", "bnVsbA", "W10", "eyJ2IjoxfQ"])
        await assertFails(store.list({ cursor }), "CURSOR_INVALID");
    },
  },
  {
    id: "list/other-cursor",
    demand: "a cursor of another query is refused",
    async run({ store }) {
      await createSeven(store);
      const { nextCursor } = await store.list({ sort: "key", limit: 2 });
      assert.ok(nextCursor !== null, "there is more");
      await assertFails(store.list({ sort: "updated", limit: 2, cursor: nextCursor }), "CURSOR_INVALID");
      await assertFails(store.list({ sort: "key", agentId: "main", limit: 2, cursor: nextCursor }), "CURSOR_INVALID");
    },
  },
  {
    id: "list/while-others-change",
    demand: "a session that stays as it is appears once while others come, go and move",
    async run({ store }) {
      await createSeven(store);
      const first = await store.list({ limit: 3 });
      const shown = first.sessions.map(({ ref }) => ref);
      await store.append(shown[2] ?? refOf("a"), [userDraft("moves to the front")]);
      await store.remove(shown[0] ?? refOf("a"), { purge: true });
      await createSession(store, "new");
      await createSession(store, "newer");
      const rest = await listAll(store, { limit: 3, cursor: first.nextCursor ?? "" });
      assert.deepEqual(idsOf(rest), byTime().slice(3));
    },
  },
  {
    id: "list/says-what-load-says",
    demand: "a listed session is the state that load gives",
    async run({ store }) {
      const ref = await createSession(store, "a", { entry: { label: "x" } });
      await store.append(ref, [userDraft("one")], { entry: { model: "m" } });
      assert.deepEqual((await store.list()).sessions, [await store.load(ref)]);
    },
  },
  {
    id: "list/damaged-session",
    demand:
      "a damaged session hides no other from a list, whatever the page size; a finding names it, and load of it fails",
    needs: ["damageEntry", "events"],
    async run({ under, store }) {
      await createSeven(store);
      const damaged: string[] = [];
      // First the newest and the oldest are damaged, then all but two.
      for (const name of ["a", "g", "e", "b", "d"]) {
        await abilityOf(under, "damageEntry")(refOf(name));
        damaged.push(name);
        if (damaged.length === 1 || damaged.length === 4) continue;
        const sound = names.filter((each) => !damaged.includes(each));
        for (const sort of ["updated", "key"] as const)
          for (const limit of [1, 2, 3, 7]) await assertListed(store, { sort, limit }, sound);
      }
      const keys = findingKeys(abilityOf(under, "events")());
      for (const name of damaged) {
        await assertFails(store.load(refOf(name)), "STORE_CORRUPT", "CODEC_FAILED");
        assert.equal(keys.filter((key) => key === refOf(name).key).length, 1, `one finding names ${name}`);
      }
    },
  },
];

/** Asserts that the pages contain each session once. Only the last page may have room, and it must not be empty. */
async function assertListed(
  store: SessionStore,
  query: ListQuery & { readonly limit: number },
  wanted: readonly string[],
): Promise<void> {
  const sizes: number[] = [];
  const found: SessionState[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await store.list(cursor === undefined ? query : { ...query, cursor });
    sizes.push(page.sessions.length);
    found.push(...page.sessions);
    assert.ok(sizes.length <= 100, "a list comes to an end");
    cursor = page.nextCursor;
  }
  const order = query.sort === "key" ? wanted : [...byTime()].filter((name) => wanted.includes(name));
  assert.equal(idsOf(found), order.join(""));
  const full = wanted
    .map((_, index) => Math.min(query.limit, wanted.length - index))
    .filter((_, index) => index % query.limit === 0);
  assert.deepEqual(sizes, full, `pages of ${query.limit}`);
}

function findingKeys(events: readonly SessionEvent[]): (string | null)[] {
  return events.flatMap((event) => (event.name === "finding" ? [event.finding.key] : []));
}

function byTime(): string {
  return names.toSorted((one, other) => timeOf(other) - timeOf(one)).join("");
}

function since(seconds: number): string {
  return names.filter((name) => timeOf(name) >= seconds).join("");
}

function timeOf(name: (typeof names)[number]): number {
  return (names.indexOf(name) * 3) % 7;
}
