import type { SettingField, SettingKind } from "@throughline/core/internal";
import type { SettingTable } from "./setting-definition.ts";

/** A timer accepts at most 2^31 - 1 milliseconds. */
const maxTimerMs = 2_147_483_647;

const usd: SettingKind = { type: "number", above: -0.000_001, below: 1_000_000 };

function price(key: string, description: string): SettingField {
  return { key, description, kind: usd, default: null, isRequired: key === "input" || key === "output" };
}

export const cliSettings: SettingTable = {
  area: "cli",
  settings: [
    {
      key: "home",
      description: "Directory of the configuration file and of the default store; null: ~/.throughline.",
      kind: { type: "text", minLength: 1 },
      environment: [{ name: "THROUGHLINE_HOME" }],
      flag: "--home",
      // The file is searched in this directory, so the file itself cannot set the directory.
      isFileAllowed: false,
      // The resolver of the settings replaces null with ~/.throughline.
      default: null,
    },
    {
      key: "store",
      description: "URL of the store; comes before session.store.",
      kind: { type: "text", minLength: 1 },
      environment: [{ name: "THROUGHLINE_STORE" }],
      flag: "--store",
      isFileAllowed: true,
      // Null means that session.store and session.storePath decide.
      default: null,
    },
    {
      key: "preset",
      description:
        "Values of a document to begin with; what is set by itself comes before them. Presets say how, never where: stores stay where they are.",
      kind: { type: "choice", choices: ["claw0", "goclaw-doc", "goclaw-spec", "openclaw"] },
      environment: [{ name: "THROUGHLINE_PRESET" }],
      flag: null,
      isFileAllowed: true,
      default: null,
    },
    {
      key: "agent",
      description: "The agent whose sessions are meant.",
      kind: { type: "text", minLength: 1 },
      environment: [{ name: "THROUGHLINE_AGENT" }],
      flag: "--agent",
      isFileAllowed: true,
      default: "main",
    },
    {
      key: "namespace",
      description: "The tenant within the store.",
      kind: { type: "text", minLength: 0 },
      environment: [{ name: "THROUGHLINE_NAMESPACE" }],
      flag: "--namespace",
      isFileAllowed: true,
      default: "",
    },
    {
      key: "logLevel",
      description: "How much is printed on stderr; debug adds the details of an error.",
      kind: { type: "choice", choices: ["debug", "info", "warn", "error"] },
      environment: [{ name: "THROUGHLINE_LOG_LEVEL" }],
      flag: "--log-level",
      isFileAllowed: true,
      default: "info",
    },
    {
      key: "color",
      description: "Color: on a terminal only, or never.",
      kind: { type: "choice", choices: ["auto", "never"] },
      environment: [{ name: "NO_COLOR", meaning: "never" }],
      flag: null,
      isFileAllowed: true,
      default: "auto",
    },
    {
      key: "input",
      description: "Whether questions may be asked on a terminal.",
      kind: { type: "boolean" },
      environment: [{ name: "THROUGHLINE_NO_INPUT", meaning: false }],
      flag: "--no-input",
      isFileAllowed: true,
      default: true,
    },
    {
      key: "timeoutMs",
      description: "How long a command may take, in milliseconds; 0 means no limit.",
      kind: { type: "integer", min: 0, max: maxTimerMs },
      environment: [{ name: "THROUGHLINE_TIMEOUT_MS" }],
      flag: "--timeout",
      isFileAllowed: true,
      default: 0,
    },
    {
      key: "prices",
      description:
        "Prices of models in US dollars per million tokens, before those that Throughline knows; a name that ends with * stands for every name that starts with it.",
      kind: {
        type: "map",
        maxEntries: 1000,
        of: {
          type: "object",
          fields: [
            price("input", "Prompt tokens that no cache served."),
            price("output", "Tokens that the model wrote."),
            price("cacheRead", "Prompt tokens that a cache served; null: as input."),
            price("cacheWrite", "Tokens written to a cache; null: as input."),
            price("cacheWrite1h", "Tokens written to a cache for one hour; null: as cacheWrite."),
          ],
        },
      },
      environment: [{ name: "THROUGHLINE_PRICES" }],
      flag: null,
      isFileAllowed: true,
      default: {},
    },
  ],
};
