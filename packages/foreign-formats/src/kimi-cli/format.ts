import { createHash } from "node:crypto";
import { isFields, type Fields } from "@throughline/core/internal";
import { fileOfLines, type ForeignFormat, type FormatMatch } from "../foreign-format.ts";
import { matchOfLines, objectIn } from "../sample-lines.ts";
import { createKimiCliReader } from "./read-kimi-cli.ts";
import { sessionPlace, wireName } from "./session-place.ts";

const anyName = /^[^.]/;

/**
 * The format covers Kimi CLI's logs of sessions, `sessions/<hash of the folder>/<session id>/wire.jsonl`, and those of
 * sub-agents.
 */
export const kimiCliFormat: ForeignFormat = {
  name: "kimi-cli",
  program: "Kimi CLI",
  layout: () => fileOfLines,
  places: [
    {
      variables: ["KIMI_SHARE_DIR"],
      home: ".kimi",
      files: [
        ["sessions", anyName, anyName, wireName],
        ["sessions", anyName, anyName, "subagents", anyName, wireName],
      ],
    },
  ],
  detect: (sample) => matchOfLines(sample, matchOf),
  createReader: createKimiCliReader,
  companion: {
    path: (file) => {
      const place = sessionPlace(file);
      return place === null ? null : [`${place.folder}/${place.isSubAgent ? "meta" : "state"}.json`, place.index];
    },
    entryOf: (text, _sessionId, file) => {
      const { custom_title: title, description, work_dirs: folders } = objectIn(text);
      const hash = sessionPlace(file)?.hash;
      const cwd = Array.isArray(folders) ? (folders as readonly unknown[]).map(pathOf).find(isHashed(hash)) : undefined;
      const name = [title, description].find((one) => typeof one === "string" && one.trim() !== "");
      return {
        ...(cwd === undefined ? {} : { cwd }),
        ...(typeof name === "string" ? { title: name.trim(), titleBy: "import" } : {}),
      };
    },
  },
  // The program starts a new session for an id that its folder does not have.
  resume: (sessionId) => ["kimi", "--session", sessionId],
};

const pathOf = (folder: unknown): string =>
  isFields(folder) && typeof folder["path"] === "string" ? folder["path"] : "";

/** The program names the folder of the sessions by the MD5 hash of the working folder. */
const isHashed =
  (hash: string | undefined) =>
  (path: string): boolean =>
    path !== "" && createHash("md5").update(path).digest("hex") === hash?.split("_").at(-1);

function matchOf({ type, protocol_version: version, timestamp, message }: Fields): FormatMatch | null {
  if (type === "metadata" && typeof version === "string") return "certain";
  const isEvent = isFields(message) && typeof message["type"] === "string" && isFields(message["payload"]);
  return isEvent && typeof timestamp === "number" ? "certain" : null;
}
