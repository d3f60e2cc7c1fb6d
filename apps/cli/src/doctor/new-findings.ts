import type { Finding } from "@throughline/core";

/**
 * A store that reads a strange file as a torn line reports these findings. They are misleading, because the file is no
 * transcript.
 */
const misreadings: ReadonlySet<string> = new Set(["TAIL_TORN", "CARRIAGE_RETURN", "LINE_MALFORMED", "RECORD_MISSING"]);

/** A record that is reported as missing may have left such a line, so both findings describe one loss. */
const remains: ReadonlySet<string> = new Set(["LINE_MALFORMED", "TAIL_TORN"]);

/**
 * Picks the findings that report a new problem. The store's events, its own check and the check of the records read the
 * same lines. Each loss must be reported once, by the first of them.
 */
export class NewFindings {
  readonly #reported = new Set<string>();
  readonly #strange = new Set<string>();

  /** Suppresses the findings that the store will report about a strange file, because they are misleading. */
  addStrange({ path }: Finding): void {
    if (path !== null) this.#strange.add(path);
  }

  pick(findings: readonly Finding[]): readonly Finding[] {
    return findings.filter((finding) => this.#isNew(finding));
  }

  #isNew(finding: Finding): boolean {
    const { code, path, key } = finding;
    if (misreadings.has(code) && [path, key].some((name) => name !== null && this.#strange.has(name))) {
      // The check of the records reports the session's key and not the file, so the key is suppressed as well.
      if (key !== null) this.#strange.add(key);
      return false;
    }
    const names = remains.has(code) ? [code, "RECORD_MISSING"] : [code];
    if (identities(finding).some((at) => names.some((name) => this.#reported.has(`${name} ${at}`)))) return false;
    for (const at of [...identities(finding), ...recordOf(finding)]) this.#reported.add(`${code} ${at}`);
    return true;
  }
}

/** A record may span several lines, so the line or the byte offset takes precedence over the record id. */
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
