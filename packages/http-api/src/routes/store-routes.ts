import { z } from "zod";
import { json } from "../http/answer.ts";
import { route, type RouteDefinition } from "../http/route.ts";

const storeSchema = z
  .looseObject({
    kind: z.literal("store"),
    version: z.string(),
    capabilities: z.looseObject({
      specification: z.literal(1),
      name: z.string(),
      durabilities: z.array(z.enum(["none", "process", "disk"])),
      defaultDurability: z.enum(["none", "process", "disk"]),
      persistent: z.boolean(),
      writers: z.enum(["one-handle", "one-host", "many-hosts"]),
      search: z.boolean(),
      watch: z.boolean(),
      fork: z.boolean(),
      maintenance: z.boolean(),
      limits: z.looseObject({
        recordBytes: z.int(),
        batchRecords: z.int(),
        batchBytes: z.int(),
        pageRecords: z.int(),
        pageBytes: z.int(),
      }),
      idempotency: z.looseObject({ rememberedAppends: z.int(), rememberedMs: z.int() }),
    }),
    limits: z.looseObject({
      bodyBytes: z.int(),
      headerBytes: z.int(),
      headerLines: z.int(),
      urlBytes: z.int(),
      jsonLevels: z.int(),
      jsonValues: z.int(),
      streamsPerToken: z.int(),
      streams: z.int(),
      requestsPerMinute: z.int(),
      requestBurst: z.int(),
      failedTokensPerMinute: z.int(),
      gatewayCallsPerMinute: z.int(),
      gatewayBurst: z.int(),
      inFlightBytes: z.int(),
      inFlightBytesPerToken: z.int(),
    }),
  })
  .meta({ id: "store" });

/** Limits a page of this server, even when the store's own limit is higher. */
export const mostPageRecords = 500;

export const storeRoutes: readonly RouteDefinition[] = [
  route({
    id: "getStore",
    method: "GET",
    path: "/store",
    summary: "What the store can do, and the limits of the server.",
    scope: "read",
    answers: { 200: { description: "The capabilities and limits.", schema: storeSchema } },
    errors: [],
    handle: async ({ context: { store, version, limits } }) => {
      const { capabilities } = store;
      const pageRecords = Math.min(capabilities.limits.pageRecords, mostPageRecords);
      const declared = { ...capabilities, limits: { ...capabilities.limits, pageRecords } };
      return json(200, { kind: "store", version, capabilities: declared, limits });
    },
  }),
];
