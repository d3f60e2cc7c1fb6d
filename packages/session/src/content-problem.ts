import { ThroughlineError } from "@throughline/core";
import { findRecordProblem, isFileReference, quote, refused, storeFiles } from "@throughline/core/internal";
import type { SessionContent } from "./session-options.ts";
import type { WindowLog } from "./window-log.ts";

/**
 * Describes why a reader of the log could not show a content, such as "content.0.text is not text". Null when every
 * reader can.
 */
export function contentProblem(content: unknown): string | null {
  const record = { type: "custom_message", id: "", parentId: null, timestamp: "", customType: "", content };
  const problem = findRecordProblem(record);
  return problem === null ? null : `${problem.path} ${problem.message}`;
}

/**
 * Checks that the store has the files of a message before the message is stored. Returns null when it refers to none.
 * @throws {ThroughlineError} FILE_NOT_FOUND, CAPABILITY_UNSUPPORTED for a store that keeps no files
 */
export function assertFiles(
  { store, ref }: Pick<WindowLog, "store" | "ref">,
  input: SessionContent,
): Promise<void> | null {
  const blocks = typeof input === "string" ? [] : (input as readonly unknown[]).filter(isFileReference);
  if (blocks.length === 0) return null;
  return (async (): Promise<void> => {
    const files = storeFiles(store);
    for (const { fileId } of blocks)
      if ((await files.stat(ref, fileId)) === null)
        throw refused("FILE_NOT_FOUND", `The message refers to the file ${quote(fileId)}, which is not there.`, {
          fileId,
        });
  })();
}

/** @throws {ThroughlineError} INPUT_INVALID */
export function assertContent(input: SessionContent): void {
  const problem = contentProblem(input);
  if (problem !== null)
    throw new ThroughlineError("INPUT_INVALID", `The input cannot be shown to a model: ${problem}.`);
}
