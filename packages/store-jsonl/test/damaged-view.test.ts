import { readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { sessionRef, type Finding, type SessionEvent } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { findingCodesOf, mainRef, storeWithSession, textsOf, userDraft } from "./session-fixture.ts";
import { filesBelow, temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const other = sessionRef({ key: "agent:main:other" });
const theirs = "agent:main:telegram:direct:42";

type Entries = Record<string, Record<string, unknown>>;

const viewPath = (root: string): string => `${root}/agents/main/sessions/sessions.json`;
const viewOf = (root: string): Entries => JSON.parse(readFileSync(viewPath(root), "utf8")) as Entries;
const keptIn = (root: string): readonly string[] =>
  readdirSync(`${root}/agents/main/throughline/torn`).filter((name) => name.startsWith("sessions.json."));

/** Two sessions of ours and what OpenClaw added: a session of its own, a policy and a field nobody here knows. */
async function storeBesideOpenclaw(root: string): Promise<void> {
  const store = await storeWithSession(root);
  await store.append(mainRef, [userDraft("hi")], { entry: { label: "ours" } });
  await store.save(other, { sessionId: "s2", label: "secret label" }, { ifRevision: null });
  await store.close();
  const entries = viewOf(root);
  const ours = entries[other.key] ?? {};
  entries[theirs] = { sessionId: "t1", updatedAt: 5, label: "theirs" };
  entries[other.key] = { ...ours, sendPolicy: "deny", unknownField: { deep: [1] }, updatedAt: Date.now() };
  writeFileSync(viewPath(root), JSON.stringify(entries, null, 2));
}

/** Writes a damaged file that nobody has touched for a while; the bytes it has. */
function damage(root: string, change: (text: string) => string, ageMs = 60_000): string {
  const text = change(readFileSync(viewPath(root), "utf8"));
  writeFileSync(viewPath(root), text);
  const time = new Date(Date.now() - ageMs);
  utimesSync(viewPath(root), time, time);
  return text;
}

const cut = (text: string): string => text.slice(0, -25);
const zeros = (text: string): string => `${text.slice(0, 20)}\0\0\0${text.slice(23)}`;

describe("a damaged sessions.json", () => {
  it.each([
    ["cut off at its end", cut, [theirs]],
    ["with zeros at its beginning", zeros, []],
    ["with bytes of an older one behind its end", (text: string): string => `${text}\n  }\n}`, []],
  ])("%s is kept under another name and written anew with what can be read", async (_how, change, lost) => {
    const root = newFolder();
    await storeBesideOpenclaw(root);
    const before = damage(root, change);
    const events: SessionEvent[] = [];
    const store = createJsonlStore({ root, onEvent: (event) => void events.push(event) });
    const keys = [mainRef.key, other.key, theirs].filter((key) => !lost.includes(key));
    expect((await store.list({ sort: "key" })).sessions.map(({ ref }) => ref.key)).toEqual(keys);
    await store.append(mainRef, [userDraft("ho")]);
    await store.close();
    const view = viewOf(root);
    expect(Object.keys(view).toSorted()).toEqual(keys);
    expect(view[mainRef.key]).toMatchObject({ sessionId: "s1", label: "ours" });
    expect(view[other.key]).toMatchObject({ label: "secret label", sendPolicy: "deny", unknownField: { deep: [1] } });
    const kept = keptIn(root).map((name) => `${root}/agents/main/throughline/torn/${name}`);
    expect(kept.map((path) => readFileSync(path, "utf8"))).toEqual([before]);
    const findings = events.flatMap((event) => (event.name === "finding" ? [event.finding] : []));
    expect(findings).toMatchObject([
      { code: "INDEX_UNREADABLE", repaired: false },
      { code: "INDEX_UNREADABLE", repaired: true },
    ]);
    expect(findings[1]?.message).toContain(kept[0]);
    await using again = createJsonlStore({ root });
    expect((await again.load(other))?.entry["sendPolicy"]).toBe("deny");
    expect(await textsOf(again)).toEqual(["hi", "ho"]);
  });

  it("archives nobody and takes back nothing for what cannot be read of it", async () => {
    const root = newFolder();
    await storeBesideOpenclaw(root);
    await (await storeWithOneList(root)).close();
    damage(root, () => "");
    await using store = createJsonlStore({ root });
    expect((await store.load(other))?.entry).toMatchObject({ sendPolicy: "deny", unknownField: { deep: [1] } });
    expect((await store.list({ state: "archived" })).sessions).toEqual([]);
  });

  it(
    "is left alone while somebody may still be writing it, and made anew when that is asked for",
    { tags: ["slow"] },
    async () => {
      const root = newFolder();
      await storeBesideOpenclaw(root);
      const before = damage(root, cut, 0);
      const store = createJsonlStore({ root, derivedDelayMs: 1 });
      await store.append(mainRef, [userDraft("ho")]);
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(readFileSync(viewPath(root), "utf8")).toBe(before);
      const rebuilt: { readonly path: string; readonly sessions: number }[] = [];
      for await (const file of store.maintenance?.rebuild?.() ?? []) rebuilt.push(file);
      expect(rebuilt).toEqual([
        { path: viewPath(root), sessions: 2 },
        { path: `${root}/agents/main/throughline/index.db`, sessions: 2 },
      ]);
      expect(Object.keys(viewOf(root)).toSorted()).toEqual([mainRef.key, other.key]);
      await store.close();
    },
  );

  it("is reported with its remedy by verify, and repaired by repair", async () => {
    const root = newFolder();
    await storeBesideOpenclaw(root);
    damage(root, cut);
    const codesOf = async (findings: AsyncIterable<Finding> = empty()): Promise<readonly string[]> => {
      const codes: string[] = [];
      for await (const { code, remedy } of findings) codes.push(`${code} ${remedy.includes("throughline reindex")}`);
      return codes;
    };
    await using store = createJsonlStore({ root });
    expect(await codesOf(store.maintenance?.verify())).toEqual(["INDEX_UNREADABLE true"]);
    await codesOf(store.maintenance?.repair());
    expect(await codesOf(store.maintenance?.verify())).toEqual([]);
    expect(keptIn(root)).toHaveLength(1);
  });

  it("leaves nothing of a session that is purged: neither in the file nor in what was kept of it", async () => {
    const root = newFolder();
    await storeBesideOpenclaw(root);
    damage(root, cut);
    const first = createJsonlStore({ root });
    await first.append(mainRef, [userDraft("ho")]);
    await first.close();
    expect(keptIn(root)).toHaveLength(1);
    damage(root, cut, 0);
    const store = createJsonlStore({ root });
    await store.remove(other, { purge: true });
    expect(filesBelow(root).filter((path) => readFileSync(`${root}/${path}`).includes("secret label"))).toEqual([]);
    expect(viewOf(root)).not.toHaveProperty([other.key]);
    await store.close();
  });
});

describe("rebuild", () => {
  it(
    "reads every transcript for the index again, and makes sessions.json where it is gone",
    { tags: ["slow"] },
    async () => {
      const root = newFolder();
      const store = await storeWithSession(root);
      await store.append(mainRef, [userDraft("hi")]);
      await store.close();
      const events: SessionEvent[] = [];
      const again = createJsonlStore({ root, onEvent: (event) => void events.push(event) });
      const path = `${root}/agents/main/throughline/index.db`;
      writeFileSync(path, "no database");
      writeFileSync(viewPath(root), "");
      const rebuilt: string[] = [];
      for await (const file of again.maintenance?.rebuild?.() ?? []) rebuilt.push(file.path);
      expect(rebuilt).toEqual([viewPath(root), path]);
      expect(readFileSync(path).subarray(0, 15).toString()).toBe("SQLite format 3");
      expect(viewOf(root)[mainRef.key]).toMatchObject({ sessionId: "s1" });
      expect(findingCodesOf(events)).toContain("INDEX_REBUILT");
      expect((await again.list()).sessions).toMatchObject([{ messageCount: 1 }]);
      await again.close();
    },
  );
});

async function storeWithOneList(root: string): Promise<ReturnType<typeof createJsonlStore>> {
  const store = createJsonlStore({ root });
  await store.list();
  return store;
}

async function* empty(): AsyncGenerator<Finding> {
  // Nothing is found by a store that keeps no maintenance.
}
