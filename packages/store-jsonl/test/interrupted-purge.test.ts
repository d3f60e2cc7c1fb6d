import { sessionRef } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { simulatedStore } from "./crash-explorer.ts";
import { crashStates } from "./crash-states.ts";
import { userDraft } from "./session-fixture.ts";
import { createSimulatedDisk, systemError, type DiskImage, type SimulatedDisk } from "./simulated-disk.ts";

const sessions = "/store/agents/main/sessions";
const named = sessionRef({ key: "agent:main:telegram:direct:1" });
const timestamp = "2026-01-02T03:04:05.006Z";
const words = "what had to go";

/** A session of another program with a label of ours, whose file is called as it likes. */
async function diskWith(fileName: string): Promise<SimulatedDisk> {
  const lines = [
    { type: "session", version: 3, id: "f1", timestamp, cwd: "/" },
    { type: "message", id: "m1", parentId: null, timestamp, message: { role: "user", content: words } },
  ];
  const folders = ["/", "/store", "/store/agents", "/store/agents/main", sessions].map((path) => [path, null] as const);
  const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const entry = { sessionId: "f1", sessionFile: `/elsewhere/${fileName}`, label: "theirs" };
  const index = Buffer.from(JSON.stringify({ [named.key]: entry }));
  const files = [
    [`${sessions}/${fileName}`, bytes],
    [`${sessions}/sessions.json`, index],
  ] as const;
  const disk = createSimulatedDisk(new Map([...folders, ...files]));
  const store = simulatedStore(disk, { called: "a", sessionsJson: false });
  await store.append(named, [userDraft("ours")]);
  await store.append(named, [], { entry: { label: words } });
  await store.close();
  return createSimulatedDisk(disk.image());
}

function filesWith(disk: SimulatedDisk, text = words): readonly string[] {
  return [...disk.image()].flatMap(([path, bytes]) => (Buffer.from(bytes ?? []).includes(text) ? [path] : []));
}

describe("a purge that is interrupted", () => {
  it.for(["f1.jsonl", "2026-01-02_f1.jsonl"])(
    "at any call leaves the session, or is finished by whoever looks next, for a file called %s",
    async (fileName) => {
      const found = new Set<string>();
      let isReached = true;
      for (let place = 1; isReached; place++) {
        const disk = await diskWith(fileName);
        const store = simulatedStore(disk, { called: "k", sessionsJson: false });
        await store.load(named);
        let calls = 0;
        isReached = false;
        disk.onCall = () => {
          isReached ||= ++calls >= place;
          if (isReached) throw systemError("EIO");
          return undefined;
        };
        await store.remove(named, { purge: true }).catch(() => undefined);
        disk.onCall = () => undefined;
        const next = simulatedStore(disk, { called: "n", sessionsJson: false });
        const listed = (await next.list({ state: "any" })).sessions.map(({ ref, entry }) => [ref.key, entry["label"]]);
        await next.close();
        if (listed.length > 0) expect(listed).toEqual([[named.key, words]]);
        else expect(filesWith(disk)).toEqual([]);
        found.add(listed.length > 0 ? "there" : "gone");
      }
      expect([...found]).toEqual(["there", "gone"]);
    },
  );

  it("at any call among others leaves each session, or is finished with them by whoever looks next", async () => {
    const keys = ["one", "two", "three"].map((name) => `agent:main:telegram:direct:${name}`);
    const found = new Set<number>();
    let isReached = true;
    for (let place = 1; isReached; place++) {
      const disk = createSimulatedDisk(new Map([["/", null] as const, ["/store", null] as const]));
      const store = simulatedStore(disk, { called: "k", sessionsJson: false });
      for (const key of keys) {
        const ref = sessionRef({ key });
        await store.save(ref, { sessionId: key.slice(-3), label: `hidden ${key}.` }, { ifRevision: null });
        await store.append(ref, [userDraft(`hidden ${key}.`)]);
      }
      let calls = 0;
      isReached = false;
      disk.onCall = () => {
        isReached ||= ++calls >= place;
        if (isReached) throw systemError("EIO");
        return undefined;
      };
      await Promise.allSettled(keys.map((key) => store.remove(sessionRef({ key }), { purge: true })));
      disk.onCall = () => undefined;
      const next = simulatedStore(disk, { called: "n", sessionsJson: false });
      const listed = (await next.list({ state: "any" })).sessions.map(({ ref }) => ref.key);
      for (const key of keys) {
        if (listed.includes(key)) expect(await next.load(sessionRef({ key }))).toMatchObject({ messageCount: 1 });
        else expect(filesWith(disk, `hidden ${key}.`)).toEqual([]);
      }
      await next.close();
      found.add(listed.length);
    }
    expect([...found].toSorted()).toEqual([0, 1, 2, 3]);
  });

  it(
    "is finished only once its line is on the disk: a power cut leaves the whole session, or nothing",
    { tags: ["slow"] },
    async () => {
      const disk = await diskWith("f1.jsonl");
      const killed = (): never => {
        throw systemError("EIO");
      };
      const files = { ...disk.files, flushNow: killed };
      const store = simulatedStore(disk, { called: "k", sessionsJson: false, files });
      await expect(store.remove(named, { purge: true })).rejects.toThrow();
      const images: DiskImage[] = [];
      const keep = (): void => void images.push(...crashStates(disk.moment(), { cutEveryBytes: 100_000 }));
      keep();
      disk.onChange = keep;
      const next = simulatedStore(disk, { called: "n", sessionsJson: false });
      expect((await next.list({ state: "any" })).sessions).toEqual([]);
      await next.close();
      const found = new Set<number | null>();
      for (const image of images) {
        const after = simulatedStore(createSimulatedDisk(image), { called: "o", sessionsJson: false });
        found.add((await after.load(named))?.messageCount ?? null);
        await after.close();
      }
      expect([...found].toSorted()).toEqual([2, null]);
    },
  );

  it("is no reason for a list to fail where it cannot be finished", async () => {
    const disk = await diskWith("f1.jsonl");
    const store = simulatedStore(disk, { called: "k", sessionsJson: false });
    await store.load(named);
    let isDead = false;
    disk.onCall = (call) => {
      isDead ||= call === "remove" || call === "flushNow";
      if (isDead) throw systemError("EIO");
      return undefined;
    };
    await expect(store.remove(named, { purge: true })).rejects.toMatchObject({ outcome: "unknown" });
    const codes: string[] = [];
    const next = simulatedStore(disk, {
      called: "n",
      sessionsJson: false,
      onEvent: (event) => void (event.name === "finding" && codes.push(event.finding.code)),
    });
    disk.onCall = (call) => {
      if (call !== "open") throw systemError("ENOSPC");
      return undefined;
    };
    for (let look = 0; look < 2; look++) expect((await next.list({ state: "any" })).sessions).toEqual([]);
    expect(codes).toEqual(["FILE_UNREADABLE"]);
    disk.onCall = () => undefined;
    await next.list();
    expect(filesWith(disk)).toEqual([]);
    await next.close();
  });
});
