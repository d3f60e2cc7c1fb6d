import type { RouteDefinition } from "./http/route.ts";
import { eventRoutes } from "./routes/event-routes.ts";
import { lifeCycleRoutes } from "./routes/life-cycle-routes.ts";
import { partialRoutes } from "./routes/partial-routes.ts";
import { recordRoutes } from "./routes/record-routes.ts";
import { searchRoutes } from "./routes/search-routes.ts";
import { sessionRoutes } from "./routes/session-routes.ts";
import { storeRoutes } from "./routes/store-routes.ts";

/** Every route below `/api/v1`, in the order of the document. */
export const apiRoutes: readonly RouteDefinition[] = [
  ...storeRoutes,
  ...sessionRoutes,
  ...recordRoutes,
  ...lifeCycleRoutes,
  ...partialRoutes,
  ...searchRoutes,
  ...eventRoutes,
];
