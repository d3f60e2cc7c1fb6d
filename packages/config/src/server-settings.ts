import { tableOf, type SettingTable } from "./setting-definition.ts";

const name = { type: "text", minLength: 1 } as const;
const names = { type: "list", minItems: 0, maxItems: 100, of: name } as const;

const { area, settings } = tableOf({
  area: "server",
  fields: [
    {
      key: "host",
      description:
        "The address that the server listens on. An address that is not loopback needs a token in the store.",
      kind: name,
      default: "127.0.0.1",
    },
    {
      key: "port",
      description: "The port that the server listens on; 0 takes a free one.",
      kind: { type: "integer", min: 0, max: 65_535 },
      default: 4788,
    },
    {
      key: "publicUrl",
      description: "The address that clients use, where a proxy stands in front; null: the own address.",
      kind: name,
      default: null,
    },
    {
      key: "allowedHosts",
      description: "Names in the Host header that are answered, beside those of loopback and of publicUrl.",
      kind: names,
      default: [],
    },
    {
      key: "allowedOrigins",
      description: "Origins whose pages may call the server, as https://app.example.",
      kind: names,
      default: [],
    },
    {
      key: "trustProxy",
      description: "Addresses of proxies whose x-forwarded-for counts.",
      kind: names,
      default: [],
    },
    {
      key: "tokenFile",
      description:
        "A file with a token that may do everything, for example a mounted secret, which only its owner may read; null: none.",
      kind: name,
      default: null,
    },
    {
      key: "cursorKey",
      description:
        "64 hexadecimal digits that seal the cursors of lists; the same on every node. null: made at each start.",
      kind: name,
      default: null,
    },
    {
      key: "requestsPerMinute",
      description: "Requests that one token may send in a minute to this node.",
      kind: { type: "integer", min: 1, max: 100_000_000 },
      default: 600,
    },
    {
      key: "requestBurst",
      description: "Requests that one token may send at once, before requestsPerMinute counts.",
      kind: { type: "integer", min: 1, max: 100_000_000 },
      default: 200,
    },
    {
      key: "gatewayCallsPerMinute",
      description: "Calls that one token may send through the gateway of this node in a minute.",
      kind: { type: "integer", min: 1, max: 100_000_000 },
      default: 600,
    },
    {
      key: "gatewayBurst",
      description: "Calls that one token may send through the gateway at once, before gatewayCallsPerMinute counts.",
      kind: { type: "integer", min: 1, max: 100_000_000 },
      default: 200,
    },
    {
      key: "inFlightBytes",
      description:
        "Bytes that the bodies of all requests in work may have together; a call through the gateway counts three times.",
      kind: { type: "integer", min: 1_000_000, max: 1_000_000_000_000 },
      default: 536_870_912,
    },
    {
      key: "inFlightBytesPerToken",
      description: "The same for the requests of one token.",
      kind: { type: "integer", min: 1_000_000, max: 1_000_000_000_000 },
      default: 268_435_456,
    },
    {
      key: "streamsPerToken",
      description: "Event streams that one token may have open at this node.",
      kind: { type: "integer", min: 1, max: 1_000_000 },
      default: 200,
    },
    {
      key: "streams",
      description: "Event streams that may be open at this node.",
      kind: { type: "integer", min: 1, max: 1_000_000 },
      default: 20_000,
    },
    {
      key: "auditDays",
      description: "How long events of the audit log are kept, in days; whole months are removed. 0: for ever.",
      kind: { type: "integer", min: 0, max: 36_500 },
      default: 365,
    },
    {
      key: "drainDelayMs",
      description: "How long a server that was asked to stop still takes connections, so that a balancer sees it.",
      kind: { type: "integer", min: 0, max: 600_000 },
      default: 0,
    },
  ],
});

const flags: Readonly<Record<string, string>> = {
  "server.host": "--host",
  "server.port": "--port",
  "server.publicUrl": "--public-url",
  "server.tokenFile": "--token-file",
};

export const serverSettings: SettingTable = {
  area,
  settings: settings.map((setting) => ({
    ...setting,
    flag: flags[setting.key] ?? null,
    ...(setting.key === "server.cursorKey" ? { isSecret: true } : {}),
  })),
};
