import type { Finding } from "@throughline/core";
import { counted } from "./counted.ts";
import { withoutSelfAdvice } from "./error-report.ts";
import { findingText } from "./output.ts";
import type { Output } from "./output.ts";

/** Collects findings that are the result of a command: each is printed as it arrives and kept for the end. */
export interface FindingReport {
  readonly findings: readonly Finding[];
  add(found: readonly Finding[]): Promise<void>;
  close(checked: string): Promise<void>;
}

/** `command` is the reporting command as typed; remedies that repeat it are removed. */
export function createFindingReport(output: Output, command: string): FindingReport {
  const findings: Finding[] = [];
  return {
    findings,
    add: async (found) => {
      for (const each of found) {
        const finding = { ...each, remedy: withoutSelfAdvice(each.remedy, command) };
        findings.push(finding);
        if (output.isJson) await output.object({ kind: "finding", ...finding });
        else {
          await output.paragraph(findingText(finding), { indent: "  " });
          if (finding.severity !== "info" && !finding.repaired)
            await output.paragraph(`    ${output.asTyped(finding.remedy)}`, { style: "dim" });
        }
      }
      await output.flush();
    },
    close: async (checked) => {
      if (output.isJson) await output.end(findings.length);
      else output.note(`${checked} checked, ${countText(findings)}.`);
    },
  };
}

function countText(findings: readonly Finding[]): string {
  const counts = (["error", "warning", "info"] as const).map((severity) => {
    const count = findings.filter((finding) => finding.severity === severity).length;
    return severity === "info" ? `${count} info` : counted(count, severity);
  });
  return counts.join(", ");
}
