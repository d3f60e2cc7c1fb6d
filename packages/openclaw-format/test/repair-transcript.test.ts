import { describe, expect, it } from "vitest";
import { repairTranscript } from "../src/repair-transcript.ts";

const header = '{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/ada"}';

function user(id: string, parentId: string | null): string {
  const message = { role: "user", content: `text of ${id}` };
  return JSON.stringify({ type: "message", id, parentId, timestamp: "2026-01-01T00:00:01.000Z", message });
}

async function* bytesOf(text: string, chunkBytes = 7): AsyncGenerator<Uint8Array, void, void> {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

async function repair(text: string): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of repairTranscript(bytesOf(text), { sessionId: "from-name" })) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}

describe("repairTranscript", () => {
  it.each([
    ["nowhere", "gone", "a"],
    ["behind it", "d", "a"],
    ["itself, which keeps nothing", "c", "c"],
    ["before it", "a", "a"],
  ])("a compaction that keeps from a record %s names one that readers find", async (_where, named, kept) => {
    const timestamp = "2026-01-01T00:00:02.000Z";
    const base = { type: "compaction", id: "c", parentId: "b", timestamp, summary: "s", tokensBefore: 5 };
    const compaction = JSON.stringify({ ...base, firstKeptEntryId: named });
    const text = `${[header, user("a", null), user("b", "a"), compaction, user("d", "c")].join("\n")}\n`;
    const copy = await repair(text);
    expect(JSON.parse(copy.split("\n")[3] ?? "")).toEqual({ ...base, firstKeptEntryId: kept });
    expect(await repair(copy)).toBe(copy);
  });

  it("gives back a good transcript byte for byte", async () => {
    const text = `${[header, user("a", null).replace("text of a", "\\u00e9 1"), user("b", "a")].join("\n")}\n`;
    expect(await repair(text)).toBe(text);
  });

  const newer = `${header.replace('"version":3', '"version":9')}\n${user("a", null)}\n`;

  it("is not repaired: what looks wrong may be right there", async () => {
    await expect(repair(newer)).rejects.toMatchObject({ code: "RECORD_FROM_NEWER_VERSION", details: { version: 9 } });
    expect(await repair(newer.replace('"version":9', '"version":4'))).toContain('"version":4');
  });
});
