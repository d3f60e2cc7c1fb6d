import { ThroughlineError } from "./throughline-error.ts";

/** Older versions of Node lack features that the packages use. */
const oldestNode = [22, 18] as const;

let isChecked = false;

/**
 * Refuses a Node that is too old when a package is first called in a process. Otherwise a missing feature of the
 * language would fail in the middle of a write. Other runtimes also report a version of Node, which does not describe
 * their features.
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
