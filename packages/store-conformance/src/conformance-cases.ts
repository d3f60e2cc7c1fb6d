import { appendCases, sequenceCases } from "./cases/append.ts";
import { closedCases } from "./cases/closed.ts";
import { codecCases } from "./cases/codec.ts";
import { concurrencyCases, gapCases } from "./cases/concurrency.ts";
import { copyCases } from "./cases/copies.ts";
import { durabilityCases } from "./cases/durability.ts";
import { entryCases } from "./cases/entries.ts";
import { errorCases, signalCases } from "./cases/errors.ts";
import { eventCases } from "./cases/events.ts";
import { exclusivelyCases } from "./cases/exclusively.ts";
import { expectCases, sidesCases } from "./cases/expect.ts";
import { fileCases } from "./cases/files.ts";
import { fileReferenceCases } from "./cases/file-references.ts";
import { forkCases } from "./cases/fork.ts";
import { headCases } from "./cases/heads.ts";
import { idempotencyCases } from "./cases/idempotency.ts";
import { isolationCases } from "./cases/isolation.ts";
import { lifecycleCases } from "./cases/lifecycle.ts";
import { limitCases, pagingCases } from "./cases/limits.ts";
import { importedFromCases } from "./cases/imported-from.ts";
import { listCases } from "./cases/list.ts";
import { maintenanceCases } from "./cases/maintenance.ts";
import { manifestCases } from "./cases/manifest.ts";
import { modelCases } from "./cases/model.ts";
import { moveCases, removeCases } from "./cases/move.ts";
import { optionCases } from "./cases/options.ts";
import { partialRemovalCases } from "./cases/partial-removals.ts";
import { partialCases } from "./cases/partials.ts";
import { redactCases } from "./cases/redact.ts";
import { redactedTextCases } from "./cases/redacted-texts.ts";
import { refusalCases } from "./cases/refusals.ts";
import { searchCases } from "./cases/search.ts";
import { searchAnyOfCases } from "./cases/search-any-of.ts";
import { sourceCases } from "./cases/sources.ts";
import { storedCases } from "./cases/stored.ts";
import { textCopyCases } from "./cases/text-copies.ts";
import { turnCases } from "./cases/turns.ts";
import { vectorCases } from "./cases/vectors.ts";
import { watchCases } from "./cases/watch.ts";
import { windowCases } from "./cases/window.ts";
import type { ConformanceCase } from "./conformance-case.ts";

/** Holds every case of the kit, ordered by group. */
export const conformanceCases: readonly ConformanceCase[] = [
  ...manifestCases,
  ...lifecycleCases,
  ...closedCases,
  ...appendCases,
  ...sequenceCases,
  ...storedCases,
  ...headCases,
  ...windowCases,
  ...expectCases,
  ...sidesCases,
  ...idempotencyCases,
  ...turnCases,
  ...exclusivelyCases,
  ...entryCases,
  ...listCases,
  ...importedFromCases,
  ...isolationCases,
  ...moveCases,
  ...removeCases,
  ...redactCases,
  ...redactedTextCases,
  ...textCopyCases,
  ...sourceCases,
  ...limitCases,
  ...pagingCases,
  ...refusalCases,
  ...optionCases,
  ...errorCases,
  ...signalCases,
  ...durabilityCases,
  ...concurrencyCases,
  ...gapCases,
  ...codecCases,
  ...copyCases,
  ...eventCases,
  ...searchCases,
  ...searchAnyOfCases,
  ...vectorCases,
  ...forkCases,
  ...watchCases,
  ...partialCases,
  ...partialRemovalCases,
  ...fileCases,
  ...fileReferenceCases,
  ...maintenanceCases,
  ...modelCases,
];
