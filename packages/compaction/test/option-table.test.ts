import * as exported from "@throughline/compaction";
import { sessionRef } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { createTokenEstimator } from "@throughline/tokens";
import { describeOptions } from "@throughline/test-kit/options";
import { compactorTable, compactTable, requestTable, sizeTable } from "../src/compactor.ts";
import { createEntryLease, entryLeaseTable } from "../src/retry-lease.ts";
import { retryLoopTable, runRetryLoop } from "../src/retry-loop.ts";
import { createSummaryRetry, retryRunTable, summaryRetryTable } from "../src/retry-summaries.ts";

const store = createMemoryStore();
const ref = sessionRef({ key: "agent:main:main" });
const compactor = exported.createCompactor({ store });
const request = {
  counter: await createTokenEstimator().counterFor({ provider: "none", modelId: "none" }),
  calibration: {},
  windowTokens: 1000,
};
const retryOptions = { store, summarizers: [], measure: { countMessage: () => 1, countText: () => 1 } };
const retry = createSummaryRetry(retryOptions);

describeOptions(exported, [
  { name: "createCompactor", table: compactorTable, valid: { store }, call: (all) => exported.createCompactor(all) },
  {
    name: "need",
    of: "createCompactor",
    table: sizeTable,
    valid: { tokens: 10, windowTokens: 100, messages: 3 },
    call: (size) => compactor.need(size),
  },
  ...(["plan", "begin"] as const).map((name) => ({
    name,
    of: "createCompactor",
    table: requestTable,
    valid: request,
    call: (given: never) => compactor[name](ref, given),
  })),
  {
    name: "compact",
    of: "createCompactor",
    table: compactTable,
    valid: request,
    call: (given) => compactor.compact(ref, given),
  },
  {
    name: "createEntryLease",
    table: entryLeaseTable,
    valid: { store, owner: "worker-1" },
    call: (options) => createEntryLease(options),
  },
  {
    name: "runRetryLoop",
    table: retryLoopTable,
    valid: {
      retry,
      sessions: () => [],
      onOutcome: () => undefined,
      onError: () => undefined,
      signal: AbortSignal.abort(),
    },
    call: (options) => runRetryLoop(options),
  },
  {
    name: "createSummaryRetry",
    table: summaryRetryTable,
    valid: retryOptions,
    call: (options) => createSummaryRetry(options),
  },
  { name: "run", of: "createSummaryRetry", table: retryRunTable, call: (options) => retry.run(ref, options) },
]);
