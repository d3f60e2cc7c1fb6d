// Many sessions of a JSONL store, as the store leaves them, made in seconds: a transcript each and a line in the entries log.
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionRef } from "../packages/core/src/index.ts";
import { createPayloadCoder } from "../packages/store-kit/src/payload-coder.ts";
import { attachEnvelope } from "../packages/openclaw-format/src/line-envelope.ts";
import { createJsonlStore } from "../packages/store-jsonl/src/index.ts";
import { ownHeaderLine } from "../packages/store-jsonl/src/own-header.ts";
import { encodeRowChange } from "../packages/store-jsonl/src/session-row.ts";

export function refOfMany(index: number): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:telegram:direct:${index}` };
}

/** The entry of one of them, with what a channel leaves in it. */
export function entryOfMany(index: number): { readonly sessionId: string } & Readonly<Record<string, unknown>> {
  return {
    sessionId: `session-${index}`,
    label: `Conversation number ${index}`,
    lastChannel: "telegram",
    lastTo: `telegram:${index}`,
    deliveryContext: { channel: "telegram", to: `telegram:${index}`, accountId: "default" },
    origin: { provider: "telegram", surface: "telegram", label: `User ${index}`, chatType: "direct" },
    totalTokens: index,
  };
}

function recordLines(count: number, atMs: number): readonly string[] {
  const timestamp = new Date(atMs).toISOString();
  return Array.from({ length: count }, (_, index) => {
    const parentId = index === 0 ? null : `r${index}`;
    const message = { role: index % 2 === 0 ? "user" : "assistant", content: `text ${index}` };
    const record = { type: "message", id: `r${index + 1}`, parentId, timestamp, message };
    return attachEnvelope(JSON.stringify(record), { seq: index + 1, at: atMs });
  });
}

/** Makes so many sessions in a root that is empty; each but the first has so many records. */
export async function makeManySessions(root: string, count: number, recordsEach: number = 0): Promise<void> {
  const agent = join(root, "agents/main");
  {
    await using store = createJsonlStore({ root, sessionsJson: false });
    await store.save(refOfMany(0), { sessionId: "session-0" }, { ifRevision: null });
  }
  const codec = { coder: createPayloadCoder(undefined), isCoded: false };
  const nowMs = Date.now();
  const lines: string[] = [];
  for (let index = 1; index < count; index++) {
    const entry = entryOfMany(index);
    const { sessionId } = entry;
    const { key } = refOfMany(index);
    const fileName = `${sessionId}.jsonl`;
    const times = { createdAtMs: nowMs - count + index, updatedAtMs: nowMs - count + index };
    const row = { sessionId, key, revision: 1, fileName, isArchived: false, entry, ...times };
    lines.push(encodeRowChange({ op: "save", rows: [row] }, codec, { namespace: "", agentId: "main" }));
    const transcript = [ownHeaderLine(row, ""), ...recordLines(recordsEach, times.createdAtMs)];
    writeFileSync(join(agent, "sessions", fileName), `${transcript.join("\n")}\n`);
  }
  appendFileSync(join(agent, "throughline/entries.log"), lines.map((line) => `${line}\n`).join(""));
}
