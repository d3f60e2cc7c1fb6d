import { isFields, type Fields } from "@throughline/core/internal";
import { fileOfLines, type ForeignFormat } from "../foreign-format.ts";
import { matchOfLines, objectIn } from "../sample-lines.ts";
import { isBareHeader, isBareItem } from "./codex-lines.ts";
import { createCodexReader } from "./read-codex.ts";
import { codexWriter } from "./write-codex.ts";

const rollout = /^rollout-.{1,80}\.jsonl$/;
const compressed = /^rollout-.{1,80}\.jsonl\.zst$/;
const year = /^\d{4}$/;
const twoDigits = /^\d{2}$/;

/**
 * The format covers Codex's sessions, `sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`, and archived sessions.
 */
export const codexFormat: ForeignFormat = {
  name: "codex",
  program: "Codex",
  layout: () => fileOfLines,
  places: [
    {
      variables: ["CODEX_HOME"],
      home: ".codex",
      files: [
        ["sessions", year, twoDigits, twoDigits, rollout],
        ["archived_sessions", rollout],
        // Newer versions compress files. The import lists them so that it can report them.
        ["sessions", year, twoDigits, twoDigits, compressed],
        ["archived_sessions", compressed],
      ],
    },
  ],
  detect: (sample) => {
    const isNamed = rollout.test(sample.path.split(/[/\\]/).at(-1) ?? "");
    return matchOfLines(sample, (line) => {
      if (isEnveloped(line)) return "certain";
      return isNamed && (isBareHeader(line) || isBareItem(line)) ? "likely" : null;
    });
  },
  createReader: createCodexReader,
  companion: {
    path: (file) => {
      const home =
        /^(.{0,4000}?)[/\\](?:sessions[/\\]\d{4}[/\\]\d\d[/\\]\d\d|archived_sessions)[/\\]rollout-[^/\\]{1,200}$/.exec(
          file,
        )?.[1];
      return home === undefined ? null : `${home}/session_index.jsonl`;
    },
    entryOf: (text, sessionId) => {
      // The index may name a session several times; the newest line counts.
      const line = text.split("\n").findLast((one) => one.includes(sessionId));
      const { id, thread_name: name } = objectIn(line ?? "");
      return id === sessionId && typeof name === "string" && name !== "" ? { label: name } : {};
    },
  },
  writer: codexWriter,
  resume: (sessionId) => ["codex", "resume", sessionId],
};

const envelopeTypes: ReadonlySet<unknown> = new Set([
  "session_meta",
  "response_item",
  "event_msg",
  "turn_context",
  "compacted",
]);

function isEnveloped({ type, payload }: Fields): boolean {
  return envelopeTypes.has(type) && isFields(payload);
}
