import type { Finding } from "@throughline/core";

/** Findings of a store that takes a strange file for a torn line. Some are wrong, and none helps. */
const misreadings: ReadonlySet<string> = new Set(["TAIL_TORN", "CARRIAGE_RETURN", "LINE_MALFORMED", "RECORD_MISSING"]);

/** What is left of a record that is reported as missing. */
const remains: ReadonlySet<string> = new Set(["LINE_MALFORMED", "TAIL_TORN"]);

/**
 * Picks the findings that report something new. The store's events, its own check and the check of the records look at the
 * same lines: each loss is reported once, by the first of them.
 */
export class NewFindings {
  readonly #reported = new Set<string>();
  readonly #strange = new Set<string>();

  /** Leaves out what the store will report of a strange file. */
  addStrange({ path }: Finding): void {
    if (path !== null) this.#strange.add(path);
  }

  /** The findings that nobody has reported before. */
  pick(findings: readonly Finding[]): readonly Finding[] {
    return findings.filter((finding) => this.#isNew(finding));
  }

  #isNew(finding: Finding): boolean {
    const { code, path, key } = finding;
    if (misreadings.has(code) && [path, key].some((name) => name !== null && this.#strange.has(name))) {
      // The check of its records knows the session, and not the file.
      if (key !== null) this.#strange.add(key);
      return false;
    }
    const names = remains.has(code) ? [code, "RECORD_MISSING"] : [code];
    if (identities(finding).some((at) => names.some((name) => this.#reported.has(`${name} ${at}`)))) return false;
    for (const at of [...identities(finding), ...recordOf(finding)]) this.#reported.add(`${code} ${at}`);
    return true;
  }
}

/** What distinguishes a finding from others of its code. A record may be in several lines. */
function identities(finding: Finding): readonly string[] {
  const { path, key, line, byteOffset, message } = finding;
  const file = path ?? key;
  const places = [
    ...(line === null ? [] : [JSON.stringify(["line", file, line])]),
    ...(byteOffset === null ? [] : [JSON.stringify(["byte", file, byteOffset])]),
  ];
  if (places.length > 0) return places;
  return finding.recordId === null ? [JSON.stringify(["message", file, message])] : recordOf(finding);
}

function recordOf({ key, path, recordId }: Finding): readonly string[] {
  return recordId === null ? [] : [JSON.stringify(["record", key ?? path, recordId])];
}
