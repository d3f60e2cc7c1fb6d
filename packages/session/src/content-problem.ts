import { findRecordProblem } from "@throughline/core/internal";

/** Why no reader of the log could show a content, such as "content.0.text is not text"; null when all can. */
export function contentProblem(content: unknown): string | null {
  const record = { type: "custom_message", id: "", parentId: null, timestamp: "", customType: "", content };
  const problem = findRecordProblem(record);
  return problem === null ? null : `${problem.path} ${problem.message}`;
}
