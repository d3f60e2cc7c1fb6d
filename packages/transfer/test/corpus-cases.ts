import { existsSync } from "node:fs";
import { join } from "node:path";
import type { SessionStore } from "@throughline/core";
import { buildContext, type Context } from "@throughline/history";
import { createMemoryStore } from "@throughline/store-memory";
import type { ImportFormat, ImportSource } from "../src/import-types.ts";
import { importAll, recordsOf, refOf } from "./fixture-folder.ts";

export const casesRoot: string = join(process.env["THROUGHLINE_CORPUS"] ?? "", "cases");
/** The files are no part of the project: `THROUGHLINE_CORPUS` names their folder. */
export const hasCases: boolean = process.env["THROUGHLINE_CORPUS"] !== undefined && existsSync(casesRoot);

export async function contextOf(store: SessionStore, source: ImportSource): Promise<Context> {
  const headId = (await store.load(refOf(source)))?.head.headId ?? null;
  return buildContext(await recordsOf(store, refOf(source)), { headId });
}

/** The words of each message; a call as `?id`, a result with the id of its call. */
export function wordsOf({ messages }: Context): readonly string[] {
  return messages.map((message) => {
    const words = message.content.map((block) =>
      block.type === "text" ? block.text : block.type === "toolCall" ? `?${block.id}` : `[${block.type}]`,
    );
    return `${message.role === "toolResult" ? `=${message.toolCallId} ` : ""}${words.join(" ")}`;
  });
}

export async function importOne(
  store: SessionStore,
  path: string,
  from: ImportFormat | "auto" = "auto",
): Promise<ImportSource> {
  const [source] = await importAll(store, path, { from });
  if (source === undefined) throw new Error(path);
  return source;
}

/** Imports the only source of a case into a new store. */
export async function readCase(
  file: string,
  from: ImportFormat | "auto" = "auto",
): Promise<{ readonly source: ImportSource; readonly words: readonly string[]; readonly context: Context }> {
  await using store = createMemoryStore();
  const source = await importOne(store, join(casesRoot, file), from);
  const context = await contextOf(store, source);
  return { source, context, words: wordsOf(context) };
}
