import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { SessionRecord } from "../../packages/core/src/index.ts";
import type { DamageKind, ForeignLine, HistoryStep } from "./history-steps.ts";
import { appendLineToModel } from "../../packages/store-conformance/src/model/append-to-model.ts";
import type { ModelSession, SessionModel } from "../../packages/store-conformance/src/model/session-model.ts";

/** What happens to the files of a JSON Lines store without its handles: all of it allowed by its README. */
export interface OtherPrograms {
  /** Whether all handles have to be closed for it: only then the index is a file like others. */
  needsClosed(damage: DamageKind): boolean;
  damage(step: Extract<HistoryStep, { kind: "damage" }>): void;
  /** A line at the end of a transcript. */
  writeLine(step: Extract<HistoryStep, { kind: "foreign line" }>, session: ModelSession, at: number): void;
  /** False when there is no transcript of the session. */
  act(step: Extract<HistoryStep, { kind: "transcript act" }>, session: ModelSession): boolean;
  /** A field of `sessions.json`, which is put in place whole, as OpenClaw does it. */
  edit(step: Extract<HistoryStep, { kind: "edit" }>, session: ModelSession, at: number): void;
}

export function createOtherPrograms(folder: string, model: SessionModel): OtherPrograms {
  const agents = join(folder, "store", "agents");
  const indexJournals = ["index.db-wal", "index.db-shm"];
  return {
    needsClosed: (damage) => damage.startsWith("index") && damage !== "index removed",
    damage({ damage, agentId, cutAt }) {
      const own = join(agents, agentId, "throughline");
      const index = join(own, "index.db");
      const remove = (...names: readonly string[]): void => {
        for (const name of names) rmSync(join(own, name), { force: true });
      };
      if (damage === "index removed") remove("index.db", ...indexJournals);
      else if (damage === "index journal removed") remove(...indexJournals);
      else if (damage === "sessions.json removed")
        rmSync(join(agents, agentId, "sessions/sessions.json"), { force: true });
      else if (!existsSync(index)) return;
      else if (damage === "index overwritten") writeFileSync(index, "garbage".repeat(1000));
      else if (damage === "index cut") truncateSync(index, Math.floor(statSync(index).size * cutAt));
      else {
        const earlier = join(folder, `index-of-${agentId}`);
        if (existsSync(earlier)) copyFileSync(earlier, index);
        else copyFileSync(index, earlier);
      }
    },
    writeLine({ line, text, aheadMs }, { ref, sessionId, headId }, at) {
      const path = join(agents, ref.agentId, "sessions", `${sessionId}.jsonl`);
      if (!existsSync(path)) return;
      const timestamp = new Date(model.nowMs + aheadMs).toISOString();
      const base = { id: `theirs${at}`, parentId: headId, timestamp };
      const record = foreignRecord(line, base, text);
      const written = `${JSON.stringify(record)}${line === "message with a carriage return" ? "\r" : ""}`;
      appendFileSync(path, `${written}\n`);
      appendLineToModel(model, ref, written, record);
    },
    act({ act, lines }, { ref, sessionId }) {
      const path = join(agents, ref.agentId, "sessions", `${sessionId}.jsonl`);
      if (!existsSync(path)) return false;
      if (act === "deleted") rmSync(path);
      else if (act.startsWith("moved to "))
        renameSync(path, `${path}${act.slice("moved to ".length)}.2026-01-02T03-04-05.006Z`);
      else {
        const all = readFileSync(path, "latin1").split(/(?<=\n)/);
        const count = act === "emptied" ? 0 : act === "header only" ? 1 : Math.max(0, all.length - lines);
        truncateSync(path, all.slice(0, count).join("").length);
      }
      return true;
    },
    edit({ field, isUnset }, session, at) {
      const { agentId, key } = session.ref;
      const path = join(agents, agentId, "sessions/sessions.json");
      if (!existsSync(path)) return;
      const entries = JSON.parse(readFileSync(path, "utf8")) as Record<string, Record<string, unknown>>;
      const theirs = Object.hasOwn(entries, key) ? entries[key] : undefined;
      // The file may lag behind: then OpenClaw does not know of the session yet.
      if (theirs === undefined || theirs["sessionId"] !== session.sessionId) return;
      const entry: Record<string, unknown> = { ...session.entry };
      for (const each of [theirs, entry]) {
        if (isUnset) delete each[field];
        else each[field] = `at ${at}`;
      }
      session.entry = { ...entry, sessionId: session.sessionId };
      session.isTouchedByOthers = true;
      writeFileSync(`${path}.theirs`, JSON.stringify(entries, null, 2));
      renameSync(`${path}.theirs`, path);
    },
  };
}

function foreignRecord(
  line: ForeignLine,
  base: Pick<SessionRecord, "id" | "parentId" | "timestamp">,
  text: string,
): SessionRecord {
  switch (line) {
    case "custom":
      return { type: "custom", ...base, customType: "x", data: text };
    case "label":
      return { type: "label", ...base, targetId: base.parentId, label: "l" };
    case "name":
      return { type: "session_info", ...base, name: text };
    default:
      return { type: "message", ...base, message: { role: "user", content: text } };
  }
}
