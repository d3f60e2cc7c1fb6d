// A transcript of any size as the JSONL store writes it, made at the speed of the disk.
import { appendFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { SessionRef } from "../../packages/core/src/index.ts";
import { attachEnvelope } from "../../packages/openclaw-format/src/line-envelope.ts";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";

export const longRef: SessionRef = { namespace: "", agentId: "main", key: "agent:main:long" };

/** Below the root of the store. */
export const longPath = "agents/main/sessions/long.jsonl";

/**
 * Makes the session {@link longRef} of about so many bytes, and after them a window of 1.5 MB, appended by the store.
 * Gives the byte at which the window begins.
 */
export async function makeLongTranscript(root: string, sizeBytes: number): Promise<number> {
  await using store = createJsonlStore({ root, sessionsJson: false });
  await store.save(longRef, { sessionId: "long" }, { ifRevision: null });
  const path = join(root, longPath);
  const content = "x".repeat(700);
  const timestamp = "2026-01-02T03:04:05.006Z";
  let seq = 0;
  for (let written = 0; written < sizeBytes - 1_500_000;) {
    const lines: string[] = [];
    for (let each = 0; each < 2000; each++) {
      const parentId = seq === 0 ? null : `r${seq}`;
      const record = { type: "message", id: `r${++seq}`, parentId, timestamp, message: { role: "user", content } };
      lines.push(attachEnvelope(JSON.stringify(record), { seq, at: 1_767_323_045_006 }));
    }
    const text = `${lines.join("\n")}\n`;
    appendFileSync(path, text);
    written += text.length;
  }
  const draft = { type: "message", message: { role: "user", content } };
  const windowAt = statSync(path).size;
  await store.append(longRef, [draft], { windowFromSeq: seq + 1, durability: "process" });
  const drafts = Array.from({ length: 100 }, () => draft);
  for (let each = 0; each < 1500; each += 100) await store.append(longRef, drafts, { durability: "process" });
  return windowAt;
}
