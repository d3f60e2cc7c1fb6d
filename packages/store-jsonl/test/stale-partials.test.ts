import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Finding, PartialReply, SessionRef, SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:a" };
const said = { type: "message", message: { role: "user", content: "question" } };

function partialOf(fence: number): PartialReply {
  return {
    v: 1,
    sessionId: "a",
    turnId: `turn-${fence}`,
    fence,
    step: 1,
    attempt: 0,
    afterSeq: 1,
    provider: "provider",
    api: "api",
    model: null,
    text: "the first words",
    updatedMs: 1,
  };
}

async function openTurn(store: SessionStore, fence: number): Promise<void> {
  const turn = { action: "open", turnId: `turn-${fence}`, owner: "o", leaseUntilMs: 1, fence } as const;
  await store.append(ref, [said], { turn });
}

/** A store with an open reply, closed. */
async function storeWithPartial(): Promise<{ readonly root: string; readonly partials: string }> {
  const root = newFolder();
  await using store = createJsonlStore({ root });
  await store.save(ref, { sessionId: "a" }, { ifRevision: null });
  await openTurn(store, 1);
  await store.partials?.write(ref, partialOf(1));
  return { root, partials: join(root, "agents/main/throughline/partials") };
}

/** What a program without partials does: the file stays. */
async function leaving(partials: string, work: () => Promise<unknown>): Promise<void> {
  const kept = readdirSync(partials).map((name) => [name, readFileSync(join(partials, name))] as const);
  expect(kept).toHaveLength(1);
  await work();
  for (const [name, bytes] of kept) writeFileSync(join(partials, name), bytes);
}

async function findingsOf(findings: AsyncIterable<Finding> | undefined): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  for await (const finding of findings ?? []) found.push(finding);
  return found;
}

describe("a partial that an earlier program left", () => {
  it.each([
    ["purged", { purge: true }],
    ["archived", {}],
  ])("is reported by verify and deleted by the next list, when its session was %s", async (_name, how) => {
    const { root, partials } = await storeWithPartial();
    await leaving(partials, async () => {
      await using store = createJsonlStore({ root });
      await store.remove(ref, how);
    });
    await using store = createJsonlStore({ root });
    const stale = (await findingsOf(store.maintenance?.verify())).filter(({ code }) => code === "PARTIAL_STALE");
    expect(stale.map(({ path }) => path)).toEqual([join(partials, "a.1.jsonl")]);
    expect(readdirSync(partials)).toHaveLength(1);
    await store.list();
    expect(readdirSync(partials)).toEqual([]);
    expect(await findingsOf(store.maintenance?.verify())).toEqual([]);
  });

  it("is deleted by a repair, when its turn was closed or taken over", async () => {
    for (const end of ["close", "take over"] as const) {
      const { root, partials } = await storeWithPartial();
      await leaving(partials, async () => {
        await using store = createJsonlStore({ root });
        if (end === "take over") await openTurn(store, 2);
        else await store.append(ref, [said], { turn: { action: "close", fence: 1 } });
      });
      await using store = createJsonlStore({ root });
      await store.list();
      expect(readdirSync(partials)).toHaveLength(1);
      const repaired = await findingsOf(store.maintenance?.repair());
      expect(repaired.filter(({ code }) => code === "PARTIAL_STALE")).toMatchObject([{ repaired: true, key: ref.key }]);
      expect(readdirSync(partials)).toEqual([]);
    }
  });

  it("is deleted by the first partial of the next turn", async () => {
    const { root, partials } = await storeWithPartial();
    await using store = createJsonlStore({ root });
    await openTurn(store, 2);
    await store.partials?.write(ref, partialOf(2));
    expect(readdirSync(partials)).toEqual(["a.2.jsonl"]);
  });

  it("stays while its turn is open: no list, verify or repair touches it", async () => {
    const { root, partials } = await storeWithPartial();
    await using store = createJsonlStore({ root });
    await store.list();
    expect(await findingsOf(store.maintenance?.verify({ full: true }))).toEqual([]);
    await findingsOf(store.maintenance?.repair());
    expect(await store.partials?.read(ref)).toEqual(partialOf(1));
    expect(existsSync(join(partials, "a.1.jsonl"))).toBe(true);
  });

  it("is not deleted by a redaction that is refused, and is by one that is not", async () => {
    const { root, partials } = await storeWithPartial();
    await using store = createJsonlStore({ root });
    const refused = store.redact(ref, ["nobody"], { reason: "test" });
    await expect(refused).rejects.toMatchObject({ code: "RECORD_NOT_FOUND", outcome: "not-applied" });
    expect(await store.partials?.read(ref)).toEqual(partialOf(1));
    const [id = ""] = await Array.fromAsync(store.read(ref), ({ records }) => records[0]?.id ?? "");
    await store.redact(ref, [id], { reason: "test" });
    expect(readdirSync(partials)).toEqual([]);
  });
});

describe("a stored partial", () => {
  const damages: readonly (readonly [string, (text: string) => string, string])[] = [
    ["of a later version", (text) => text.replace('"v":1', '"v":2'), "STORE_VERSION_UNSUPPORTED"],
    ["that is no JSON", (text) => text.replace('"v":1', '"v:1'), "STORE_CORRUPT"],
    ["without a field", (text) => text.replace('"step":1', '"other":1'), "STORE_CORRUPT"],
    ["of JSON that is no object", () => "7\n", "STORE_CORRUPT"],
  ];
  it.each(damages)("%s is refused, and the next one replaces it", async (_name, damage, code) => {
    const { root, partials } = await storeWithPartial();
    const path = join(partials, "a.1.jsonl");
    writeFileSync(path, damage(readFileSync(path, "utf8")));
    await using store = createJsonlStore({ root });
    await expect(store.partials?.read(ref)).rejects.toMatchObject({ code });
    await store.partials?.write(ref, partialOf(1));
    expect(await store.partials?.read(ref)).toEqual(partialOf(1));
  });
});
