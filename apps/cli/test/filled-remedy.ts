import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** The key of the session that a printed command is about. */
export const remedyKey = "agent:main:cli:direct:notes";

/** Fills in what a printed command leaves to a person: the key of a session, and a transcript to import from `folder`. */
export function filledRemedy(command: string, folder: string): string {
  if (!command.includes(" FILE ")) return command.replace("KEY", remedyKey);
  const path = join(folder, "source.jsonl");
  const line = { type: "user", uuid: "u1", parentUuid: null, sessionId: "s1", timestamp: "2026-01-01T00:00:01.000Z" };
  writeFileSync(path, `${JSON.stringify({ ...line, message: { role: "user", content: "Count the buoys." } })}\n`);
  // The session of the other commands is there already.
  return command.replace("FILE", path).replace("KEY", `${remedyKey}-again`);
}
