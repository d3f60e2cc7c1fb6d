import { createHash } from "node:crypto";
import process from "node:process";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { SessionRef, SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createSqliteStore } from "@throughline/store-sqlite";
import { copySessions, exportSession } from "@throughline/transfer";
import { describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { fixtureFolder } from "./fixture-folder.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:main" };
const files = 20;
const fileBytes = testSize({ short: 2, long: 20 }) * 1_000_000;

/** What is held in memory after a collection, on the heap and beside it. Only a second one waits until the buffers of the first are free. */
function heldBytes(): number {
  collect();
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

async function* content(number: number): AsyncGenerator<Uint8Array> {
  yield Buffer.from("%PDF-1.7");
  for (let at = 8; at < fileBytes; at += 100_000) yield Buffer.alloc(100_000, number);
}

async function fill(store: SessionStore): Promise<void> {
  await store.save(ref, { sessionId: "one" }, { ifRevision: null });
  for (let number = 0; number < files; number += 1) {
    const { id } = await store.files!.put(ref, content(number));
    const block = { type: "file", fileId: id, mediaType: "application/pdf", name: `${number}.pdf` };
    await store.append(ref, [{ type: "message", message: { role: "user", content: [block] } }]);
  }
}

describe(`a session with ${files} files of ${fileBytes / 1_000_000} MB`, () => {
  it("is exported and copied with less than two of them in memory", { timeout: 600_000 }, async () => {
    using folder = fixtureFolder({});
    await using store = createSqliteStore({ path: folder.at("store.db") });
    await using target = createJsonlStore({ root: folder.at("store") });
    await fill(store);
    const before = heldBytes();
    let [most, written, looked] = [0, 0, 0];
    const hash = createHash("sha256");
    for await (const piece of exportSession(store, ref, { to: "claude-code" })) {
      hash.update(piece);
      written += piece.length;
      if (written - looked < 4_000_000) continue;
      looked = written;
      most = Math.max(most, heldBytes() - before);
    }
    expect(written).toBeGreaterThan((files * fileBytes * 4) / 3);
    const timer = setInterval(() => (most = Math.max(most, heldBytes() - before)), 100);
    for await (const { state } of copySessions(store, target)) expect(state).toBe("imported");
    clearInterval(timer);
    expect((await Array.fromAsync(target.files!.list(ref))).flat()).toHaveLength(files);
    expect(most, `${Math.round(most / 1e6)} MB`).toBeLessThan(2 * fileBytes);
  });
});
