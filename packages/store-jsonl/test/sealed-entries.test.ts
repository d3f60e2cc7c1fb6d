import { appendFileSync, cpSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import {
  sessionRef,
  type Finding,
  type PayloadCodec,
  type SessionEvent,
  type SessionRef,
  type SessionStore,
} from "@throughline/core";
import { createJsonlStore, type JsonlStoreOptions } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { lineAbout, logOf } from "./damage-entry.ts";
import { textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const [plain, other, sealed] = ["plain", "other", "sealed"].map((name) =>
  sessionRef({ key: `agent:main:${name}` }),
) as [SessionRef, SessionRef, SessionRef];

/** Writes under the last of its keys, and reads what was written under any of them. */
function codecOf(...keys: string[]): PayloadCodec & { keys: string[] } {
  const mixed = (bytes: Uint8Array): Uint8Array => bytes.map((byte) => byte ^ 0x55);
  const codec = {
    name: "keyed",
    keys,
    encode: (text: Uint8Array) => Buffer.concat([Buffer.from(codec.keys.at(-1) ?? ""), mixed(text)]),
    decode: (coded: Uint8Array) => {
      if (!codec.keys.includes(Buffer.from(coded.subarray(0, 2)).toString())) throw new Error("another key");
      return mixed(coded.subarray(2));
    },
  };
  return codec;
}

const mixed = { code: "CODEC_FAILED", outcome: "not-applied" };

const newFolder = temporaryFolders();
const first = codecOf("K1");
const both = codecOf("K1", "K2");

describe.each([{ index: true }, { index: false }])(
  "a session whose entry cannot be decoded, index: $index",
  ({ index }) => {
    function opened(root: string, codec: PayloadCodec, options: Partial<JsonlStoreOptions> = {}) {
      const findings: Finding[] = [];
      const onEvent = (event: SessionEvent): void => {
        if (event.name === "finding") findings.push(event.finding);
      };
      return { store: createJsonlStore({ root, codec, index, onEvent, ...options }), findings };
    }

    async function withStore<T>(
      root: string,
      codec: PayloadCodec,
      work: (store: SessionStore) => Promise<T>,
    ): Promise<T> {
      const { store } = opened(root, codec);
      try {
        return await work(store);
      } finally {
        await store.close();
      }
    }

    /** Three sessions, of which one is written under the second key; what it says. */
    async function filled(): Promise<{ root: string; state: unknown; coded: unknown }> {
      const root = newFolder();
      await withStore(root, first, async (store) => {
        for (const ref of [plain, other]) {
          await store.save(ref, { sessionId: ref.key.slice(11), label: "x" }, { ifRevision: null });
          await store.append(ref, [userDraft("one")]);
        }
      });
      const state = await withStore(root, both, async (store) => {
        await store.save(sealed, { sessionId: "sealed", label: "kept" }, { ifRevision: null });
        await store.append(sealed, [userDraft("hidden")]);
        return store.load(sealed);
      });
      return { root, state, coded: lineAbout(root, sealed.key)["entryEnc"] };
    }

    /** As `filled`, but what is under the second key is a change that lies in the transcript of one. */
    async function patched(writer: PayloadCodec): Promise<string> {
      const root = newFolder();
      await withStore(root, first, async (store) => {
        for (const ref of [plain, other, sealed])
          await store.save(ref, { sessionId: ref.key.slice(11), label: "x" }, { ifRevision: null });
      });
      const { store } = opened(root, writer, { derivedDelayMs: Infinity });
      await store.append(sealed, [userDraft("one")], { entry: { label: "kept" } });
      // As its process leaves it that is killed: the change is in the transcript alone.
      const left = newFolder();
      cpSync(root, left, { recursive: true });
      await store.close();
      return left;
    }

    const keysOf = async (store: SessionStore): Promise<readonly string[]> =>
      (await store.list({ sort: "key" })).sessions.map(({ sessionId }) => sessionId);

    async function expectSealed(store: SessionStore): Promise<void> {
      const refused = { code: "CODEC_FAILED", outcome: "not-applied" };
      await expect(store.load(sealed)).rejects.toMatchObject({ code: "CODEC_FAILED" });
      await expect(store.append(sealed, [userDraft("two")])).rejects.toMatchObject(refused);
      await expect(store.append(sealed, [], { entry: { label: "y" } })).rejects.toMatchObject(refused);
      await expect(store.save(sealed, { sessionId: "sealed" }, { ifRevision: 1 })).rejects.toMatchObject(refused);
      await expect(store.save(sealed, { sessionId: "anew" }, { ifRevision: 1 })).rejects.toMatchObject(refused);
      for (const action of [{ kind: "rename", key: "agent:main:named" }, { kind: "archive" }] as const)
        await expect(store.move(sealed, action)).rejects.toMatchObject(refused);
    }

    it("fails alone: it is left out of lists, one finding names it, and it comes back with its key", async () => {
      const { root, state, coded } = await filled();
      const { store, findings } = opened(root, first);
      for (const limit of [1, 2, 50])
        expect((await store.list({ limit, sort: "key" })).sessions.length).toBe(Math.min(limit, 2));
      expect(await keysOf(store)).toEqual(["other", "plain"]);
      expect(findings.map(({ code, key }) => [code, key])).toEqual([["STORE_DAMAGED", sealed.key]]);
      await expectSealed(store);
      await store.append(plain, [userDraft("two")], { entry: { label: "y" } });
      expect((await store.load(plain))?.entry["label"]).toBe("y");
      expect(await textsOf(store, plain)).toEqual(["one", "two"]);
      await store.save(sessionRef({ key: "agent:main:new" }), { sessionId: "new" }, { ifRevision: null });
      expect(await keysOf(store)).toEqual(["new", "other", "plain"]);
      await store.close();
      expect(lineAbout(root, sealed.key)["entryEnc"]).toBe(coded);
      await withStore(root, both, async (again) => {
        expect(await again.load(sealed)).toEqual(state);
        expect(await keysOf(again)).toEqual(["new", "other", "plain", "sealed"]);
      });
    });

    it("is there again in the same handle once the codec has the key", async () => {
      const { root, state } = await filled();
      const codec = codecOf("K1");
      const { store } = opened(root, codec);
      expect(await keysOf(store)).toEqual(["other", "plain"]);
      codec.keys.push("K2");
      expect(await store.load(sealed)).toEqual(state);
      const renamed = await store.move(sealed, { kind: "rename", key: "agent:main:renamed" });
      expect(renamed.entry["label"]).toBe("kept");
      expect(await keysOf(store)).toEqual(["other", "plain", "sealed"]);
      await store.close();
      expect((await withStore(root, both, (again) => again.load(renamed.ref)))?.entry["label"]).toBe("kept");
    });

    it("is all there is under the wrong key: then a list fails, and nothing is changed", async () => {
      const { root } = await filled();
      const before = readFileSync(logOf(root));
      await withStore(root, codecOf("K3"), async (store) => {
        await expect(store.list()).rejects.toMatchObject({ code: "CODEC_FAILED" });
        await expect(store.list({ limit: 1 })).rejects.toMatchObject({ code: "CODEC_FAILED" });
        await expectSealed(store);
      });
      expect(readFileSync(logOf(root))).toEqual(before);
      expect(await withStore(root, both, keysOf)).toEqual(["other", "plain", "sealed"]);
    });

    it("keeps its text when the log is written anew, for a purge and because it is long", async () => {
      const { root, state, coded } = await filled();
      await withStore(root, first, (store) => store.remove(other, { purge: true }));
      expect(lineAbout(root, sealed.key)["entryEnc"]).toBe(coded);
      await withStore(root, first, async (store) => {
        for (let revision = 1; revision <= 60; revision++)
          await store.save(plain, { sessionId: "plain", label: "x".repeat(20_000) }, { ifRevision: revision });
      });
      expect(statSync(logOf(root)).size).toBeLessThan(200_000);
      expect(lineAbout(root, sealed.key)["entryEnc"]).toBe(coded);
      expect(await withStore(root, both, (store) => store.load(sealed))).toEqual(state);
    });

    it("can be put into the archive and purged without its key", async () => {
      const { root, coded } = await filled();
      await withStore(root, first, (store) => store.remove(sealed));
      expect(lineAbout(root, sealed.key)).toMatchObject({ op: "archive", entryEnc: coded });
      const archived = { ...sealed, archiveId: "sealed" };
      expect((await withStore(root, both, (store) => store.load(archived)))?.entry["label"]).toBe("kept");
      await withStore(root, first, (store) => store.remove(archived, { purge: true }));
      expect(readFileSync(logOf(root), "utf8")).not.toContain(String(coded));
      expect(await withStore(root, both, (store) => store.load(archived))).toBeNull();
      expect(await withStore(root, both, keysOf)).toEqual(["other", "plain"]);
    });

    it("is in a backup as it was, and verify and repair go past it", async () => {
      const { root, state, coded } = await filled();
      const before = readFileSync(transcriptOf(root, "sealed"));
      const copy = `${newFolder()}/copy`;
      await withStore(root, first, async (store) => {
        const found: Finding[] = [];
        for await (const finding of store.maintenance?.verify({ full: true }) ?? []) found.push(finding);
        expect(found.map(({ code, key }) => [code, key])).toEqual([
          ["STORE_DAMAGED", sealed.key],
          ["STORE_DAMAGED", sealed.key],
        ]);
        expect(found.map(({ path }) => path)).toEqual([logOf(root), transcriptOf(root, "sealed")]);
        for await (const finding of store.maintenance?.repair() ?? []) expect(finding).toBeNull();
        await store.maintenance?.backup(copy);
      });
      expect(lineAbout(copy, sealed.key)["entryEnc"]).toBe(coded);
      expect(readFileSync(transcriptOf(root, "sealed"))).toEqual(before);
      for (const each of [root, copy])
        expect(await withStore(each, both, (store) => store.load(sealed))).toEqual(state);
    });

    it.skipIf(!index)("is taken from the index as it was where the log is gone", async () => {
      const { root, state, coded } = await filled();
      await withStore(root, first, keysOf);
      rmSync(logOf(root));
      expect(await withStore(root, first, keysOf)).toEqual(["other", "plain"]);
      expect(lineAbout(root, sealed.key)["entryEnc"]).toBe(coded);
      expect(await withStore(root, both, (store) => store.load(sealed))).toEqual(state);
    });

    it("fails alone for a change in its transcript, which is there again with its key", async () => {
      const root = await patched(both);
      const { store, findings } = opened(root, first);
      expect(await keysOf(store)).toEqual(["other", "plain"]);
      expect(await keysOf(store)).toEqual(["other", "plain"]);
      expect(findings.map(({ code, key }) => [code, key])).toEqual([["STORE_DAMAGED", sealed.key]]);
      await expectSealed(store);
      const found: Finding[] = [];
      for await (const finding of store.maintenance?.verify() ?? []) found.push(finding);
      expect(found.map(({ code, key, line }) => [code, key, line])).toEqual([["STORE_DAMAGED", sealed.key, 2]]);
      await store.append(plain, [userDraft("one")], { entry: { label: "y" } });
      await store.close();
      const again = await withStore(root, both, async (store) => [await keysOf(store), await store.load(sealed)]);
      expect(again).toMatchObject([["other", "plain", "sealed"], { revision: 2, entry: { label: "kept" } }]);
    });

    it.skipIf(!index)("keeps no other session out of the index for a change in its transcript", async () => {
      const root = await patched(both);
      await withStore(root, first, keysOf);
      const database = new DatabaseSync(`${root}/agents/main/throughline/index.db`);
      const known = database.prepare("SELECT id FROM sessions WHERE seen IS NOT NULL ORDER BY id").all();
      database.close();
      expect(known.map(({ id }) => id)).toEqual(["other", "plain"]);
    });

    it("catches up with the changes before one that it cannot decode, and with that one once it can", async () => {
      const { root } = await filled();
      const [one, two] = [first, both].map((codec) => opened(root, codec, { derivedDelayMs: Infinity }));
      await one?.store.append(plain, [userDraft("two")], { entry: { label: "first" } });
      await two?.store.append(plain, [userDraft("three")], { entry: { model: "second" } });
      await expect(one?.store.load(plain)).rejects.toMatchObject({ code: "CODEC_FAILED" });
      await one?.store.close();
      expect(one?.findings).toEqual([]);
      expect(lineAbout(root, plain.key)).toMatchObject({ op: "catch-up", revision: 2 });
      await two?.store.close();
      const state = await withStore(root, both, (store) => store.load(plain));
      expect(state).toMatchObject({ revision: 3, entry: { label: "first", model: "second" } });
    });

    it("keeps a change in its transcript while it is put into the archive without its key", async () => {
      const root = await patched(both);
      await withStore(root, first, (store) => store.remove(sealed));
      const archived = { ...sealed, archiveId: "sealed" };
      await withStore(root, first, (store) =>
        expect(store.load(archived)).rejects.toMatchObject({ code: "CODEC_FAILED" }),
      );
      const state = await withStore(root, both, (store) => store.move(archived, { kind: "restore" }));
      expect(state).toMatchObject({ revision: 2, entry: { label: "kept" } });
    });

    it.skipIf(!index)(
      "is read from its transcript where the index has it in a form that is under another key",
      async () => {
        const root = await patched(first);
        // Whoever lists next says in the index what the change amounts to, under its own key.
        const { store } = opened(root, both, { derivedDelayMs: Infinity });
        expect(await keysOf(store)).toEqual(["other", "plain", "sealed"]);
        await withStore(root, first, async (again) => {
          expect(await keysOf(again)).toEqual(["other", "plain", "sealed"]);
          expect((await again.load(sealed))?.entry["label"]).toBe("kept");
        });
        await store.close();
      },
    );
  },
);

describe("a session whose entry is coded, in a store without a codec", () => {
  it.each(["changes", "removes"] as const)(
    "is kept as it is where another program %s it in sessions.json",
    async (how) => {
      const root = newFolder();
      const view = `${root}/agents/main/sessions/sessions.json`;
      const findings: string[] = [];
      const onEvent = (event: SessionEvent): void => {
        if (event.name === "finding") findings.push(event.finding.code);
      };
      const before = createJsonlStore({ root });
      for (const ref of [plain, sealed]) await before.save(ref, { sessionId: ref.key.slice(11) }, { ifRevision: null });
      await before.close();
      // A store that was opened with a codec and without one, as earlier releases allowed, has lines of both kinds.
      await expect(createJsonlStore({ root, codec: both }).load(sealed)).rejects.toMatchObject(mixed);
      const codedRoot = newFolder();
      const coded = createJsonlStore({ root: codedRoot, codec: both });
      await coded.save(sealed, { sessionId: "sealed" }, { ifRevision: null });
      await coded.save(sealed, { sessionId: "sealed", label: "kept" }, { ifRevision: 1 });
      await coded.close();
      appendFileSync(logOf(root), `${readFileSync(logOf(codedRoot), "utf8").trimEnd().split("\n").at(-1) ?? ""}\n`);
      const { entryEnc } = lineAbout(root, sealed.key);
      const { [plain.key]: one, [sealed.key]: two } = JSON.parse(readFileSync(view, "utf8")) as Record<string, object>;
      const changed = { ...two, model: "theirs" };
      const others = how === "changes" ? { [sealed.key]: changed } : {};
      writeFileSync(view, JSON.stringify({ [plain.key]: { ...one, model: "theirs" }, ...others }));
      const store = createJsonlStore({ root, onEvent });
      expect((await store.list()).sessions.map(({ entry }) => entry["model"])).toEqual(["theirs"]);
      await store.append(plain, [userDraft("one")], { entry: { label: "ours" } });
      await store.close();
      expect(findings).toEqual(how === "changes" ? ["STORE_DAMAGED"] : []);
      expect(lineAbout(root, sealed.key)["entryEnc"]).toBe(entryEnc);
      const written = JSON.parse(readFileSync(view, "utf8")) as Record<string, object>;
      expect(written[plain.key]).toMatchObject({ model: "theirs", label: "ours" });
      expect(written[sealed.key]).toEqual(how === "changes" ? changed : undefined);
    },
  );

  it("is not written: a handle with another coding reads and writes nothing, in a new agent either", async () => {
    for (const codec of [undefined, both]) {
      const root = newFolder();
      const first = createJsonlStore({ root, codec });
      await first.save(plain, { sessionId: "plain" }, { ifRevision: null });
      await first.append(plain, [userDraft("one")]);
      await first.close();
      const before = readFileSync(logOf(root));
      const other = createJsonlStore({ root, codec: codec === undefined ? both : undefined });
      const newAgent = { ...sealed, agentId: "another" };
      for (const work of [
        () => other.load(plain),
        () => other.list(),
        () => other.append(plain, [userDraft("two")]),
        () => other.save(sealed, { sessionId: "sealed" }, { ifRevision: null }),
        () => other.save(newAgent, { sessionId: "new" }, { ifRevision: null }),
        () => other.load(plain),
      ])
        await expect(work()).rejects.toMatchObject(mixed);
      await other.close();
      expect(readFileSync(logOf(root))).toEqual(before);
      const again = createJsonlStore({ root, codec });
      expect(await textsOf(again, plain)).toEqual(["one"]);
      expect((await again.list()).sessions.length).toBe(1);
      await again.close();
    }
  });
});
