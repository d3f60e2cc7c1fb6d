import * as exported from "@throughline/policy";
import { createMemoryStore } from "@throughline/store-memory";
import { describeOptions } from "@throughline/test-kit/options";
import { applyRetentionTable, readRetained, readRetainedTable } from "../src/apply-retention.ts";
import { resetQuestionTable } from "../src/plan-reset.ts";
import { retentionTable } from "../src/plan-retention.ts";
import { compareSendPolicyModes, sendQuestionTable } from "../src/resolve-send-policy.ts";

const store = createMemoryStore();
const { signal } = new AbortController();
const policy = exported.readResetPolicy({});
const question = { key: "agent:main:main", policy: null };

describeOptions(
  exported,
  [
    {
      name: "readRetained",
      table: readRetainedTable,
      valid: { isMeasured: false, nowMs: 0, signal },
      call: (options) => readRetained(store, (async function* () {})(), options),
    },
    {
      name: "applyRetention",
      table: applyRetentionTable,
      valid: { signal },
      call: (options) => exported.applyRetention(store, [], exported.planRetention([], {}, 0), options),
    },
    {
      name: "planReset",
      table: resetQuestionTable,
      valid: { policy, key: "agent:main:main", lastActivityMs: 0, nowMs: 0, timeZone: "UTC" },
      call: (given) => exported.planReset(given),
    },
    { name: "planRetention", table: retentionTable, call: (given) => exported.planRetention([], given, 0) },
    {
      name: "resolveSendPolicy",
      table: sendQuestionTable,
      valid: question,
      call: (given) => exported.resolveSendPolicy(given),
    },
    {
      name: "compareSendPolicyModes",
      table: sendQuestionTable,
      valid: question,
      call: (given) => compareSendPolicyModes(given),
    },
  ],
  ["readResetPolicy", "readSendPolicy"],
);
