import { isFields, type Fields } from "@throughline/core/internal";
import { jsonLine } from "../format-database.ts";
import type { FormatTree, TreeFiles, TreePlace } from "../format-tree.ts";
import { objectIn } from "../sample-lines.ts";
import { sessionFacts } from "./opencode-database.ts";
import { heldBack, SettledMessages } from "./settled-messages.ts";

/** The program's files have these names, and no other file in its folders may be opened. */
const [messageName, partName] = [/^msg_\w{1,100}\.json$/, /^prt_\w{1,100}\.json$/];
const sessionPath = /^(.{1,4096})[/\\]session[/\\][^/\\]{1,255}[/\\](ses_\w{1,100})\.json$/s;

/**
 * opencode before version 1.2 stored files: `session/<project>/<session>.json`, `message/<session>/<message>.json` and
 * `part/<message>/<part>.json`. A message gives the same line as its row in a later version, so one reader serves both.
 */
export const opencodeTree: FormatTree = {
  placeOf(path) {
    const [, root, sessionId] = sessionPath.exec(path.slice(-5000)) ?? [];
    return root === undefined || sessionId === undefined ? null : { path, root, sessionId };
  },
  async session(files, place) {
    const info = objectIn((await files.text(place.path)) ?? "");
    const { parentID: parentId, directory, title } = info;
    const unread = [heldBack(await newestReply(files, place))].filter((message) => message !== null);
    return { ...sessionFacts({ parentId, directory, title }), unread, lines: () => messageLines(files, place) };
  },
  async *filePaths(files, { root, sessionId }) {
    const folder = `${root}/message/${sessionId}`;
    for (const name of await namesOf(files, folder, messageName)) {
      yield `${folder}/${name}`;
      const parts = `${root}/part/${idOf(name)}`;
      for (const part of await namesOf(files, parts, partName)) yield `${parts}/${part}`;
    }
  },
};

async function newestReply(
  files: TreeFiles,
  { root, sessionId }: TreePlace,
): Promise<{ readonly id: string; readonly info: Fields } | null> {
  const folder = `${root}/message/${sessionId}`;
  for (const name of (await namesOf(files, folder, messageName)).toReversed()) {
    const info = objectIn((await files.text(`${folder}/${name}`)) ?? "");
    if (info["role"] === "assistant") return { id: idOf(name), info };
  }
  return null;
}

async function* messageLines(files: TreeFiles, { path, root, sessionId }: TreePlace): AsyncGenerator<string> {
  const { revert } = objectIn((await files.text(path)) ?? "");
  const revertedId = isFields(revert) ? revert["messageID"] : undefined;
  const settled = new SettledMessages();
  let isReverted = false;
  const folder = `${root}/message/${sessionId}`;
  for (const name of await namesOf(files, folder, messageName)) {
    const id = idOf(name);
    const text = await files.text(`${folder}/${name}`);
    const { id: _id, sessionID: _sessionId, ...info } = objectIn(text ?? "");
    isReverted ||= id === revertedId;
    const created = isFields(info["time"]) ? info["time"]["created"] : undefined;
    const head = JSON.stringify({ id, sessionID: sessionId, time: { created }, ...info });
    const parts = await partTexts(files, `${root}/part/${id}`);
    const whole = Object.keys(info).length > 0 ? "" : unreadField(text);
    const line = `{"info":${head},${whole}"parts":[${parts.join(",")}]${isReverted ? ',"reverted":true' : ""}}`;
    yield* settled.after(info, line);
  }
}

async function partTexts(files: TreeFiles, folder: string): Promise<readonly string[]> {
  const texts: string[] = [];
  for (const name of await namesOf(files, folder, partName)) {
    const text = await files.text(`${folder}/${name}`);
    const { id: _id, messageID: _messageId, sessionID: _sessionId, ...part } = objectIn(text ?? "");
    const id = JSON.stringify(idOf(name));
    if (Object.keys(part).length === 0) texts.push(`{"id":${id},${unreadField(text).slice(0, -1)}}`);
    else texts.push(`{"id":${id},${JSON.stringify(part).slice(1)}`);
  }
  return texts;
}

/** A file without fields keeps its text, and a file that cannot be read gives `unread`. */
function unreadField(text: string | null): string {
  return text === null ? '"unread":true,' : `"data":${jsonLine(text)},`;
}

async function namesOf(files: TreeFiles, folder: string, form: RegExp): Promise<readonly string[]> {
  return (await files.names(folder)).filter((name) => form.test(name));
}

/** Earlier versions moved files without changing the ids in them, so the name states the id. */
function idOf(name: string): string {
  return name.slice(0, -".json".length);
}
