import type { OptionKind } from "@throughline/core/internal";

/** Accepts a main key. Messages never show it. */
export const mainKeyKind: OptionKind = {
  expected: "one of { passphrase }, { key } with 32 bytes, or { recoveryKey }",
  isSecret: true,
  isRequired: true,
  accepts: (value) => {
    if (typeof value !== "object" || value === null) return false;
    const { passphrase, key, recoveryKey, ...others } = value as Readonly<Record<string, unknown>>;
    const given = [passphrase, key, recoveryKey].filter((one) => one !== undefined);
    if (given.length !== 1 || Object.keys(others).length > 0) return false;
    if (key !== undefined) return key instanceof Uint8Array;
    return typeof given[0] === "string" && given[0] !== "";
  },
};
