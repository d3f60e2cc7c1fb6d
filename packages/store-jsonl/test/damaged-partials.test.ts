import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hasErrorCode, type PartialReply, type SessionRef } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { expect, it } from "vitest";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:a" };
const said = { type: "message", message: { role: "user", content: "question" } };
const partial: PartialReply = {
  v: 1,
  sessionId: "a",
  turnId: "turn-1",
  fence: 1,
  step: 1,
  attempt: 0,
  afterSeq: 1,
  provider: "provider",
  api: "api",
  model: null,
  text: "the first words",
  updatedMs: 1,
};
const longer = { ...partial, text: `${partial.text}, and more`, updatedMs: 2 };

async function storeWithPartial(): Promise<{ readonly root: string; readonly path: string }> {
  const root = newFolder();
  await using store = createJsonlStore({ root });
  await store.save(ref, { sessionId: "a" }, { ifRevision: null });
  const turn = { action: "open", turnId: "turn-1", owner: "o", leaseUntilMs: 1, fence: 1 } as const;
  await store.append(ref, [said], { turn });
  await store.partials?.write(ref, partial);
  await store.partials?.write(ref, longer);
  const partials = join(root, "agents/main/throughline/partials");
  const [name = ""] = readdirSync(partials);
  return { root, path: join(partials, name) };
}

it("is read whole or refused, whichever bit of its file has changed", async () => {
  const { root, path } = await storeWithPartial();
  const whole = readFileSync(path);
  await using store = createJsonlStore({ root });
  const wrong: string[] = [];
  for (const at of whole.keys()) {
    const bytes = Uint8Array.from(whole);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8));
    writeFileSync(path, bytes);
    const found = await store.partials?.read(ref).catch((error: unknown) => {
      if (hasErrorCode(error, "STORE_CORRUPT", "STORE_VERSION_UNSUPPORTED")) return longer;
      throw error;
    });
    if (JSON.stringify(found) !== JSON.stringify(longer)) wrong.push(`byte ${at}: ${JSON.stringify(found)}`);
  }
  expect(wrong).toEqual([]);
});

it("is read as far as it was acknowledged, wherever the last line was cut off", async () => {
  const { root, path } = await storeWithPartial();
  const whole = readFileSync(path);
  const firstEnd = whole.indexOf("\n") + 1;
  await using store = createJsonlStore({ root });
  for (let length = firstEnd; length < whole.length; length++) {
    writeFileSync(path, whole.subarray(0, length));
    expect(await store.partials?.read(ref)).toEqual(partial);
  }
});

it("of an earlier version, without checksums, is read", async () => {
  const { root, path } = await storeWithPartial();
  writeFileSync(path, `${JSON.stringify(partial)}\n${JSON.stringify({ text: ", and more", at: 2 })}\n`);
  await using store = createJsonlStore({ root });
  expect(await store.partials?.read(ref)).toEqual(longer);
});
