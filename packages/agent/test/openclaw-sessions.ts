import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Writes two sessions as OpenClaw keeps them below the user's directory. Returns their folder. */
export function writeOpenclawSessions(userHome: string): string {
  const folder = join(userHome, ".openclaw/agents/main/sessions");
  mkdirSync(folder, { recursive: true });
  const entries: Record<string, object> = {};
  for (const [key, id] of [
    ["agent:main:main", "s1"],
    ["agent:main:discord:dm:ada", "s2"],
  ] as const) {
    const header = { type: "session", version: 3, id, timestamp: "2026-01-01T00:00:00.000Z", cwd: "/home/ada" };
    const message = { role: "user", content: `where are the lamps of ${id}?` };
    const record = { type: "message", id: `${id}-a`, parentId: null, timestamp: "2026-01-01T00:00:01.000Z", message };
    writeFileSync(join(folder, `${id}.jsonl`), `${JSON.stringify(header)}\n${JSON.stringify(record)}\n`);
    entries[key] = { sessionId: id, updatedAt: 1_767_225_601_000 };
  }
  writeFileSync(join(folder, "sessions.json"), JSON.stringify(entries));
  return folder;
}
