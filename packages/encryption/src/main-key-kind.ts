import type { OptionKind } from "@throughline/core/internal";

/** Accepts a main key. Messages never show it. */
export const mainKeyKind: OptionKind = {
  expected: "one of { passphrase }, { key } with 32 bytes, { service } with wrap and unwrap, or { recoveryKey }",
  isSecret: true,
  isRequired: true,
  accepts: (value) => {
    if (typeof value !== "object" || value === null) return false;
    const { passphrase, key, service, recoveryKey, ...others } = value as Readonly<Record<string, unknown>>;
    const given = [passphrase, key, service, recoveryKey].filter((one) => one !== undefined);
    if (given.length !== 1 || Object.keys(others).length > 0) return false;
    if (key !== undefined) return key instanceof Uint8Array;
    if (service !== undefined) return isService(service);
    return typeof given[0] === "string" && given[0] !== "";
  },
};

function isService(value: unknown): boolean {
  const { wrap, unwrap } = (value ?? {}) as { readonly wrap?: unknown; readonly unwrap?: unknown };
  return typeof wrap === "function" && typeof unwrap === "function";
}
