import {
  assertAgentId,
  assertNamespace,
  type FileScope,
  type GetFileOptions,
  optionKinds,
  type OptionTable,
  type PutFileOptions,
  refused,
} from "@throughline/core/internal";
import { assertObjects } from "./assert-arguments.ts";
import type { HandleLife } from "./handle-life.ts";

const { signal } = optionKinds;
const count = optionKinds.integer({ min: 0 });
export const putFileTable: OptionTable<PutFileOptions> = { maxBytes: count, signal };
export const getFileTable: OptionTable<GetFileOptions> = { from: count, to: count, signal };
export const listFilesTable: OptionTable<{ readonly signal?: AbortSignal | undefined }> = { signal };

/**
 * Checks that an operation on the files of a scope may begin.
 * @throws {ThroughlineError} INPUT_INVALID, ABORTED, and STORE_CLOSED after the close of the store
 */
export function beginFileWork(life: HandleLife, scope: FileScope, given?: AbortSignal): void {
  life.begin(given);
  assertObjects({ "the scope of a file": scope });
  assertNamespace(scope.namespace);
  assertAgentId(scope.agentId);
}

/** @throws {ThroughlineError} INPUT_INVALID for a range that is not within the file */
export function assertFileRange(bytes: number, from: number, to: number): void {
  if (from <= to && to <= bytes) return;
  const message = `The file has ${bytes} bytes, so bytes ${from} to ${to} are outside of it.`;
  throw refused("INPUT_INVALID", message, { bytes, from, to });
}
