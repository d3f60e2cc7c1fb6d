import { isFields, type Fields } from "@throughline/core/internal";
import { fileOfLines, type ForeignFormat } from "../foreign-format.ts";
import type { FormatSample } from "../foreign-format.ts";
import { firstObjects, matchOfLines, objectIn } from "../sample-lines.ts";
import { documentIn } from "../sample-units.ts";
import { isBareHeader, isBareItem } from "./codex-lines.ts";
import { createCodexReader } from "./read-codex.ts";
import { codexWriter } from "./write-codex.ts";

const rollout = /^rollout-.{1,80}\.jsonl$/;
const compressed = /^rollout-.{1,80}\.jsonl\.zst$/;
const document = /^rollout-\d{4}-\d\d-\d\d-[0-9a-f-]{36}\.json$/i;
const year = /^\d{4}$/;
const twoDigits = /^\d{2}$/;

/** The versions of spring 2025 stored a session as one document, so the list of items is inside of it. */
const lists = [["items"]];

/**
 * The format covers Codex's sessions, `sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`, archived sessions, and
 * the documents of the versions in TypeScript, `sessions/rollout-<date>-<id>.json`.
 */
export const codexFormat: ForeignFormat = {
  name: "codex",
  program: "Codex",
  layout: (sample) => (isDocument(sample) ? { unit: "document", lists, sessions: null } : fileOfLines),
  places: [
    {
      variables: ["CODEX_HOME"],
      home: ".codex",
      files: [
        ["sessions", year, twoDigits, twoDigits, rollout],
        ["archived_sessions", rollout],
        ["sessions", document],
        // Newer versions compress files. The import lists them so that it can report them.
        ["sessions", year, twoDigits, twoDigits, compressed],
        ["archived_sessions", compressed],
      ],
    },
  ],
  detect: (sample) => {
    if (isDocument(sample)) return "certain";
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
  // Newer versions do not find the documents of the older ones.
  resume: (sessionId, path) => (path.endsWith(".json") ? null : ["codex", "resume", sessionId]),
};

function isDocument(sample: FormatSample): boolean {
  const { head, tail } = documentIn(sample, lists) ?? {};
  const { session } = { ...head, ...tail };
  if (!isFields(session) || typeof session["id"] !== "string" || typeof session["timestamp"] !== "string") return false;
  // A file of lines may have such a line, and then it is not one document.
  return !sample.path.endsWith(".jsonl") || firstObjects(sample).length === 0;
}

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
