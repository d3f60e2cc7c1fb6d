import type { SettingFragment } from "@throughline/core/internal";

const text = { type: "text", minLength: 1 } as const;

export const encryptionSettings: SettingFragment = {
  area: "encryption",
  fields: [
    {
      key: "keyring",
      description:
        "File of the keys, relative to the home; null: stores are plain. With it every store is encrypted, unless its URL ends with ?encrypted=0.",
      kind: text,
      default: null,
    },
    {
      key: "mainKey",
      description: "Where the main key comes from: file:PATH, env:NAME, or prompt, which asks on a terminal.",
      kind: text,
      default: "prompt",
    },
    {
      key: "scope",
      description: "What one key encrypts, and so what is erased alone. It counts when the keyring is created.",
      kind: { type: "choice", choices: ["session", "agent", "namespace"] },
      default: "session",
    },
    {
      key: "search",
      description:
        "What an encrypted store indexes: words as keyed tokens, which show how often each token occurs, or off: a search reads every record.",
      kind: { type: "choice", choices: ["words", "off"] },
      default: "words",
    },
  ],
};
