import { createFinding } from "@throughline/core/internal";
import { type Finding, hasErrorCode } from "@throughline/core";
import type { ForeignFormat } from "@throughline/foreign-formats";
import type { StrayTitles } from "@throughline/foreign-formats/internal";
import { joinPath } from "@throughline/openclaw-format/internal";
import { eachSourceName, openSource, readSourceText } from "./node/source-files.ts";
import type { SearchLook } from "./search-look.ts";

type EntryFields = Readonly<Record<string, unknown>>;

/**
 * Reads the files that other programs keep beside their sessions. Each is read once, because an index may name
 * thousands of sessions.
 */
export class CompanionFiles {
  readonly #look: SearchLook;
  readonly #texts = new Map<string, Promise<string | null>>();
  readonly #titles = new Map<string, Promise<ReadonlyMap<string, string>>>();

  constructor(look: SearchLook) {
    this.#look = look;
  }

  async entryOf(format: ForeignFormat, path: string, sessionId: string): Promise<EntryFields | null> {
    const texts = await this.#textsOf(format, path);
    const entries = texts.map((text) => format.companion?.entryOf(text, sessionId, path) ?? {});
    return entries.length === 0 ? null : (Object.assign({}, ...entries) as EntryFields);
  }

  /** Reports data of the session in the companion file that an import does not use. */
  async findingsOf(format: ForeignFormat, path: string, sessionId: string): Promise<readonly Finding[]> {
    const texts = format.companion?.noteOf === undefined ? [] : await this.#textsOf(format, path);
    const notes = texts.flatMap((text) => format.companion?.noteOf?.(text, sessionId) ?? []);
    return notes.map((note) => createFinding("SOURCE_UNREAD", note, { path }));
  }

  /** Maps line ids to titles that other files of the folder state. Each folder is scanned once. */
  async strayTitlesFor({ strayTitles }: ForeignFormat, path: string): Promise<ReadonlyMap<string, string>> {
    const at = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1;
    if (strayTitles === undefined || !strayTitles.isSession(path.slice(at))) return noTitles;
    const folder = path.slice(0, Math.max(at - 1, 1));
    const titles = this.#titles.get(folder) ?? titlesBelow(folder, strayTitles, this.#look);
    this.#titles.set(folder, titles);
    return titles;
  }

  async #textsOf({ companion }: ForeignFormat, path: string): Promise<readonly string[]> {
    const texts: string[] = [];
    for (const place of [companion?.path(path) ?? []].flat()) {
      const reading = this.#texts.get(place) ?? readIfThere(place);
      this.#texts.set(place, reading);
      const text = await reading;
      if (text !== null) texts.push(text);
    }
    return texts;
  }
}

const noTitles: ReadonlyMap<string, string> = new Map();

async function titlesBelow(
  folder: string,
  strayTitles: StrayTitles,
  look: SearchLook,
): Promise<ReadonlyMap<string, string>> {
  const names: string[] = [];
  await eachSourceName(folder, ({ name, isDirectory }) => {
    if (!isDirectory && strayTitles.isSession(name)) names.push(name);
  });
  const titles = new Map<string, string>();
  for (const name of names.toSorted()) {
    const path = joinPath(folder, name);
    if (look.hasNoTitles(path)) continue;
    const found = (await ifReadable(titlesAt(path, strayTitles))) ?? [];
    look.sawTitles(path, found.length > 0);
    for (const [lineId, title] of found) titles.set(lineId, title);
  }
  return titles;
}

/** Few files hold a stray title. A short read of the first bytes rules out the others. */
const firstBytes = 4 * 1024;
const headBytes = 64 * 1024;

async function titlesAt(path: string, { titlesIn }: StrayTitles): Promise<ReturnType<StrayTitles["titlesIn"]>> {
  const file = await openSource(path);
  const headOf = async (bytes: number): Promise<string> => {
    const chunks = file.chunks({ toBytes: Math.min(bytes, file.sizeBytes) });
    return Buffer.concat(await Array.fromAsync(chunks, (chunk) => Buffer.from(chunk))).toString();
  };
  try {
    return titlesIn(await headOf(firstBytes)).length === 0 ? [] : titlesIn(await headOf(headBytes));
  } finally {
    await file.close();
  }
}

/** Returns null for a file that is too large or not readable, because the session can be imported without it. */
export async function readIfThere(path: string): Promise<string | null> {
  return ifReadable(readSourceText(path));
}

async function ifReadable<Value>(reading: Promise<Value>): Promise<Value | null> {
  try {
    return await reading;
  } catch (error) {
    if (hasErrorCode(error, "FILE_NOT_FOUND", "FILE_UNREADABLE", "PATH_UNSAFE")) return null;
    throw error;
  }
}
