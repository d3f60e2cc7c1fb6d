import type { ResumeNeeds, SourceFiles } from "@throughline/http-api/internal";
import type { Host } from "../host.ts";
import { modifiedMs } from "../modified-ms.ts";
import { findProgram } from "../start-program.ts";

/** Looks at files and programs of this machine. The sessions that the page shows come from its user. */
export function sourceFilesOf({ environment }: Pick<Host, "environment">): SourceFiles {
  return {
    modifiedMs,
    async missing({ path, cwd, executable }: ResumeNeeds) {
      const { missingForResume } = await import("@throughline/transfer/internal");
      const missing = await missingForResume({ path, cwd });
      return findProgram(environment["PATH"] ?? "", executable) === null ? [...missing, "program"] : missing;
    },
  };
}
