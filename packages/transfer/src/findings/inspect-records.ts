import {
  createFinding,
  isFromNewerVersion,
  isKnownRecordType,
  runSteps,
  type Steps,
  throughlineKind,
  type FindingCode,
} from "@throughline/core/internal";
import { hasErrorCode, type Finding, type StoredRecord } from "@throughline/core";
import type { Context } from "@throughline/history";
import { type RepairRule, contextSteps, providerMappings, renderSteps, walkSteps } from "@throughline/history/internal";
import { replaySteps } from "./inspect-messages.ts";

/** These repairs point to a problem in the log. The other repairs only convert good records to a provider's shapes. */
const repairFindings: ReadonlyMap<RepairRule, readonly [FindingCode, string]> = new Map<
  RepairRule,
  readonly [FindingCode, string]
>([
  ["result-synthesized", ["TOOL_CALL_UNANSWERED", "has a tool call without a result"]],
  ["orphan-result", ["TOOL_RESULT_ORPHAN", "is the result of a call that is not on the branch"]],
  ["duplicate-result", ["DUPLICATE_TOOL_RESULT", "is a second result of a call"]],
  ["duplicate-call", ["DUPLICATE_TOOL_CALL", "repeats a tool call"]],
  ["unknown-role-removed", ["UNKNOWN_TYPE", "is a message of a role that is not known"]],
  ["late-result-shown", ["TOOL_RESULT_ORPHAN", "is the result of a call that the conversation had gone on without"]],
  ["unknown-block-replaced", ["UNKNOWN_TYPE", "holds a block of a type that is not known"]],
]);

/**
 * Finds the problems in the records of one session. On the path to the head, it reports unreadable records, which the
 * context leaves out, and records that a provider would refuse.
 *
 * @param records all records of the session, in order of seq
 */
export function inspectRecords(records: readonly StoredRecord[], headId: string | null): readonly Finding[] {
  return runSteps(recordSteps(records, headId));
}

/**
 * Does the work of `inspectRecords` in steps of one record in each part of the check, so that a caller can pause in
 * between.
 */
export function* recordSteps(records: readonly StoredRecord[], headId: string | null): Steps<readonly Finding[]> {
  const { findings } = yield* walkSteps(records, headId);
  for (const record of records) {
    findings.push(...findingsOf(record));
    yield;
  }
  let context: Context;
  try {
    context = yield* contextSteps(records, { headId });
  } catch (error) {
    if (!hasErrorCode(error, "RECORD_FROM_NEWER_VERSION")) throw error;
    const newer = records.find(({ record }) => isFromNewerVersion(record));
    const message = `${error.message}; no context is built until this program is upgraded`;
    return [...findings, createFinding("UNKNOWN_TYPE", message, { recordId: newer?.id ?? null })];
  }
  const rewrites: Finding[] = [];
  const { repairs } = yield* renderSteps(context, providerMappings.anthropic({}), {});
  for (const { rule, recordId } of repairs) {
    yield;
    const rewritten = repairFindings.get(rule);
    if (rewritten === undefined) continue;
    const [code, what] = rewritten;
    rewrites.push(createFinding(code, `record ${recordId} ${what}`, { recordId }));
  }
  return [...findings, ...context.findings, ...rewrites, ...(yield* replaySteps(context))];
}

function findingsOf({ id, type, record }: StoredRecord): readonly Finding[] {
  if (!isKnownRecordType(type)) {
    return [
      createFinding("UNKNOWN_TYPE", `record ${id} is of type ${JSON.stringify(type)}, which is not known`, {
        recordId: id,
      }),
    ];
  }
  if (throughlineKind(record) !== "unparsed") return [];
  const { reason } = (record["data"] ?? {}) as { readonly reason?: unknown };
  const code = unparsedCodes.get(String(reason));
  return code === undefined
    ? []
    : [
        createFinding(code, `the line in the place of record ${id} cannot be read (${String(reason)})`, {
          recordId: id,
        }),
      ];
}

/** The reason `blank` is absent: an empty line is kept for its bytes and is no problem. */
const unparsedCodes: ReadonlyMap<string, FindingCode> = new Map<string, FindingCode>([
  ["malformed", "LINE_MALFORMED"],
  ["nul", "LINE_MALFORMED"],
  ["too-deep", "LINE_MALFORMED"],
  ["not-an-object", "LINE_MALFORMED"],
  ["torn", "TAIL_TORN"],
  ["too-long", "LINE_TOO_LONG"],
  ["no-type", "RECORD_INVALID"],
]);
