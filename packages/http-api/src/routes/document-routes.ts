import { openObject } from "../schemas/values.ts";
import { route, type RouteDefinition } from "../http/route.ts";

export const documentRoutes: readonly RouteDefinition[] = [
  route({
    id: "getDocument",
    method: "GET",
    path: "/openapi.json",
    summary: "This document.",
    scope: "read",
    answers: { 200: { description: "OpenAPI 3.1.", schema: openObject } },
    errors: [],
    handle: async ({ context }) => ({ kind: "json", status: 200, text: context.document() }),
  }),
];
