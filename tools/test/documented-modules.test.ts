import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { formatSessionKey } from "../../packages/core/src/session-key.ts";
import { parseSessionKey, peerSessionKey } from "../../packages/core/src/index.ts";
import { buildContext } from "../../packages/history/src/index.ts";
import { limitContext } from "../../packages/history/src/limit-context.ts";
import { assistant, storedRecords, user } from "../../packages/history/test/stored-records.ts";
import { planReset, planRetention, readResetPolicy } from "../../packages/policy/src/index.ts";
import { checkLayers, forbiddenImport } from "../check-layers.ts";
import { layerOf } from "../layer-table.ts";

/** Each concern of the documents, and the package that has it alone. */
const concerns: Readonly<Record<string, string>> = {
  "record types": "core",
  "JSON Lines": "openclaw-format",
  "context building": "history",
  checkpoints: "checkpoint",
  compaction: "compaction",
  "token counting": "tokens",
};

describe("what the documents ask of the parts", () => {
  it(
    "record types, JSON Lines, contexts, checkpoints, compaction and tokens are modules of their own",
    { tags: ["slow"] },
    () => {
      const packages = Object.values(concerns);
      expect(new Set(packages).size).toBe(packages.length);
      for (const name of packages) expect([name, layerOf(name) === null]).toEqual([name, false]);
      // Each is usable without what stands beside or above it.
      const forbidden: readonly (readonly [string, readonly string[]])[] = [
        ["core", ["openclaw-format", "history", "checkpoint", "compaction", "tokens"]],
        ["openclaw-format", ["history", "checkpoint", "compaction", "tokens"]],
        ["history", ["openclaw-format", "checkpoint", "compaction", "tokens"]],
        ["tokens", ["openclaw-format", "history", "checkpoint", "compaction"]],
        ["checkpoint", ["compaction"]],
        ["compaction", ["checkpoint"]],
      ];
      for (const [importer, names] of forbidden)
        for (const name of names)
          expect([importer, name, forbiddenImport(importer, name) === null]).toEqual([importer, name, false]);
      // And the sources keep to it.
      const said = checkLayers(join(import.meta.dirname, "../..")).map(String);
      expect(said.filter((line) => packages.some((name) => line.startsWith(`packages/${name}/`)))).toEqual([]);
    },
  );

  it("peer kinds in keys, a time to live and a history limit are there", () => {
    for (const peerKind of ["direct", "group", "channel"] as const) {
      const key = peerSessionKey({ agentId: "main", channel: "discord", peerKind, peerId: "7" });
      const parsed = parseSessionKey(key);
      expect(parsed.form === "agent" && parsed.rest.kind === "peer" && parsed.rest.peerKind).toBe(peerKind);
      expect(formatSessionKey(parsed)).toBe(key);
    }
    const idle = readResetPolicy({ reset: { mode: "idle", idleMinutes: 10 } });
    const at = (nowMs: number) =>
      planReset({ policy: idle, key: "agent:main:main", lastActivityMs: 0, nowMs, timeZone: "UTC" }).isDue;
    expect([at(599_999), at(600_001)]).toEqual([false, true]);
    const session = { key: "agent:main:x", sessionId: "s", state: "active", updatedAtMs: 0, sizeBytes: 1 } as const;
    const livesUntil = (nowMs: number) => planRetention([session], { olderThanMs: 1000 }, nowMs).steps.length;
    expect([livesUntil(1000), livesUntil(1001)]).toEqual([0, 1]);
    const talk = Array.from({ length: 10 }, (_, n) => [user(`q${n}`), assistant(`a${n}`)]).flat();
    const limited = limitContext(buildContext(storedRecords(talk)), { maxMessages: 6 });
    expect(limited.messages.length).toBeLessThanOrEqual(6);
    expect(limited.omitted).toEqual([expect.objectContaining({ reason: "window" })]);
  });
});
