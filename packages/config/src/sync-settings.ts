import type { SettingFragment } from "@throughline/core/internal";

export const syncSettings: SettingFragment = {
  area: "sync",
  fields: [
    {
      key: "auto",
      description:
        "Whether mcp keeps importing what other programs write while it runs, once `throughline sync` was run.",
      kind: { type: "boolean" },
      default: true,
    },
    {
      key: "exclude",
      description:
        "Folders whose sessions sync never takes, with those below: by the file's folder and the session's. ~/ is the user's directory, * any part of a name, ** any number of names.",
      kind: { type: "list", minItems: 0, maxItems: 200, of: { type: "text", minLength: 1 } },
      default: [],
    },
  ],
};
