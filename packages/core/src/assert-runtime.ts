import { ThroughlineError } from "./throughline-error.ts";

/** The oldest Node that has all that the packages use. */
const oldestNode = [22, 18] as const;

let isChecked = false;

/**
 * Refuses a Node that is too old, wherever a package is first called in a process. Later something of the language would be
 * missing in the middle of a write. Other runtimes name a version of Node too, which says nothing.
 * @throws {ThroughlineError} RUNTIME_UNSUPPORTED
 */
export function assertRuntime(): void {
  if (isChecked) return;
  const { process } = globalThis as { readonly process?: { readonly versions?: Readonly<Record<string, string>> } };
  assertVersions(process?.versions ?? {});
  isChecked = true;
}

/** @throws {ThroughlineError} RUNTIME_UNSUPPORTED */
export function assertVersions(versions: Readonly<Record<string, string>>): void {
  const { node } = versions;
  if (node === undefined || versions["bun"] !== undefined || versions["deno"] !== undefined) return;
  const [major = 0, minor = 0] = node.split(".").map(Number);
  const [oldestMajor, oldestMinor] = oldestNode;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return;
  throw new ThroughlineError(
    "RUNTIME_UNSUPPORTED",
    `Throughline needs Node ${oldestNode.join(".")} or newer; this is ${node}.`,
    { outcome: "not-applied", details: { version: node } },
  );
}
