import { findRecordProblem } from "@throughline/core/internal";

/**
 * Describes why a reader of the log could not show a content, such as "content.0.text is not text". Null when every
 * reader can.
 */
export function contentProblem(content: unknown): string | null {
  const record = { type: "custom_message", id: "", parentId: null, timestamp: "", customType: "", content };
  const problem = findRecordProblem(record);
  return problem === null ? null : `${problem.path} ${problem.message}`;
}
