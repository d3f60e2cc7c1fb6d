import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionRef, SessionStore } from "@throughline/core";
import { type Encryption, eraseSessions, resumeErasures } from "@throughline/encryption";
import type { StoreUnderTest } from "@throughline/store-conformance";
import { describe, expect, it, onTestFinished } from "vitest";

/** How the tests open a store with encryption, and what else may hold something of it. */
interface EncryptedSetup {
  readonly name: string;
  readonly encryption: Encryption;
  open(codec: Encryption): Promise<StoreUnderTest>;
  /** Everything outside of the store that may hold something that was written since a time, such as files of a server. */
  elsewhere?(sinceMs: number): Promise<readonly Uint8Array[]>;
}

/** Words that nothing else contains. A stem of the second is the word without its end. */
const words = ["zanzibarquokka", "wanderingquaggas"] as const;

/** Each form in which a word may hide: as it is, in other encodings, as its stem. */
export function formsOf(word: string): readonly string[] {
  const bytes = Buffer.from(word);
  // Base64 depends on where in three bytes a word begins. The first and the last character hold bits of its neighbors.
  const inBase64 = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes])
      .toString("base64")
      .replaceAll("=", "");
    return text.slice(before === 0 ? 0 : before + 1, -1);
  });
  const stem = word.slice(0, -4);
  const others = [bytes.toString("hex"), bytes.toString("hex").toUpperCase(), Buffer.from(word, "utf16le").toString()];
  return [word, word.toUpperCase(), stem, ...inBase64, ...others];
}

/** Returns the forms that the contents hold. */
export function formsIn(contents: readonly Uint8Array[]): readonly string[] {
  const forms = words.flatMap(formsOf);
  // Views: a copy of each file for each form takes longer than the search.
  const views = contents.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength));
  return forms.filter((form) => views.some((view) => view.includes(form)));
}

const refOf = (name: string): SessionRef => ({ namespace: "", agentId: "main", key: `agent:main:${name}` });

async function textsOf(store: SessionStore, ref: SessionRef): Promise<readonly unknown[]> {
  const texts: unknown[] = [];
  for await (const page of store.read(ref))
    for (const { record } of page.records) texts.push((record["message"] as { readonly content: unknown }).content);
  return texts;
}

async function hitsOf(store: SessionStore, text: string): Promise<readonly number[]> {
  const hits = await Array.fromAsync(store.search?.search({ text }) ?? []);
  return hits.map(({ seq }) => seq);
}

async function createSession(store: SessionStore, name: string, texts: readonly string[]): Promise<SessionRef> {
  const ref = refOf(name);
  await store.save(ref, { sessionId: `session-${name}`, label: words[0] }, { ifRevision: null });
  await store.append(
    ref,
    texts.map((content) => ({ type: "message", message: { role: "user", content } })),
  );
  return ref;
}

/** Writes the words wherever a session can hold one. */
async function plantWords(store: SessionStore): Promise<void> {
  const [word, other] = words;
  const ref = await createSession(store, "planted", [word, `They saw ${other}.`]);
  const content = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.from(`${word} `.repeat(9000));
  };
  const file = await store.files?.put(ref, content());
  const { records } = await store.append(ref, [
    {
      type: "message",
      message: {
        role: "assistant",
        model: word,
        content: [{ type: "toolCall", id: word, name: word, arguments: { [other]: other } }],
      },
    },
    { type: "message", message: { role: "toolResult", toolCallId: word, toolName: word, content: other } },
    { type: "compaction", summary: `Of ${other} and ${word}` },
    {
      source: `${word}: a line that is no JSON`,
      record: { type: "message", id: "odd", parentId: null, timestamp: "2026-01-02T03:04:05.006Z", text: other },
    },
    ...(file === undefined
      ? []
      : [
          {
            type: "message",
            message: { role: "user", content: [{ type: "file", fileId: file.id, name: `${word}.pdf` }] },
          },
        ]),
  ]);
  const fence = 1;
  const turn = { action: "open", turnId: "turn-1", owner: "test", leaseUntilMs: Date.now() + 600_000, fence } as const;
  await store.append(ref, [{ type: "message", message: { role: "user", content: other } }], {
    turn,
    entry: { model: word },
  });
  await store.partials?.write(ref, {
    v: 1,
    sessionId: "session-planted",
    turnId: "turn-1",
    fence,
    step: 1,
    attempt: 0,
    afterSeq: 1,
    provider: "anthropic",
    api: "anthropic-messages",
    model: null,
    text: `So far ${word} and ${other}`,
    updatedMs: 1,
  });
  await store.fork?.fork(ref, refOf("fork"), { sessionId: "session-fork", atSeq: 3 });
  await store.redact(ref, [records[0]?.id ?? ""], { reason: word });
  await store.move(ref, { kind: "rename", key: "agent:main:renamed" });
}

function contentsIn(folder: string): readonly Uint8Array[] {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name));
  return paths.filter((path) => statSync(path).isFile()).map((path) => readFileSync(path));
}

/** Declares what a store with encryption keeps, beside the contract. */
export function describeEncryptedStore({ name, encryption, open, elsewhere }: EncryptedSetup): void {
  describe(`${name} with encryption`, () => {
    it("has a planted word in no file, in no form", async () => {
      const startedMs = Date.now();
      const under = await open(encryption);
      await plantWords(under.store);
      // The search fills the index.
      expect(await hitsOf(under.store, `"they saw ${words[1]}"`)).toEqual(under.store.search === undefined ? [] : [2]);
      const folder = mkdtempSync(join(tmpdir(), "throughline-backup-"));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      await under.store.maintenance?.backup(join(folder, "backup"));
      expect(contentsIn(folder).length > 0).toBe(under.store.maintenance !== undefined);
      const written = [...((await under.files?.()) ?? []), ...contentsIn(folder)];
      const contents = [...written, ...((await elsewhere?.(startedMs)) ?? [])];
      expect(contents.some((content) => content.byteLength > 0)).toBe(true);
      expect(formsIn(contents)).toEqual([]);
      // A store without encryption is found out.
      expect(formsIn([Buffer.from(words[0]), Buffer.from(Buffer.from(`x${words[1]}`).toString("base64"))]).length).toBe(
        3,
      );
      await under.dispose();
    });

    it("finds words, stems, phrases and beginnings, and not what was erased or is another namespace's", async () => {
      const under = await open(encryption);
      const { store } = under;
      if (store.search !== undefined) {
        await createSession(store, "a", ["The quokkas were wandering home", "Home they came"]);
        await createSession(store, "b", ["A quokka was wandering"]);
        for (const [text, found] of [
          ["wandering", [1, 1]],
          ["wander*", [1, 1]],
          ['"wandering home"', [1]],
          ["wandering ho*", [1]],
          ["hom*", [1, 2]],
          ["home", [1, 2]],
          ["hom", []],
        ] as const)
          expect((await hitsOf(store, text)).toSorted(), text).toEqual(found);
        const stems = await Array.fromAsync(store.search.search({ anyOf: ["quokka"], role: "user" }));
        expect(stems.length).toBe(2);
        expect(await Array.fromAsync(store.search.search({ text: "home", role: "assistant" }))).toEqual([]);
        expect(await Array.fromAsync(store.search.search({ text: "home", namespace: "other" }))).toEqual([]);
        await eraseSessions(store, encryption, [refOf("a")], { reason: "asked for" });
        expect(await hitsOf(store, "home")).toEqual([]);
        expect(await hitsOf(store, "wandering")).toEqual([1]);
      }
      await under.dispose();
    });

    it("keeps vectors that show nothing, finds by them, and not by those of an erased session", async () => {
      const under = await open(encryption);
      const { store } = under;
      const { vectors } = store;
      for (const each of ["a", "b"]) await createSession(store, each, ["one"]);
      const scope = { namespace: "", agentId: "main" };
      const model = "test@96";
      // The signs and the numbers have a pattern that no random bytes have.
      const vectorOf = (name: string): Float32Array =>
        Float32Array.from({ length: 96 }, (_, at) => (at % 2 === 0 ? 1 : -1) * (name === "a" ? 1 : 0.5 + (at % 3)));
      for (const { ref, mark, fromSeq, toSeq } of (await vectors?.pending(scope, { model }))?.ranges ?? []) {
        const vector = vectorOf(ref.key.slice(-1));
        const put = {
          model,
          mark,
          fromSeq,
          toSeq,
          resumeSeq: 1,
          vectors: [{ firstSeq: 1, lastSeq: 1, part: 0, vector }],
        };
        expect(await vectors?.put(ref, put)).toBe(true);
      }
      const near = async (of = store): Promise<readonly string[]> =>
        ((await of.vectors?.nearest({ ...scope, model, vector: vectorOf("a") })) ?? []).map(
          ({ sessionId }) => sessionId,
        );
      expect(await near()).toEqual(["session-a", "session-b"]);
      const kept = (await under.files?.()) ?? [];
      const signs = Buffer.alloc(12, 0b0101_0101);
      const numbers = Buffer.from(Int8Array.from({ length: 96 }, (_, at) => (at % 2 === 0 ? 127 : -127)).buffer);
      for (const bytes of [signs, numbers]) expect(kept.some((file) => Buffer.from(file).includes(bytes))).toBe(false);
      await eraseSessions(store, encryption, [refOf("a")], { reason: "asked for" });
      expect(await near()).toEqual(["session-b"]);
      // Another handle decodes what is kept.
      expect(await near(await under.reopen?.())).toEqual(["session-b"]);
      await under.dispose();
    });

    it("erases one session of many: its key is gone, and each other session stays", async () => {
      const under = await open(encryption);
      const { store } = under;
      const names = Array.from({ length: 12 }, (_, index) => `s${index}`);
      for (const each of names) await createSession(store, each, [`one of ${each}`, `two of ${each}`]);
      const proof = await eraseSessions(store, encryption, [refOf("s5")], { reason: "asked for" });
      expect(proof.keyIds.length).toBe(1);
      expect(encryption.checkProof(proof)).toBe(true);
      expect(await store.load(refOf("s5"))).toBe(null);
      for (const each of names.filter((one) => one !== "s5"))
        expect(await textsOf(store, refOf(each))).toEqual([`one of ${each}`, `two of ${each}`]);
      await under.dispose();
    });

    it("erases a session that has forks together with them only, and a fork alone", async () => {
      const under = await open(encryption);
      const { store } = under;
      const { fork } = store;
      const ref = await createSession(store, "origin", ["one", "two"]);
      for (const each of fork === undefined ? [] : ["a", "b"])
        await fork?.fork(ref, refOf(each), { sessionId: `session-${each}`, atSeq: 2 });
      if (fork !== undefined) {
        const refusal = eraseSessions(store, encryption, [ref, refOf("a")], { reason: "asked for" });
        await expect(refusal).rejects.toMatchObject({ code: "SESSION_SHARED", outcome: "not-applied" });
        await eraseSessions(store, encryption, [refOf("b")], { reason: "asked for" });
        for (const each of [ref, refOf("a")]) expect(await textsOf(store, each)).toEqual(["one", "two"]);
      }
      const all = [ref, ...(fork === undefined ? [] : [refOf("a")])];
      await eraseSessions(store, encryption, all, { reason: "asked for" });
      expect((await store.list({ state: "any" })).sessions).toEqual([]);
      expect(encryption.status().unfinishedErasures).toBe(0);
      await under.dispose();
    });

    it("erases a session whose forks keep what they share, under their own keys, or says that it cannot", async () => {
      const under = await open(encryption);
      const { store } = under;
      const ref = await createSession(store, "origin", ["one", "two"]);
      for (const [index, each] of (store.fork === undefined ? [] : ["a", "b"]).entries())
        await store.fork?.fork(ref, refOf(each), { sessionId: `session-${each}`, atSeq: index + 1 });
      const erasure = (each: SessionRef) =>
        eraseSessions(store, encryption, [each], { reason: "asked for", keepForks: true });
      if (store.fork !== undefined && store.fork.recodesOnPurge !== true)
        await expect(erasure(ref)).rejects.toMatchObject({ code: "CAPABILITY_UNSUPPORTED", outcome: "not-applied" });
      else {
        expect((await erasure(ref)).keyIds.length).toBe(1);
        if (store.fork !== undefined) {
          expect(await textsOf(store, refOf("a"))).toEqual(["one"]);
          expect(await textsOf(store, refOf("b"))).toEqual(["one", "two"]);
          expect((await erasure(refOf("b"))).keyIds.length).toBe(1);
          expect(await textsOf(store, refOf("a"))).toEqual(["one"]);
          if (store.search !== undefined) expect(await hitsOf(store, "one")).toEqual([1]);
        }
      }
      await under.dispose();
    });

    it("erases what an interrupted erasure has left", async () => {
      const under = await open(encryption);
      const { store } = under;
      for (const each of ["a", "b", "c"]) await createSession(store, each, [each]);
      // The store refuses the purge of the second one, as it would when the process ends there.
      let purges = 0;
      const failing = new Proxy(store, {
        get: (target, member) => {
          if (member === "remove" && (purges += 1) === 2) return () => Promise.reject(new Error("the process ended"));
          const value: unknown = Reflect.get(target, member, target);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
      const erasure = eraseSessions(failing, encryption, [refOf("a"), refOf("b")], { reason: "asked for" });
      await expect(erasure).rejects.toThrow("the process ended");
      expect(encryption.status().unfinishedErasures).toBe(2);
      await store.move(refOf("b"), { kind: "rename", key: "agent:main:renamed" });
      const proof = await resumeErasures(store, encryption);
      expect(proof?.keyIds.length).toBe(2);
      expect((await store.list()).sessions.map(({ ref }) => ref.key)).toEqual(["agent:main:c"]);
      expect(await resumeErasures(store, encryption)).toBe(null);
      await under.dispose();
    });
  });
}
