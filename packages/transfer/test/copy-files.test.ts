import { hasErrorCode, type SessionRef, type SessionStore } from "@throughline/core";
import { forkByCopy } from "@throughline/core/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { copySessions, exportSession } from "@throughline/transfer";
import { describe, expect, it } from "vitest";
import type { ExportRemark } from "../src/export-types.ts";
import { inspectStore } from "../src/findings/inspect-store.ts";
import { fixtureFolder } from "./fixture-folder.ts";

const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:main" };

async function* content(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("%PDF-1.7 small");
}

async function* other(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("other");
}

async function filled(): Promise<{ readonly store: SessionStore; readonly id: string }> {
  const store = createMemoryStore();
  const { id } = await store.files!.put(ref, content());
  await store.save(ref, { sessionId: "one" }, { ifRevision: null });
  const message = { role: "user", content: [{ type: "file", fileId: id, name: "a.pdf" }] };
  await store.append(ref, [{ type: "message", message }]);
  return { store, id };
}

async function textOf(store: SessionStore, id: string, at: SessionRef = ref): Promise<string> {
  return Buffer.concat(await Array.fromAsync(store.files!.get(at, id))).toString();
}

function withoutFiles(store: SessionStore): SessionStore {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = name === "files" ? undefined : Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

describe("a copy of sessions", () => {
  it("has the files that its records refer to, in every store", async () => {
    using folder = fixtureFolder({});
    const { store, id } = await filled();
    for (const to of [
      createMemoryStore(),
      createSqliteStore({ path: folder.at("store.db") }),
      createJsonlStore({ root: folder.at("store") }),
    ]) {
      await using target = to;
      for (const state of ["imported", "unchanged"]) {
        const results = await Array.fromAsync(copySessions(store, target));
        expect(results.map((result) => result.state)).toEqual([state]);
      }
      expect(await textOf(target, id)).toBe("%PDF-1.7 small");
      const files = (await Array.fromAsync(target.files!.list(ref))).flat();
      expect(files.map(({ references }) => references)).toEqual([1]);
    }
  });

  it("is refused by a store that keeps no files, and leaves nothing there", async () => {
    const { store } = await filled();
    const target = withoutFiles(createMemoryStore());
    const [result] = await Array.fromAsync(copySessions(store, target));
    expect(result?.state).toBe("refused");
    expect(hasErrorCode(result?.error, "CAPABILITY_UNSUPPORTED")).toBe(true);
  });

  it("for another agent has files of its own", async () => {
    const { store, id } = await filled();
    const other = { ...ref, agentId: "other", key: "agent:other:main" };
    await forkByCopy({ store, ref }, { store, ref: other }, { sessionId: "two" });
    expect(await textOf(store, id, other)).toBe("%PDF-1.7 small");
    await store.remove(ref, { purge: true });
    expect(await store.files!.stat(ref, id)).toBeNull();
    expect(await textOf(store, id, other)).toBe("%PDF-1.7 small");
  });
});

describe("a check of a store", () => {
  it("finds files that are missing, and files that nothing refers to", async () => {
    const { store, id } = await filled();
    const findings = async (): Promise<string[]> =>
      (await Array.fromAsync(inspectStore(store))).map(({ code }) => code);
    expect(await findings()).toEqual([]);
    await store.files!.delete(ref, id);
    expect(await findings()).toEqual(["FILE_MISSING"]);
    const unused = await store.files!.put(ref, other());
    const found = await Array.fromAsync(inspectStore(store));
    expect(found.map(({ code }) => code).toSorted()).toEqual(["FILE_MISSING", "FILE_UNUSED"]);
    expect(found.find(({ code }) => code === "FILE_UNUSED")?.message).toContain(unused.id);
  });
});

describe("an export to another program", () => {
  it("has the bytes of a file in the form of that program, or reports that they are left out", async () => {
    const { store } = await filled();
    const pdf = Buffer.from("%PDF-1.7 small").toString("base64");
    const { id } = await store.files!.put(ref, other());
    await store.append(ref, [
      { type: "message", message: { role: "user", content: [{ type: "file", fileId: id, mediaType: "image/png" }] } },
    ]);
    for (const [to, isPdfKept] of [
      ["claude-code", true],
      ["codex", false],
      ["pi", false],
      ["jsonl", false],
    ] as const) {
      const remarks: string[] = [];
      const onRemark = ({ what, reason, kind }: ExportRemark): void => void remarks.push(`${what} ${kind ?? reason}`);
      const text = Buffer.concat(await Array.fromAsync(exportSession(store, ref, { to, onRemark }))).toString();
      expect([to, text.includes(pdf) || remarks.some((remark) => remark.startsWith("left-out"))]).toEqual([to, true]);
      if (isPdfKept) expect(text).toContain(pdf);
    }
  });
});

describe("an export in the format of another program", () => {
  it("has the bytes of every file in its place, as base64", async () => {
    const store = createMemoryStore();
    const contents = [0, 1, 2, 3, 300_000, 262_144].map((length, at) =>
      Buffer.concat([Buffer.from("%PDF-1.7"), Buffer.alloc(length, at + 65)]),
    );
    const blocks: object[] = [];
    for (const bytes of contents) {
      const { id } = await store.files!.put(ref, new Blob([Uint8Array.from(bytes)]).stream());
      blocks.push({ type: "file", fileId: id, mediaType: "application/pdf", name: "a.pdf" });
    }
    await store.save(ref, { sessionId: "one" }, { ifRevision: null });
    await store.append(ref, [{ type: "message", message: { role: "user", content: [...blocks, blocks[0]] } }]);
    for (const to of ["claude-code", "gemini"] as const) {
      const text = Buffer.concat(await Array.fromAsync(exportSession(store, ref, { to }))).toString();
      for (const bytes of contents) expect(text.split(`"${bytes.toString("base64")}"`).length).toBeGreaterThan(1);
    }
  });

  it("has the text of a text file, and nothing of one that is gone", async () => {
    await using store = createMemoryStore();
    const { id } = await store.files!.put(ref, other());
    await store.save(ref, { sessionId: "one" }, { ifRevision: null });
    const block = { type: "file", fileId: id, mediaType: "text/csv", name: "a.csv" };
    await store.append(ref, [{ type: "message", message: { role: "user", content: [block] } }]);
    const exported = async (): Promise<string> =>
      Buffer.concat(await Array.fromAsync(exportSession(store, ref, { to: "claude-code" }))).toString();
    expect(await exported()).toContain('"media_type":"text/plain","data":"other"},"title":"a.csv"');
    await store.files!.delete(ref, id);
    expect(await exported()).not.toContain('"data":"other"');
  });
});
