import type { SourceFiles } from "@throughline/http-api/internal";
import type { Host } from "../host.ts";
import { modifiedMs } from "../modified-ms.ts";
import { findProgram } from "../start-program.ts";

/**
 * Looks at files and programs of this machine. The sessions that the page shows come from its user. In a store that other
 * machines share, no session states its machine, so what is not found here may be there.
 */
export function sourceFilesOf({ environment }: Pick<Host, "environment">, isStoreHere: boolean): SourceFiles {
  return {
    modifiedMs,
    async missing({ path, cwd, executable }) {
      const { missingForResume } = await import("@throughline/transfer/internal");
      const missing = await missingForResume({ path, cwd });
      if (!isStoreHere && missing.length > 0) return null;
      return findProgram(environment["PATH"] ?? "", executable) === null ? [...missing, "program"] : missing;
    },
  };
}
