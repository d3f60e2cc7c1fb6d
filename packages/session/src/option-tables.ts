import {
  isFields,
  modelKind,
  optionKinds,
  portKinds,
  toolChoiceKind,
  type OptionKind,
  type OptionTable,
} from "@throughline/core/internal";
import type { ResultSettings } from "@throughline/guard/internal";
import type { SessionAppendOptions } from "./session.ts";
import type { SessionsOptions } from "./session-options.ts";
import type { BranchTurnOptions, ResumeOptions, RunTurnOptions } from "./turn.ts";

const { callback, either, filledText, flag, integer, listOf, number, object, objectOf, objectWith } = optionKinds;
const { oneOf, orNull, required, signal, text } = optionKinds;

const leaseMs = integer({ min: 1, max: 86_400_000 });

const systemPrompt: OptionKind = {
  expected: "a text, null, or a function that gives one",
  accepts: (value) => value === null || typeof value === "string" || typeof value === "function",
};

const tools: OptionKind = listOf({
  expected: "a tool with `definition` and `run`, as defineTool makes it",
  accepts: (value) =>
    objectWith("run").accepts(value) && object.accepts((value as { readonly definition?: unknown }).definition),
});

export const sessionsTable: OptionTable<SessionsOptions> = {
  store: required(portKinds.store),
  model: required(modelKind),
  system: systemPrompt,
  tools,
  approveTool: callback,
  approvals: oneOf(["one-by-one", "parallel"]),
  titles: oneOf(["rules", "model", "off"]),
  agentId: text,
  namespace: text,
  maxSteps: integer({ min: 1 }),
  parallelTools: flag,
  leaseMs,
  steps: listOf(objectWith("run")),
  compact: callback,
  restore: oneOf(["cut", "compact"]),
  results: objectOf<ResultSettings>({
    keep: oneOf(["head", "head-and-tail"]),
    resultPercent: orNull(number({ min: 0, max: 100 })),
  }),
  beforeClose: callback,
  holdBack: callback,
  warnAtPercents: listOf(number({ min: 0 })),
  sendPolicy: orNull(object),
  reset: orNull(object),
  timeZone: text,
  redactBeforeAppend: callback,
  onEvent: callback,
  clock: portKinds.clock,
  random: portKinds.random,
  estimator: objectWith("counterFor"),
  owners: objectWith("stateOf"),
  partials: flag,
};

export const branchTable: OptionTable<BranchTurnOptions> = {
  signal,
  onDelta: callback,
  onEvent: callback,
  model: modelKind,
  system: systemPrompt,
  tools,
  toolChoice: toolChoiceKind,
  output: either(object, callback),
  maxSteps: integer({ min: 1 }),
  leaseMs,
};

const commonTable = {
  ...branchTable,
  whenBusy: oneOf(["queue", "reject", "branch"]),
  waitMs: number({ min: 0 }),
};

const answer: OptionKind = {
  expected: "true, { approve } or { refuse }",
  accepts: (value) => value === true || isFieldsOf(value, "approve", object) || isFieldsOf(value, "refuse", text),
};

function isFieldsOf(value: unknown, name: string, kind: OptionKind): boolean {
  return isFields(value) && kind.accepts(value[name]);
}

export const resumeTable: OptionTable<ResumeOptions> = {
  ...commonTable,
  continueReply: flag,
  approvals: {
    expected: "decisions by call id: true, { approve } or { refuse }",
    accepts: (value) => isFields(value) && Object.values(value).every((one) => answer.accepts(one)),
  },
};

export const turnTable: OptionTable<RunTurnOptions> = {
  ...commonTable,
  mentioned: flag,
  idempotencyKey: filledText,
  whenWaiting: oneOf(["refuse", "reject"]),
  queue: oneOf(["followup", "steer"]),
};

export const appendTable: OptionTable<SessionAppendOptions> = {
  expectHead: orNull(text),
  idempotencyKey: text,
  entry: object,
  signal,
};
