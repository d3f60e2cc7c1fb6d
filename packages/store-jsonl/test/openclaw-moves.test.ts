import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sessionRef, type SessionRef, type SessionStore } from "@throughline/core";
import { createJsonlStore, type JsonlStoreOptions } from "@throughline/store-jsonl";
import { type Files, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

type Entries = Record<string, Record<string, unknown>>;

function refOf(name: string): SessionRef {
  return sessionRef({ key: `agent:main:telegram:direct:${name}` });
}

/** A folder of OpenClaw's, and what OpenClaw does there. */
class Beside {
  readonly root: string = newFolder();
  readonly folder: string = join(this.root, "agents/main/sessions");

  constructor(...names: readonly string[]) {
    mkdirSync(this.folder, { recursive: true });
    writeFileSync(join(this.folder, "sessions.json"), "{}");
    for (const name of names) this.begin(name, name);
  }

  get entries(): Entries {
    return JSON.parse(readFileSync(join(this.folder, "sessions.json"), "utf8")) as Entries;
  }

  edit(change: (entries: Entries) => void): void {
    const path = join(this.folder, "sessions.json");
    const { entries } = this;
    change(entries);
    writeFileSync(`${path}.tmp`, JSON.stringify(entries, null, 2));
    renameSync(`${path}.tmp`, path);
  }

  /** Under the key from now on; with the first message, without which there is no transcript. */
  begin(name: string, sessionId: string, text: string | null = `first of ${sessionId}`): void {
    this.edit((entries) => {
      const { [refOf(name).key]: before = {} } = entries;
      entries[refOf(name).key] = { ...before, sessionId, updatedAt: Date.now() };
    });
    if (text !== null) this.say(sessionId, text);
  }

  say(sessionId: string, text: string): void {
    const path = join(this.folder, `${sessionId}.jsonl`);
    const timestamp = new Date().toISOString();
    if (!existsSync(path))
      writeFileSync(path, `${JSON.stringify({ type: "session", version: 3, id: sessionId, timestamp, cwd: "/" })}\n`);
    const message = { role: "user", content: text };
    appendFileSync(path, `${JSON.stringify({ type: "message", id: text, parentId: null, timestamp, message })}\n`);
  }

  putAside(sessionId: string, why: "reset" | "deleted"): string {
    const path = join(this.folder, `${sessionId}.jsonl`);
    const aside = `${path}.${why}.${new Date().toISOString().replaceAll(":", "-")}`;
    renameSync(path, aside);
    return aside;
  }

  /** What a store of its own answers, as every command opens one. */
  async ask<T>(work: (store: SessionStore) => Promise<T>, options: Partial<JsonlStoreOptions> = {}): Promise<T> {
    await using store = createJsonlStore({ root: this.root, ...options });
    return await work(store);
  }

  textOf(sessionId: string): string {
    return readFileSync(join(this.folder, `${sessionId}.jsonl`), "utf8");
  }
}

async function textsIn(store: SessionStore, ref: SessionRef): Promise<readonly unknown[]> {
  const texts: unknown[] = [];
  for await (const page of store.read(ref))
    for (const { record } of page.records)
      texts.push((record["message"] as { content?: unknown } | undefined)?.content);
  return texts.filter((text) => text !== undefined);
}

describe("what OpenClaw does to a session that the store knows", () => {
  it.each([["reset"], ["deleted"]] as const)(
    "a transcript it puts aside (%s) stays readable, can be restored and is no missing file",
    async (why) => {
      const beside = new Beside("one", "two");
      await beside.ask(async (store) => {
        await store.list();
        await store.append(refOf("one"), [userDraft("ours")]);
      });
      if (why === "reset") beside.begin("one", "one-again");
      else beside.edit((entries) => delete entries[refOf("one").key]);
      beside.putAside("one", why);
      const archived = { ...refOf("one"), archiveId: "one" };
      await beside.ask(async (store) => {
        const { sessions } = await store.list({ state: "archived" });
        expect(sessions.map(({ sessionId, messageCount }) => [sessionId, messageCount])).toEqual([["one", 2]]);
        expect(await textsIn(store, archived)).toEqual(["first of one", "ours"]);
        for await (const { code } of store.maintenance?.verify() ?? []) expect(code).not.toBe("SESSION_FILE_MISSING");
      });
      expect((await beside.ask((store) => store.load(refOf("one"))))?.sessionId).toBe(
        why === "reset" ? "one-again" : undefined,
      );
      if (why === "reset") return;
      await beside.ask((store) => store.move(archived, { kind: "restore" }));
      expect(beside.textOf("one")).toContain("ours");
      await beside.ask((store) => store.append(refOf("one"), [userDraft("on")]));
      expect(await beside.ask((store) => textsIn(store, refOf("one")))).toEqual(["first of one", "ours", "on"]);
    },
  );

  it("one that is purged goes by any name it was given", async () => {
    const beside = new Beside("one", "two");
    await beside.ask((store) => store.list());
    beside.edit((entries) => delete entries[refOf("one").key]);
    const aside = beside.putAside("one", "deleted");
    await beside.ask(async (store) => {
      await store.list();
      await store.remove({ ...refOf("one"), archiveId: "one" }, { purge: true });
    });
    expect(existsSync(aside)).toBe(false);
  });

  it("a process that only appends finds a reset and a deletion, and writes to neither's old transcript", async () => {
    const beside = new Beside("one", "two");
    await beside.ask(async (store) => {
      await store.list();
      for (const name of ["one", "two"]) await store.append(refOf(name), [userDraft("before")]);
    });
    beside.begin("one", "one-again");
    beside.putAside("one", "reset");
    beside.edit((entries) => delete entries[refOf("two").key]);
    beside.putAside("two", "deleted");
    await beside.ask(async (store) => {
      await store.append(refOf("one"), [userDraft("after")]);
      await expect(store.append(refOf("two"), [userDraft("after")])).rejects.toMatchObject({
        code: "SESSION_NOT_FOUND",
      });
    });
    expect(beside.textOf("one-again")).toContain("after");
    expect(existsSync(join(beside.folder, "two.jsonl"))).toBe(false);
  });

  it("it may begin a session again and again while nobody of ours writes, and each keeps its key", async () => {
    const beside = new Beside("one", "two");
    await beside.ask(async (store) => {
      await store.list();
      await store.append(refOf("two"), [userDraft("the index is written")]);
    });
    for (const sessionId of ["second", "third"]) {
      beside.begin("one", sessionId);
      expect((await beside.ask((store) => store.load(refOf("one"))))?.sessionId).toBe(sessionId);
    }
    // The transcript comes with the first answer.
    beside.begin("one", "fourth", null);
    await beside.ask((store) => store.append(refOf("two"), [userDraft("meanwhile")]));
    expect(beside.entries[refOf("one").key]?.["sessionId"]).toBe("fourth");
    beside.say("fourth", "late");
    expect(
      (await beside.ask((store) => store.list())).sessions.map(({ ref, sessionId }) => [ref.key, sessionId]),
    ).toEqual(expect.arrayContaining([[refOf("one").key, "fourth"]]));
  });

  it("a session begun here after it began one keeps the key, and one begun here before does not", async () => {
    const beside = new Beside("one");
    await beside.ask((store) => store.list());
    await beside.ask(async (store) => {
      const state = await store.load(refOf("one"));
      beside.edit((entries) => (entries[refOf("one").key] = { sessionId: "theirs", updatedAt: Date.now() - 60_000 }));
      beside.say("theirs", "x");
      await store.save(refOf("one"), { sessionId: "ours" }, { ifRevision: state?.revision ?? null });
      expect((await store.load(refOf("one")))?.sessionId).toBe("ours");
    });
    beside.begin("one", "later");
    expect((await beside.ask((store) => store.load(refOf("one"))))?.sessionId).toBe("later");
  });
});

describe("what OpenClaw changes back", () => {
  it.each([
    ["the index is written here", {}],
    ["it is not", { sessionsJson: false }],
  ])("is a change too, though nothing was written in between, where %s", async (_where, options) => {
    const beside = new Beside("one", "two");
    const setPolicy = (value: string): void =>
      beside.edit((entries) => Object.assign(entries[refOf("one").key] ?? {}, { sendPolicy: value }));
    const policyOf = async (): Promise<unknown> =>
      (await beside.ask((store) => store.load(refOf("one")), options))?.entry["sendPolicy"];
    setPolicy("allow");
    await beside.ask(async (store) => {
      await store.list();
      await store.append(refOf("one"), [userDraft("x")], { entry: { label: "ours" } });
    }, options);
    for (const value of ["deny", "allow", "deny"]) {
      setPolicy(value);
      expect(await policyOf()).toBe(value);
    }
    await beside.ask((store) => store.append(refOf("one"), [], { entry: { label: "ours again" } }), options);
    expect(beside.entries[refOf("one").key]?.["sendPolicy"]).toBe("deny");
    beside.edit((entries) => Object.assign(entries[refOf("two").key] ?? {}, { other: 1 }));
    expect((await beside.ask((store) => store.load(refOf("one")), options))?.entry).toMatchObject({
      label: "ours again",
      sendPolicy: "deny",
    });
  });

  it.each([
    ["renamed", { kind: "rename", key: refOf("other").key }, refOf("other")],
    ["archived", { kind: "archive" }, { ...refOf("one"), archiveId: "one" }],
  ] as const)("goes along with a session that is %s here next", async (_how, action, now) => {
    const beside = new Beside("one", "two");
    await beside.ask(async (store) => {
      await store.append(refOf("one"), [userDraft("x")], { entry: { label: "ours" } });
      await store.list();
    });
    await beside.ask(async (store) => {
      beside.edit((entries) => Object.assign(entries[refOf("one").key] ?? {}, { sendPolicy: "deny" }));
      await store.move(refOf("one"), action);
      expect((await store.load(now))?.entry).toMatchObject({ label: "ours", sendPolicy: "deny" });
    });
  });

  it("is a session again that it had deleted, with its transcript", async () => {
    const beside = new Beside("one", "two");
    await beside.ask((store) => store.list());
    const { [refOf("one").key]: entry = {} } = beside.entries;
    beside.edit((entries) => delete entries[refOf("one").key]);
    const aside = beside.putAside("one", "deleted");
    expect(await beside.ask((store) => store.load(refOf("one")))).toBeNull();
    renameSync(aside, join(beside.folder, "one.jsonl"));
    beside.edit((entries) => (entries[refOf("one").key] = { ...entry, label: "back" }));
    const state = await beside.ask((store) => store.load(refOf("one")));
    expect(state).toMatchObject({ sessionId: "one", archived: false, messageCount: 1, entry: { label: "back" } });
    await beside.ask((store) => store.append(refOf("one"), [userDraft("on")]));
    expect(beside.textOf("one")).toContain('"on"');
  });

  it("is not what the store has deleted", async () => {
    const beside = new Beside("one", "two");
    await beside.ask((store) => store.list());
    await beside.ask(async (store) => {
      await store.remove(refOf("one"));
      beside.edit((entries) => Object.assign(entries[refOf("one").key] ?? {}, { other: 1 }));
    });
    expect(await beside.ask((store) => store.load(refOf("one")))).toBeNull();
    expect(beside.entries).not.toHaveProperty([refOf("one").key]);
  });
});

describe("a line that another program is in the middle of", () => {
  const line = (text: string): string =>
    `${JSON.stringify({ type: "message", id: text, parentId: null, timestamp: "2026-01-02T03:04:05.006Z", message: { role: "user", content: text } })}\n`;

  it("is waited for: a write shows in parts to whoever looks meanwhile", async () => {
    const beside = new Beside("one");
    await beside.ask(async (store) => {
      await store.list();
      await store.append(refOf("one"), [userDraft("before")]);
      const path = join(beside.folder, "one.jsonl");
      const text = line("theirs");
      appendFileSync(path, text.slice(0, 40));
      setTimeout(() => appendFileSync(path, text.slice(40)), 5);
      await store.append(refOf("one"), [userDraft("after")]);
      expect(await textsIn(store, refOf("one"))).toEqual(["first of one", "before", "theirs", "after"]);
    });
  });

  it("is not cut when it grows while its beginning is put aside, and whoever writes then comes behind it", async () => {
    const beside = new Beside("one");
    await beside.ask(async (store) => {
      await store.list();
      await store.append(refOf("one"), [userDraft("before")]);
    });
    const path = join(beside.folder, "one.jsonl");
    const text = line("theirs");
    appendFileSync(path, text.slice(0, 40));
    let rest = text.slice(40);
    const files: Files = {
      ...nodeFiles,
      flushFolder(folder) {
        nodeFiles.flushFolder(folder);
        if (folder.endsWith("/torn")) appendFileSync(path, rest);
        if (folder.endsWith("/torn")) rest = "";
      },
    };
    await beside.ask(
      async (store) => {
        await store.append(refOf("one"), [userDraft("after")]);
        expect(await textsIn(store, refOf("one"))).toEqual(["first of one", "before", "theirs", "after"]);
      },
      { files },
    );
    expect(readdirSync(join(beside.folder, "../throughline/torn"))).toEqual([]);
  });

  it("stays when a write of ours behind it fails half way", async () => {
    const beside = new Beside("one");
    const path = join(beside.folder, "one.jsonl");
    let isFull = false;
    const files: Files = {
      ...nodeFiles,
      write(handle, bytes) {
        if (!isFull || nodeFiles.whereIs(handle)?.endsWith("one.jsonl") !== true) return nodeFiles.write(handle, bytes);
        // Theirs comes first, and what is left of the disk takes half of ours.
        appendFileSync(path, rest);
        if (rest === "") throw Object.assign(new Error("full"), { code: "ENOSPC" });
        rest = "";
        return nodeFiles.write(handle, bytes.subarray(0, 30));
      },
    };
    let rest = line("theirs");
    await beside.ask(
      async (store) => {
        await store.list();
        await store.append(refOf("one"), [userDraft("before")]);
        isFull = true;
        await expect(store.append(refOf("one"), [userDraft("ours")])).rejects.toMatchObject({ outcome: "unknown" });
        isFull = false;
      },
      { files },
    );
    expect(beside.textOf("one")).toContain(line("theirs"));
    await beside.ask((store) => store.append(refOf("one"), [userDraft("after")]));
    expect(await beside.ask((store) => textsIn(store, refOf("one")))).toEqual([
      "first of one",
      "before",
      "theirs",
      "after",
    ]);
  });
});

describe("a session that was made at less than disk", () => {
  it.each([".reset.2026-01-02T03-04-05.006Z", ".deleted.2026-01-02T03-04-05.006Z"])(
    "can be purged although another program moved its transcript to %s",
    async (suffix) => {
      const root = newFolder();
      const path = join(root, "agents/main/sessions/s1.jsonl");
      const ref = sessionRef({ key: "agent:main:main" });
      await using store = createJsonlStore({ root });
      await store.save(ref, { sessionId: "s1" }, { ifRevision: null, durability: "process" });
      renameSync(path, `${path}${suffix}`);
      await store.remove(ref, { purge: true });
      expect(await store.load(ref)).toBeNull();
      expect(readdirSync(join(root, "agents/main/sessions")).filter((name) => name.startsWith("s1"))).toEqual([]);
    },
  );
});
