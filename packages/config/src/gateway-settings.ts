import { tableOf, type SettingTable } from "./setting-definition.ts";

const text = { type: "text", minLength: 1 } as const;

export const gatewaySettings: SettingTable = tableOf({
  area: "gateway",
  fields: [
    {
      key: "upstreams",
      description:
        "Providers that the server passes requests on to, by the first part of the path. The guide Record any agent has the fields.",
      kind: {
        type: "map",
        maxEntries: 100,
        of: {
          type: "object",
          fields: [
            {
              key: "api",
              description: "The API it speaks.",
              kind: { type: "choice", choices: ["anthropic", "openai", "ollama"] },
              default: null,
              isRequired: true,
            },
            { key: "baseUrl", description: "Its address; null: the provider's own.", kind: text, default: null },
            {
              key: "credentials",
              description: "Whose key the provider gets; null: ours where apiKeyEnv is set, else the caller's.",
              kind: { type: "choice", choices: ["server", "caller"] },
              default: null,
            },
            {
              key: "mode",
              description:
                "record passes calls on. guard also sends a refused request once more, rebuilt. stateful keeps the history, so that clients send what is new.",
              kind: { type: "choice", choices: ["record", "guard", "stateful"] },
              default: "record",
            },
            { key: "apiKeyEnv", description: "The variable with our key.", kind: text, default: null },
            {
              key: "sharedResources",
              description: "Whether every token reaches files, batches and stored responses of the account.",
              kind: { type: "boolean" },
              default: false,
            },
          ],
        },
      },
      default: {},
    },
    {
      key: "onStoreDown",
      description:
        "While the store is away: spool keeps calls in their files in the home and stores them later, refuse takes no calls, pass passes them on without a record.",
      kind: { type: "choice", choices: ["spool", "refuse", "pass"] },
      default: "spool",
    },
    {
      key: "spoolBytes",
      description: "What all files of calls that wait for the store may take together.",
      kind: { type: "integer", min: 1, max: 1_000_000_000_000 },
      default: 1_073_741_824,
    },
  ],
});
