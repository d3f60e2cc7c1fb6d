import { ThroughlineError } from "@throughline/core";
import { findRecordProblem } from "@throughline/core/internal";
import type { SessionContent } from "./session-options.ts";

/**
 * Describes why a reader of the log could not show a content, such as "content.0.text is not text". Null when every
 * reader can.
 */
export function contentProblem(content: unknown): string | null {
  const record = { type: "custom_message", id: "", parentId: null, timestamp: "", customType: "", content };
  const problem = findRecordProblem(record);
  return problem === null ? null : `${problem.path} ${problem.message}`;
}

/** @throws {ThroughlineError} INPUT_INVALID */
export function assertContent(input: SessionContent): void {
  const problem = contentProblem(input);
  if (problem !== null)
    throw new ThroughlineError("INPUT_INVALID", `The input cannot be shown to a model: ${problem}.`);
}
